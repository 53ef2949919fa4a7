"""A trial's order, how its processes ended, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.allocation.values import StepCall
from slaunch.frozen import dataclass, field
from slaunch.tune.values import Setting

OK, OOM, ERROR, TIMEOUT, INFRASTRUCTURE, CANCELLED, PRUNED = (
    *("ok", "oom", "error", "timeout"),
    *("infrastructure", "cancelled", "pruned"),
)
"""How a setting ended. `ok`: it has a metric. `infrastructure`: the machine failed, not the setting. `pruned`: it was not run."""

FINAL = frozenset({OK, OOM, ERROR, TIMEOUT})
"""Ends that say something of the setting, so that it need not be tried again."""


@dataclass(frozen=True)
class Order:
    """What to run for a trial.

    Attributes:
        number: of the trial, from 1; 0 for the best run.
        name: of its folder and its job step.
        job: job id that the program sees.
        folder: its log directory.
        call: the command and its environment.
        step: name of its Slurm step; "" where it is no step.
        slurm_job: the job that the step belongs to.
        limit_s, start_s: seconds from the start of the workers, and until their start.
        grace_s: seconds that the workers get to end by themselves.
    """

    number: int
    name: str
    job: str
    folder: str
    call: StepCall
    step: str = ""
    slurm_job: str = ""
    limit_s: float = 1800
    start_s: float = 300
    grace_s: float = 15


@dataclass(frozen=True)
class Ended:
    """How a trial's processes ended.

    Attributes:
        why: "exit" (by itself), "limit" or "start" (its time was over), "asked" (the tuner itself was asked to stop).
        code: exit code of its command, 128 + n for a signal.
        started: its workers had started.
        start_s, run_s: seconds until that, and since.
        left: what could not be ended, in words; "" if nothing is left.
    """

    why: str
    code: int
    started: bool
    start_s: float
    run_s: float
    left: str = ""


@dataclass(frozen=True)
class Record:
    """A trial as the history keeps it.

    Attributes:
        number, job, folder: which trial.
        setting: what was tried.
        status: one of the words above.
        metric: its figure; None if it has none.
        error: half the width of the figure's confidence interval; None if not known.
        samples: how many samples the figure has.
        memory_mib, peak_mib: largest memory on a device, and by the program's own count; None = not known.
        start_s, run_s: seconds until the workers started, and that they ran.
        detail: why it is not ok, in one line.
        code: exit code.
        fingerprint: of program, arguments and machine.
        extra: further figures by column: estimates.
        repeat_of: number of the trial that this one repeats; 0 = none.
        derived: acc_steps and global_batch_size.
        origin: where the result is from: "run", "journal" or a file.
    """

    number: int
    job: str
    folder: str
    setting: Setting
    status: str
    metric: float | None = None
    error: float | None = None
    samples: int = 0
    memory_mib: float | None = None
    peak_mib: float | None = None
    start_s: float = 0.0
    run_s: float = 0.0
    detail: str = ""
    code: int = 0
    fingerprint: str = ""
    extra: Mapping[str, float | None] = field(default_factory=dict)
    repeat_of: int = 0
    derived: Mapping[str, int] = field(default_factory=dict)
    origin: str = "run"

    @property
    def ran(self) -> bool:
        """It has a result to rank by."""
        return self.metric is not None

    @property
    def bits(self) -> int:
        """Paddle's error bits: 1 no metric, 2 lack of memory, 4 memory not known."""
        return (self.metric is None) | (self.status == OOM) << 1 | (self.memory_mib is None) << 2
