"""`slaunch tune CONFIG [options] PROGRAM [its options]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.cli.options import read_options
from slaunch.errors import UsageError

HELP = """\
usage: slaunch tune CONFIG [options] PROGRAM [its options]

Run PROGRAM again and again with other settings of its parallelism, and in the end with the fastest that fits.
CONFIG (.json, .yaml or .toml) has the settings to try, how they reach the program, and the metric; see docs/tuner.md.
Each trial is a launch with the same options as here: a job step of its own in a Slurm job, else processes on this machine.
Results are in CONFIG's folder: …_history.csv, …_journal.jsonl, …_auto_tuner.log, and a folder for each trial."""


def tune_command(args: Sequence[str], env: Mapping[str, str]) -> int:
    """Run `slaunch tune` with these arguments (without the word tune) and return its exit code.

    Raises:
        SlaunchError: as `slaunch.tune.main.tune` does, or no configuration was named.
    """
    if args and args[0] in ("--help", "-h"):
        print(HELP)
        return 0
    if not args or args[0].startswith("-"):
        seen = f"{args[0]} comes first" if args else "nothing follows the word tune"
        raise UsageError("tune", seen, "name the configuration first: slaunch tune tuner.json [options] train.py [its options]")
    from slaunch.tune.main import tune

    return tune(args[0], read_options(args[1:], env), env, args[1:])
