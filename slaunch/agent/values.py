"""What the agents learn and conclude, as values: a worker's failure, the verdict on the job, the report of the run."""

from __future__ import annotations

from slaunch.frozen import dataclass
from slaunch.node.values import Problem


@dataclass(frozen=True)
class Failure:
    """A worker that ended other than by exit code 0.

    Attributes:
        rank, local_rank, node, host, pid: which worker.
        code: exit code as a shell gives it: the worker's own, or 128 + n if signal n ended it.
        signal: number of the signal that ended it; 0 if it exited by itself.
        time_s: when, seconds since the epoch, by the clock of the hub.
        cause: class of the cause: see `agent.cause`.
        detail: one line on the cause, e.g. the exception or the memory limit; "" if nothing is known beyond the code.
        log: path of its log file.
        tail: last lines of its output.
        told: it ended after slaunch had told it to stop; such an end is a consequence, unless it explains itself while the worker
            that ended first only missed its peers.
        role: its role; "worker" where all are alike.
    """

    rank: int
    local_rank: int
    node: int
    host: str
    pid: int
    code: int
    signal: int
    time_s: float
    cause: str = "error"
    detail: str = ""
    log: str = ""
    tail: tuple[str, ...] = ()
    told: bool = False
    role: str = "worker"


@dataclass(frozen=True)
class Lost:
    """An agent that went away while the job ran.

    Attributes:
        node, host, why: which one, and one line on why.
        time_s: when that was noticed, by the hub's clock; 0 = not known.
        silent: nothing was heard of it any more, as of a dead machine; else its connection ended.
    """

    node: int
    host: str
    why: str
    time_s: float
    silent: bool = False


@dataclass(frozen=True)
class Stopped:
    """A signal that asked an agent to stop the job.

    Attributes:
        signal: its number.
        node, host: the agent that got it.
        sender: who sent it, e.g. "pid 812 (slurmstepd)"; "" if the kernel does not tell.
        time_s: when, by the hub's clock.
    """

    signal: int
    node: int
    host: str
    sender: str
    time_s: float


@dataclass(frozen=True)
class Stuck:
    """A process that could not be killed, e.g. because it waits for a device or a file server (state D)."""

    node: int
    host: str
    pid: int
    name: str
    state: str


@dataclass(frozen=True)
class Look:
    """What a worker did that had said nothing for long.

    Attributes:
        rank, node, host, pid: which worker.
        silent_s: seconds since its last output.
        cpu: share of one CPU that it used lately; above 1 with several threads.
        state: its main thread's state letter, as `ps` shows it.
        wchan: where in the kernel its main thread waits; "" if it does not, or the kernel does not tell.
    """

    rank: int
    node: int
    host: str
    pid: int
    silent_s: float
    cpu: float
    state: str
    wchan: str


@dataclass(frozen=True)
class Verdict:
    """How the job ended: one for all agents.

    Attributes:
        outcome: "success", "failure" (a worker), "signal" (asked to stop), "lost" (an agent or node), "start" (a node could not
            start its workers), "hang" (no worker said anything for too long), "time" (the user's time limit).
        code: exit code of every agent.
        first: the worker that failed first, if one did.
        others: further workers that failed by themselves, in order of time.
        lost: agents that went away.
        stopped: the signal that ended the job.
        problem: what kept a node from starting its workers, and `problem_host` its host.
        stuck: processes that could not be killed.
        ended: number of workers that ended with code 0.
        failed: number of workers that failed by themselves; `others` has the earliest of them, without their last lines.
        gone: number of agents that went away; `lost` has the earliest of them.
        hung: in a hang, the workers that did something else than most; a few of all if there is no such.
        final: why no other attempt follows; "" where none was wanted, or one does.
        joined: hosts of nodes that have come to the job, for which the workers were stopped: outcome "grown".
        asked: the first request to save that came before the end; its signal is 0 if it came from the clock.
        progress: the furthest step that a worker has told; -1 = none.
        parted: those that are gone may live, and be the larger part of the job: it is this one that is cut off then.
    """

    outcome: str
    code: int
    first: Failure | None = None
    others: tuple[Failure, ...] = ()
    lost: tuple[Lost, ...] = ()
    stopped: Stopped | None = None
    problem: Problem | None = None
    problem_host: str = ""
    stuck: tuple[Stuck, ...] = ()
    ended: int = 0
    hung: tuple[Look, ...] = ()
    failed: int = 0
    gone: int = 0
    final: str = ""
    joined: tuple[str, ...] = ()
    asked: Stopped | None = None
    progress: int = -1
    parted: bool = False


@dataclass(frozen=True)
class Ended:
    """An attempt after which the workers were started anew.

    Attributes:
        attempt: its number, from 0.
        verdict: how it ended.
        world, nodes: number of its workers and of its nodes.
        started_s, ended_s: seconds since the epoch.
    """

    attempt: int
    verdict: Verdict
    world: int
    nodes: int
    started_s: float
    ended_s: float


@dataclass(frozen=True)
class Peak:
    """The most memory that a worker held.

    Attributes:
        rank, host: which worker.
        host_bytes: of the machine's memory, in its largest process; 0 = not known.
        device_bytes: of its devices' memory, in all its processes, sampled once a second; 0 = not known.
    """

    rank: int
    host: str
    host_bytes: int
    device_bytes: int = 0


@dataclass(frozen=True)
class RunReport:
    """The run of a job, as one agent tells it.

    Attributes:
        verdict: how it ended: that of its last attempt.
        code: exit code for this process.
        speaks: this agent prints the report; the others stay silent.
        job, attempt, world, nodes: which run; number of the last attempt, its number of workers and of nodes.
        log_dir: where the logs are.
        started_s, ended_s: seconds since the epoch.
        notes: further remarks, one line each.
        reason: why the scheduler stopped the job, in words; "" if it did not, or does not tell.
        peaks: the most memory that each worker held, as far as it is known.
        earlier: the attempts before the last one, in order.
        queue: what becomes of the job in the scheduler's queue; "" if nothing is wanted, or the job is done.
    """

    verdict: Verdict
    code: int
    speaks: bool
    job: str
    attempt: int
    world: int
    nodes: int
    log_dir: str
    started_s: float
    ended_s: float
    notes: tuple[str, ...] = ()
    reason: str = ""
    peaks: tuple[Peak, ...] = ()
    earlier: tuple[Ended, ...] = ()
    queue: str = ""
