"""Every error that slaunch reports to its user, with its exit code.

    SlaunchError
    ├── UsageError          2    the command line or a setting is wrong
    ├── DeviceError         66   devices asked for are not there
    ├── AllocationError     65   the scheduler's or MPI's variables are malformed or contradict each other
    ├── RendezvousError     69   the nodes did not meet in time, or not all of them
    │   └── AgreementError  70   the nodes met, but do not agree on what to run
    ├── PlanError           71   the facts do not allow a valid plan
    ├── MissingToolError    72   a program or library that the chosen way needs is absent
    ├── OutputError         73   a log directory or report cannot be written
    ├── AgentLostError      75   an agent, or its node, went away while workers ran
    ├── HangError           76   no worker said anything for longer than --hang-timeout
    ├── TuneError           77   the search ended early, or found no setting that works
    ├── RequeueError        85   the workers were asked to save and end: the job is not finished, and goes back into the queue
    ├── TimeLimitError      124  the job ran longer than --time-limit
    ├── ScriptError         126  the program is there but cannot be executed
    └── ScriptMissingError  127  the program is not there

126 and 127 follow the shell; 65 to 77 follow sysexits.h where a meaning fits. A failing worker is not an exception: slaunch
then exits with the worker's own code, or 128 + n if signal n ended it.
"""

from __future__ import annotations


class SlaunchError(Exception):
    """An error in three parts: what was wanted, what was seen and where, what to do.

    Args:
        wanted: what slaunch was trying to do, e.g. "read the tasks per node".
        seen: what it met, naming the variable, file or command, e.g. "SLURM_TASKS_PER_NODE='4(x)'".
        todo: what the user can do about it.

    Attributes:
        local: True if only this task can know of the error, so that it must speak even where another task speaks for all.
        unfit: nodes that kept the job from beginning though others are fit, each with the reason, for the list of bad nodes; on
            the one task that writes it, () on all others.
    """

    exit_code = 1
    local = False
    unfit: tuple[tuple[str, str], ...] = ()

    def __init__(self, wanted: str, seen: str, todo: str) -> None:
        super().__init__(wanted, seen, todo)
        self.wanted = wanted
        self.seen = seen
        self.todo = todo

    def __str__(self) -> str:
        return f"cannot {self.wanted}\n  seen: {self.seen}\n  do:   {self.todo}"


class UsageError(SlaunchError):
    """The command line or a setting is wrong."""

    exit_code = 2


class AllocationError(SlaunchError):
    """The scheduler's or MPI's variables are malformed or contradict each other."""

    exit_code = 65


class DeviceError(SlaunchError):
    """Devices that were asked for are not there."""

    exit_code = 66


class RendezvousError(SlaunchError):
    """The nodes did not meet in time, or not all of them."""

    exit_code = 69


class AgreementError(RendezvousError):
    """The nodes met, but do not agree on what to run."""

    exit_code = 70


class PlanError(SlaunchError):
    """The facts do not allow a valid plan."""

    exit_code = 71


class MissingToolError(SlaunchError):
    """A program or library that the chosen way needs is absent."""

    exit_code = 72


class OutputError(SlaunchError):
    """A log directory or report cannot be written."""

    exit_code = 73


class AgentLostError(SlaunchError):
    """An agent, or its node, went away while workers ran."""

    exit_code = 75


class HangError(SlaunchError):
    """No worker said anything for longer than the user allows."""

    exit_code = 76


class TimeLimitError(SlaunchError):
    """The job ran longer than the user allows."""

    exit_code = 124


class RequeueError(SlaunchError):
    """The workers were asked to save and end: the job is not finished, and goes back into the queue."""

    exit_code = 85


class TuneError(SlaunchError):
    """The search ended early, or found no setting that works."""

    exit_code = 77


class ScriptError(SlaunchError):
    """The program is there but cannot be executed."""

    exit_code = 126


class ScriptMissingError(SlaunchError):
    """The program is not there."""

    exit_code = 127
