"""What the supervisor is told, and what it answers: the vocabulary between decisions and effects."""

from __future__ import annotations

from slaunch.agent.messages import Follows, Message
from slaunch.agent.values import Failure, Look, Stuck, Verdict
from slaunch.channel.star import Headless, Succeeded
from slaunch.frozen import dataclass
from slaunch.node.values import Problem

# Events


@dataclass(frozen=True)
class WorkerExited:
    """A worker of this node has ended; `failure` is None if by exit code 0. `progress`: the step last told; -1 = none."""

    rank: int
    failure: Failure | None = None
    progress: int = -1


@dataclass(frozen=True)
class TreeSeen:
    """What is left of the workers' processes, grandchildren included; asked for by `Sweep` or `Kill`."""

    left: tuple[Stuck, ...] = ()


@dataclass(frozen=True)
class StartFailed:
    """Not all workers of this node could be started."""

    problem: Problem


@dataclass(frozen=True)
class WorkersSilent:
    """No worker of this node has said anything for the whole time-out. `looks`: what they do."""

    looks: tuple[Look, ...]


@dataclass(frozen=True)
class WorkersHeard:
    """One of them has said something after all."""


@dataclass(frozen=True)
class SignalArrived:
    """This agent got a signal. `sender`: who sent it, in words; `time_s`: seconds since the epoch."""

    number: int
    sender: str
    time_s: float


@dataclass(frozen=True)
class AgentSaid:
    """A message from another agent, whose clock is `offset_s` ahead of ours."""

    sender: int
    message: Message
    offset_s: float = 0.0


@dataclass(frozen=True)
class AgentGone:
    """The connection to another agent is lost for good.

    Attributes:
        index, why: which agent, and why.
        time_s: when, seconds since the epoch.
        heir: it was the hub, and the channel looks for another one: `Succeeded` or `Headless` will follow.
        silent: nothing was heard of it any more.
    """

    index: int
    why: str
    time_s: float
    heir: bool = False
    silent: bool = False


@dataclass(frozen=True)
class Prepared:
    """New ports are held, and the node's health has been looked at; asked for by `Prepare`."""

    ports: tuple[int, ...]
    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """The plan of the new attempt has been made; asked for by `MakePlan`."""

    digest: str


@dataclass(frozen=True)
class Started:
    """This node's workers of a new attempt have been started; asked for by `StartWorkers`."""

    ranks: frozenset[int]
    services: frozenset[int]


@dataclass(frozen=True)
class Arrived:
    """A node wants to take part in the running job; `token`: what it is called until it has an index; `card`: see `Joined`."""

    token: int
    host: str
    card: str


@dataclass(frozen=True)
class Fenced:
    """The hub cannot be sure any more that no other job of this name begins: this one must end."""

    problem: Problem


@dataclass(frozen=True)
class EndKnown:
    """The scheduler has said how many seconds the job has left. The hub's agent alone asks."""

    left_s: float


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = (
    WorkerExited
    | TreeSeen
    | StartFailed
    | WorkersSilent
    | WorkersHeard
    | SignalArrived
    | AgentSaid
    | AgentGone
    | Succeeded
    | Headless
    | Prepared
    | Planned
    | Started
    | Arrived
    | Fenced
    | EndKnown
    | Tick
)

# Actions


@dataclass(frozen=True)
class SignalWorkers:
    """Send a stop signal to the process group of every worker that still runs."""

    number: int


@dataclass(frozen=True)
class Ask:
    """Let workers read that they are asked to save and end, and pass a signal on to those that catch it; 0 = none."""

    number: int
    reason: str


@dataclass(frozen=True)
class ShowEnd:
    """Let workers read how many seconds the job has left."""

    left_s: float


@dataclass(frozen=True)
class Suspend:
    """Stop the workers, then this agent, until SIGCONT; as a shell does with its job."""


@dataclass(frozen=True)
class Resume:
    """Let workers go on."""


@dataclass(frozen=True)
class Sweep:
    """SIGTERM to what the workers left behind, and keep telling what remains."""


@dataclass(frozen=True)
class Kill:
    """SIGKILL to every process that stems from a worker, and keep doing so and telling what remains."""


@dataclass(frozen=True)
class Tell:
    """Send a message to one agent."""

    to: int
    message: Message


@dataclass(frozen=True)
class TellAll:
    """Send a message to every agent but this one."""

    message: Message


@dataclass(frozen=True)
class Prepare:
    """Put away what is left of the last attempt, which ended as `verdict` says, and hold new ports.

    Attributes:
        attempt: number of the new attempt.
        members: its nodes.
        delay_s: it starts so much later, or later still.
        verdict: how the last one ended.
        leads: this agent is the hub, and tells the user.
    """

    attempt: int
    members: tuple[int, ...]
    delay_s: float
    verdict: Verdict
    leads: bool = False


@dataclass(frozen=True)
class MakePlan:
    """Make the plan of the new attempt, with these nodes and their ports."""

    ports: tuple[tuple[int, ...], ...]
    members: tuple[int, ...]


@dataclass(frozen=True)
class StartWorkers:
    """Start this node's workers of that plan."""


@dataclass(frozen=True)
class Enrol:
    """Agent `index` belongs to the job from now on; see `Joined`."""

    index: int
    host: str
    card: str


@dataclass(frozen=True)
class Admit:
    """Let the node `token` that has arrived know that it is agent `index`, and where the job stands.

    Attributes:
        follows: what it has to know of the attempt that runs or is prepared.
        peers: all agents that are there, the new one included.
    """

    token: int
    index: int
    follows: Follows
    peers: tuple[int, ...]


@dataclass(frozen=True)
class Blame:
    """Nodes that have shown a fault, and which: tell the user, and remember it for later jobs."""

    faults: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Finish:
    """End this agent with the verdict."""

    verdict: Verdict


Action = (
    SignalWorkers
    | Ask
    | ShowEnd
    | Suspend
    | Resume
    | Sweep
    | Kill
    | Tell
    | TellAll
    | Prepare
    | MakePlan
    | StartWorkers
    | Enrol
    | Admit
    | Blame
    | Finish
)
