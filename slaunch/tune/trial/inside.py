"""The slaunch inside a trial: its `main()` is called with one argument, a word of `carry.pack`."""

from __future__ import annotations

import os
import sys

from slaunch.errors import SlaunchError
from slaunch.launch import launch
from slaunch.tune.trial.carry import unpack
from slaunch.tune.trial.devices import wait_until_free


def main() -> int:
    """Launch as the options say; the exit code."""
    options, further = unpack(sys.argv[1])
    env = {**os.environ, **further}
    try:
        wait_until_free(env)
        return launch(options, env, sys.argv[1:])
    except SlaunchError as error:
        from slaunch.allocation.select import speaks
        from slaunch.report.errors import render_error

        if speaks(env) or error.local:
            print(render_error(error), file=sys.stderr, flush=True)
        return error.exit_code
