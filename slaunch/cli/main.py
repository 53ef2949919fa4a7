"""The front door: sub-commands, and how an error ends the process."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Mapping, Sequence

from slaunch.cli.dialects import DIALECTS
from slaunch.errors import SlaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

COLLECT_AFTER = 50_000
"""New objects between two searches for garbage. The plan of a large job makes millions of lasting ones: with the default of 700
half of its time goes into searching them."""

COMMANDS = {
    "explain": "slaunch.cli.explain:explain",
    "tune": "slaunch.cli.tune:tune_command",
    "doctor": "slaunch.cli.doctor:doctor_command",
    "submit": "slaunch.cli.job_commands:submit_command",
    "logs": "slaunch.cli.job_commands:logs_command",
    "cancel": "slaunch.cli.job_commands:cancel_command",
    "report": "slaunch.cli.job_commands:report_command",
    "status": "slaunch.cli.status:status_command",
}
"""The sub-commands: module and function, which takes the arguments and the environment and returns the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run slaunch with `argv` and return its exit code; without, with the process's own, and end the process with that code."""
    gc.set_threshold(COLLECT_AFTER)
    hold_standard_files()
    if argv is not None:
        return run(list(argv))
    sys.argv[1:] = called_as(sys.argv[0], sys.argv[1:])  # what a command for other nodes is made of
    leave(run(sys.argv[1:]))


def run(args: list[str]) -> int:
    """Run slaunch with these arguments and return its exit code."""
    env = dict(os.environ)
    try:
        code = _command(args, env)
        sys.stdout.flush()
        return code
    except SlaunchError as error:
        return _tell(error, env)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # e.g. `slaunch --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere when Python ends
        return 141  # 128 + SIGPIPE


def leave(code: int) -> NoReturn:
    """End the process at once: nothing is left to be done, and to take all objects apart costs a tenth of a short job's agent."""
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except OSError:  # nobody reads it
            pass
    os._exit(code)


def hold_standard_files() -> None:
    """Open what the caller has closed of descriptors 0, 1 and 2: a socket with such a number would get somebody's output."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest free number
        os.set_inheritable(opened, True)
    os.close(opened)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # Python found it closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for the life of the process


def called_as(name: str, args: Sequence[str]) -> list[str]:
    """The arguments, with the dialect in front if the program is called by a link of that name, e.g. `torchrun`."""
    own = os.path.basename(name)
    return [own, *args] if own in DIALECTS else list(args)


def _command(args: list[str], env: Mapping[str, str]) -> int:
    first = args[0] if args else "--help"
    if first in ("--help", "-h"):
        return _help()
    if first in DIALECTS and args[1:2] in (["--help"], ["-h"]):
        return _help(DIALECTS[first])
    if first == "--version":
        return _version()
    if first in COMMANDS:
        from importlib import import_module

        module, _, function = COMMANDS[first].partition(":")
        code: int = getattr(import_module(module), function)(args[1:], env)
        return code
    return _start(args, env)


def _start(args: list[str], env: Mapping[str, str]) -> int:
    from slaunch.cli.options import read_options

    options = read_options(args, env)
    if options.auto_tuner_json:
        from slaunch.tune.main import tune

        return tune(options.auto_tuner_json, options, env, args)
    from slaunch.launch import launch

    return launch(options, env, args)


def _help(module: str = "slaunch.cli.options") -> int:
    from importlib import import_module

    print(import_module(module).help_text())
    return 0


def _version() -> int:
    from slaunch import __version__

    print(f"slaunch {__version__}")
    return 0


def _tell(error: SlaunchError, env: Mapping[str, str]) -> int:
    """Print an error that all tasks see on one task only; one that only this task sees, here."""
    from slaunch.allocation.select import speaks

    if speaks(env) or error.local:
        from slaunch.report.errors import render_error

        print(render_error(error, colour=sys.stderr.isatty()), file=sys.stderr, flush=True)
    return error.exit_code
