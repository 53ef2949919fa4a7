"""What agents say to each other while workers run, and its form on the wire.

    spoke → hub    WorkerFailed, StopAsked, CannotStart   at once
                   ClientsDone                            when only services still run on the node
                   Silent, Heard                          when no worker of the node has said anything for long, and when one has
                   NodeEnded                              when nothing of the node's workers is left
                   Ready, PlanMade                        while another attempt is prepared: see `agent.renewal`
                   SaveAsked                              a signal asks that workers save: see `agent.asking`
                   Remark, Used, Seen, Shown              news that no decision depends on
                   Follows                                to a new hub, before all that the old one was told
    hub → spokes   StopWorkers                            everybody stops
                   SaveNow, EndsIn                        workers shall save; the time that the job has left
                   Joined                                 a node has come to the running job
                   NewAttempt, Ports, Begin               another attempt, instead of the verdict
                   Decided                                the verdict: everybody ends with it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slaunch.agent.policy import Record
from slaunch.agent.quorum import Bases
from slaunch.agent.seen import Sight
from slaunch.agent.values import Failure, Look, Lost, Peak, Stopped, Stuck, Verdict
from slaunch.frozen import asdict, dataclass, field
from slaunch.node.values import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class WorkerFailed:
    """A worker ended other than by code 0, not told to."""

    failure: Failure


@dataclass(frozen=True)
class StopAsked:
    """An agent got a signal that asks it to stop the job, and gives its workers `grace_s`."""

    stopped: Stopped
    grace_s: float


@dataclass(frozen=True)
class SaveAsked:
    """An agent got a signal that asks the workers to save, and to end if they can."""

    stopped: Stopped


@dataclass(frozen=True)
class SaveNow:
    """All workers shall save, and end if they can. `signal`: which to pass on to those that catch it, 0 = none; `reason`: why."""

    signal: int
    reason: str


@dataclass(frozen=True)
class EndsIn:
    """So many seconds are left of the job's time."""

    left_s: float


@dataclass(frozen=True)
class CannotStart:
    """A node could not start its workers."""

    problem: Problem


@dataclass(frozen=True)
class ClientsDone:
    """All workers of a node have ended with code 0, except services."""


@dataclass(frozen=True)
class Silent:
    """No worker of a node has said anything for the whole time-out; what they do. Services count only for themselves."""

    looks: tuple[Look, ...]


@dataclass(frozen=True)
class Heard:
    """A worker of a node that was silent has said something."""


@dataclass(frozen=True)
class NodeEnded:
    """All workers of a node have ended.

    Attributes:
        ended: how many of them with code 0.
        stuck: processes that cannot be killed.
        spoken: workers that ended after they had been told to, but left an explanation of their own.
        progress: the furthest step that one of them has told; -1 = none.
    """

    ended: int
    stuck: tuple[Stuck, ...] = ()
    spoken: tuple[Failure, ...] = ()
    progress: int = -1


@dataclass(frozen=True)
class Remark:
    """Something of a node that the user may want to know."""

    text: str


@dataclass(frozen=True)
class Used:
    """The most memory that each of a node's workers held."""

    peaks: tuple[Peak, ...]


@dataclass(frozen=True)
class Seen:
    """What a node's workers of this attempt do."""

    attempt: int
    sights: tuple[Sight, ...]


@dataclass(frozen=True)
class Shown:
    """Whole lines of a node's workers for the console of the hub."""

    text: str


@dataclass(frozen=True)
class StopWorkers:
    """Stop all workers: `signal` now, SIGKILL `grace_s` later. Of the ranks in `wanted` the last words are asked for."""

    signal: int
    grace_s: float
    wanted: tuple[int, ...] = ()


@dataclass(frozen=True)
class NewAttempt:
    """All workers have ended as `verdict` says; those of the nodes in `members` that are fit will start anew in `delay_s` or
    later. `record`, `bases`: what another agent must know that has to go on from here; times are relative to now."""

    attempt: int
    members: tuple[int, ...]
    delay_s: float
    verdict: Verdict
    record: Record = field(default_factory=Record)
    bases: Bases = field(default_factory=Bases)


@dataclass(frozen=True)
class Ready:
    """Nothing of the last attempt is left on a node, and it holds new ports. `faults`, `doubts`: as in `node.health`."""

    ports: tuple[int, ...]
    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ports:
    """The new ports of all members, in their order. A node that is none of them waits."""

    ports: tuple[tuple[int, ...], ...]
    members: tuple[int, ...]


@dataclass(frozen=True)
class PlanMade:
    """The digest of a node's plan of the new attempt."""

    digest: str


@dataclass(frozen=True)
class Joined:
    """A node has come to the running job as agent `index`, and waits. `card`: its facts, as at a meeting, in JSON."""

    index: int
    host: str
    card: str


@dataclass(frozen=True)
class Begin:
    """All plans are the same: start the workers."""


@dataclass(frozen=True)
class Follows:
    """A node has come to the new hub.

    Attributes:
        attempt: number of the last attempt that it knows of.
        agents: who stood together when that was prepared.
        members: nodes of the last attempt that ran.
        record, bases: as in `NewAttempt`.
        joined: nodes of which it was told that they have come to the running job.
    """

    attempt: int
    agents: tuple[int, ...]
    members: tuple[int, ...]
    record: Record
    bases: Bases = field(default_factory=Bases)
    joined: tuple[Joined, ...] = ()


@dataclass(frozen=True)
class Decided:
    """The job is over for everybody."""

    verdict: Verdict


Message = (
    WorkerFailed
    | StopAsked
    | SaveAsked
    | SaveNow
    | EndsIn
    | CannotStart
    | ClientsDone
    | Silent
    | Heard
    | NodeEnded
    | Remark
    | Used
    | Seen
    | Shown
    | StopWorkers
    | NewAttempt
    | Ready
    | Ports
    | PlanMade
    | Joined
    | Begin
    | Follows
    | Decided
)


def pack(message: Message) -> dict[str, Any]:
    """The message as a JSON object."""
    return {"say": type(message).__name__, **asdict(message)}


def unpack(body: Mapping[str, Any]) -> Message:
    """The message that `pack` made into `body`.

    Raises:
        ValueError: if it is none.
    """
    fields = dict(body)
    try:
        return _MAKERS[fields.pop("say")](fields)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a message between agents of this version: {str(body)[:80]}") from error


def _failure(fields: dict[str, Any]) -> Failure:
    return Failure(**{**fields, "tail": tuple(fields["tail"])})


def _verdict(fields: dict[str, Any]) -> Verdict:
    return Verdict(
        **{
            **fields,
            "first": _failure(fields["first"]) if fields["first"] else None,
            "others": tuple(map(_failure, fields["others"])),
            "joined": tuple(fields["joined"]),
            "lost": tuple(Lost(**lost) for lost in fields["lost"]),
            "stopped": Stopped(**fields["stopped"]) if fields["stopped"] else None,
            "asked": Stopped(**fields["asked"]) if fields["asked"] else None,
            "problem": Problem(**fields["problem"]) if fields["problem"] else None,
            "stuck": _stuck(fields["stuck"]),
            "hung": tuple(Look(**look) for look in fields["hung"]),
        }
    )


def _record(fields: dict[str, Any]) -> Record:
    return Record(**{**fields, "restarts": tuple(fields["restarts"])})


def _bases(fields: dict[str, Any]) -> Bases:
    return Bases(fields["settled"], tuple((attempt, tuple(base)) for attempt, base in fields["counted"]))


def _stuck(entries: list[dict[str, Any]]) -> tuple[Stuck, ...]:
    return tuple(Stuck(**entry) for entry in entries)


_MAKERS: dict[str, Callable[[dict[str, Any]], Message]] = {
    "WorkerFailed": lambda fields: WorkerFailed(_failure(fields["failure"])),
    "StopAsked": lambda fields: StopAsked(Stopped(**fields["stopped"]), fields["grace_s"]),
    "SaveAsked": lambda fields: SaveAsked(Stopped(**fields["stopped"])),
    "SaveNow": lambda fields: SaveNow(**fields),
    "EndsIn": lambda fields: EndsIn(**fields),
    "CannotStart": lambda fields: CannotStart(Problem(**fields["problem"])),
    "ClientsDone": lambda fields: ClientsDone(),
    "NodeEnded": lambda fields: NodeEnded(
        fields["ended"], _stuck(fields["stuck"]), tuple(map(_failure, fields["spoken"])), fields["progress"]
    ),
    "Silent": lambda fields: Silent(tuple(Look(**look) for look in fields["looks"])),
    "Heard": lambda fields: Heard(**fields),
    "Remark": lambda fields: Remark(**fields),
    "Seen": lambda fields: Seen(fields["attempt"], tuple(Sight(**sight) for sight in fields["sights"])),
    "Shown": lambda fields: Shown(**fields),
    "Used": lambda fields: Used(tuple(Peak(**peak) for peak in fields["peaks"])),
    "StopWorkers": lambda fields: StopWorkers(**{**fields, "wanted": tuple(fields["wanted"])}),
    "NewAttempt": lambda fields: NewAttempt(
        fields["attempt"],
        tuple(fields["members"]),
        fields["delay_s"],
        _verdict(fields["verdict"]),
        _record(fields["record"]),
        _bases(fields["bases"]),
    ),
    "Follows": lambda fields: Follows(
        fields["attempt"],
        tuple(fields["agents"]),
        tuple(fields["members"]),
        _record(fields["record"]),
        _bases(fields["bases"]),
        tuple(Joined(**joined) for joined in fields["joined"]),
    ),
    "Ready": lambda fields: Ready(tuple(fields["ports"]), tuple(fields["faults"]), tuple(fields["doubts"])),
    "Ports": lambda fields: Ports(tuple(map(tuple, fields["ports"])), tuple(fields["members"])),
    "PlanMade": lambda fields: PlanMade(**fields),
    "Joined": lambda fields: Joined(**fields),
    "Begin": lambda fields: Begin(),
    "Decided": lambda fields: Decided(_verdict(fields["verdict"])),
}
