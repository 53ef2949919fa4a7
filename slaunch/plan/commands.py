"""Which command each rank runs, where not all run the same (`--roles`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.errors import PlanError
from slaunch.options import Options, Program
from slaunch.plan.values import Command, Plan


def worker_argv(program: Program, python: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command of each worker.

    A `.py` file runs in this interpreter, unbuffered; a `.pyxes` file in this interpreter; any other file is executed itself.
    With WITH_COVERAGE=ON, Python programs run under coverage.py, which keeps one data file per process.

    Args:
        program: what the user named.
        python: the interpreter (never found by PATH, P92).
        env: the environment, for WITH_COVERAGE.
    """
    cover = ("-m", "coverage", "run", "--branch", "-p") if env.get("WITH_COVERAGE") == "ON" else ()
    if program.kind == "module":
        return (python, "-u", *cover, "-m", program.target, *program.args)
    if program.kind == "code":
        return (python, "-u", "-c", program.target, *program.args)
    if program.kind == "script" and program.target.endswith(".pyxes"):
        return (python, program.target, *program.args)
    if program.kind == "python" or (program.kind == "script" and program.target.endswith(".py")):
        return (python, "-u", *cover, program.target, *program.args)
    return (program.target, *program.args)


def in_container(options: Options, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command, with that of the container in front."""
    return (*options.container, *argv)


def interpreter(options: Options, own: str) -> str:
    """The workers' Python: the user's choice; in a container, whose file system has its own, `python3` there; else slaunch's."""
    return options.python or ("python3" if options.container else own)


def commands_of(options: Options, python: str, env: Mapping[str, str]) -> tuple[Command, ...]:
    """The commands by rank; () = all workers run the same."""
    return tuple(
        Command(part.name, part.ranks, in_container(options, worker_argv(part.program, python, env)), part.env)
        for part in options.parts
    )


def check_commands(commands: Sequence[Command], world: int) -> None:
    """Every rank has exactly one command, and no command is for ranks that are not there.

    Raises:
        PlanError: otherwise.
    """
    if not commands:
        return
    owners: dict[int, str] = {}
    for command in commands:
        for rank in (rank for first, last in command.ranks for rank in range(first, last + 1)):
            if rank >= world:
                raise mistake(f"role {command.name} wants rank {rank}", world)
            if rank in owners:
                raise mistake(f"rank {rank} is in the roles {owners[rank]} and {command.name}", world)
            owners[rank] = command.name
    rest = [command.name for command in commands if not command.ranks]
    missing = world - len(owners)
    if missing and not rest:
        first = next(rank for rank in range(world) if rank not in owners)
        raise mistake(f"{missing} ranks have no role, the first of them {first}", world)
    if rest and not missing:
        raise mistake(f"no rank is left for the role {rest[0]}", world)


def mistake(seen: str, world: int) -> PlanError:
    """The error of roles that do not fit."""
    todo = f"let the roles share out the ranks 0 to {world - 1}"
    return PlanError("give every rank its program", f"{seen}; the job has {world} workers", todo)


def command_of(plan: Plan, rank: int) -> Command:
    """What a rank runs."""
    for command in plan.commands:
        if any(first <= rank <= last for first, last in command.ranks):
            return command
    return next((command for command in plan.commands if not command.ranks), Command("", (), plan.argv))
