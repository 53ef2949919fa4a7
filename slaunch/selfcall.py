"""How slaunch starts itself: with this interpreter, and not led astray by files in the working directory.

`python -m` looks for modules in the working directory first, where a user's `json.py` or `socket.py` would stop an agent. Here
that directory comes last on the path of imports, so that slaunch still runs from a checkout that is not installed.
"""

from __future__ import annotations

import os
import sys

CALL = "import sys; sys.path.append(sys.path.pop(0)); from {module} import main; sys.exit(main())"


def own_command(program: str) -> tuple[str, ...]:
    """The start of a command line that runs slaunch as this process does.

    Args:
        program: how this process was called, `sys.argv[0]`.
    """
    script = os.path.abspath(program)
    if os.path.basename(script) == "slaunch" and os.path.isfile(script):
        return sys.executable, script
    return module_command("slaunch.cli.main")


def module_command(module: str) -> tuple[str, ...]:
    """The start of a command line that calls `main()` of this module of slaunch."""
    return sys.executable, "-c", CALL.format(module=module)
