"""Start a job from Python. The same as the command line, in a process of its own: nothing happens to the calling one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from slaunch.selfcall import module_command

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in `typing` from Python 3.11 on

    from slaunch.api_options import LaunchOptions

Option: TypeAlias = str | int | float | bool | Sequence[str] | Sequence[int] | None
"""Value of an option: as on the command line, or a number, a truth value, a list; None = not given."""


def launch(
    program: str = "",
    *args: str,
    kind: Literal["script", "module", "code"] = "script",
    env: Mapping[str, str] | None = None,
    **options: Unpack[LaunchOptions],
) -> int:
    """Run a job to its end and return its exit code, as `slaunch [options] PROGRAM [args]` does.

    Args:
        program: script, executable, module or code, as `kind` says; "" where the file of `roles` names all programs.
        args: the program's arguments.
        kind: what `program` is: "script" (or any executable), "module" or "code".
        env: environment of slaunch and so of the workers; None = this process's.
        options: the options of the command line by their long names, e.g. `nproc_per_node=2`, `tee=[0, 1]`.

    Raises:
        TypeError: slaunch has no such option.
    """
    given = cast("Mapping[str, Option]", options)
    call = [*module_command("slaunch.cli.main"), *option_words(given), *program_words(kind, program), *args]
    with subprocess.Popen(call, env=None if env is None else dict(env)) as process:
        try:
            return shell_code(process.wait())
        except BaseException:  # Ctrl-C reaches the launcher, too: let it end its workers
            process.terminate()
            process.wait()
            raise


def option_words(options: Mapping[str, Option]) -> list[str]:
    """The options as words of a command line."""
    from slaunch.cli.rows import TABLE
    from slaunch.cli.table import nearest

    known = {name.removeprefix("--").replace("-", "_"): name for row in TABLE.rows for name in row.names}
    for name in options:
        if name not in known:
            raise TypeError(f"slaunch has no option {name}; {nearest(name, known)}`slaunch --help` lists all")
    return [f"{known[name]}={text(name, value)}" for name, value in options.items() if value is not None]


def text(name: str, value: Option) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    if name in ("step_args", "container", "pre_hook"):
        import shlex

        return shlex.join(map(str, value))
    return ",".join(map(str, value)) or "none"


def program_words(kind: str, program: str) -> list[str]:
    """The program as words of a command line."""
    if not program:
        return []
    return {"script": ["--", program], "module": ["-m", program], "code": ["-c", program]}[kind]


def shell_code(code: int) -> int:
    """A process's return code as a shell gives it: 128 + n if signal n ended it."""
    return 128 - code if code < 0 else code
