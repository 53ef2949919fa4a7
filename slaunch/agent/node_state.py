"""The state of one node's duty, and how long it waits for what; see `agent.node_side`.

    running ──► stopping ──► killing
       │            │           │
       └──► clearing ◄──────────┤        clearing: the workers are gone, what they left behind is not
                └──► ended ◄────┘        ended: nothing is left; the hub is told, the verdict awaited
                       │                 waiting: another attempt is being prepared; then it is running again
                       └──► waiting ──► idle        idle: the attempt begins without this node
                               └──► starting        starting: the workers are about to run
"""

from __future__ import annotations

import signal
from math import inf

from slaunch.agent.messages import Joined, StopAsked
from slaunch.agent.policy import Record
from slaunch.agent.quorum import Bases
from slaunch.agent.values import Failure, Lost, Stuck, Verdict
from slaunch.frozen import dataclass, field

HUB = 0
"""The first hub."""
KILL_S = 10.0
"""How long to wait for killed processes to go; one with much device memory takes seconds to tear down."""
LEFTOVER_S = 2.0
"""What processes left behind get between SIGTERM and SIGKILL once the job is being stopped."""
WAIT_S = 40.0
"""Longer than the hub waits until all nodes are ready for another attempt: they shall hear its verdict, not give their own."""
ANSWER_S = 5.0
"""Margin, beyond what every node may take to stop, for the hub's verdict to arrive."""
REPEAT_S = 0.5
"""Signals closer together than this are one request: srun, the terminal and the scheduler may all deliver it."""
HURRY_S = {signal.SIGINT: 2.0}
HURRY_OTHER_S = 10.0
"""Grace left after a second request to stop: someone at the keyboard presses Ctrl-C again."""

TAILS = 2
"""How many failed workers of a node the hub hears the last lines of."""
STOPS = 2
"""How many signals to stop a new hub hears of."""
SPOKEN = 4
"""How many workers of a node may explain themselves after they had been told to end: the hub need not hear thousands."""

AT_REST = ("ended", "waiting", "idle")
"""Phases in which the node has no workers."""


@dataclass(frozen=True)
class Node:
    """State of one node.

    Attributes:
        index, host: which node; `hub` and `hub_host` are the hub's.
        grace_s: seconds between the request to stop and SIGKILL.
        alive: ranks of its workers that run.
        phase: see the module's picture.
        deadline: when the phase ends by itself, on the monotonic clock.
        ended: workers that ended with code 0.
        failures: workers that ended otherwise, not told to.
        spoken: workers that were told to end, but left an explanation of their own, or that the hub wants to hear.
        wanted: ranks that the hub wants to hear.
        asked_at: when the last signal to stop arrived; inf if none did.
        stopped: the job is being stopped.
        left: what was last seen of the workers' processes.
        verdict: the job's verdict, as soon as it is known here.
        services: ranks of its workers that serve others; they are told to end when all others of the job have ended.
        progress: the furthest step that a worker has told; -1 = none.
        stop_signal: what workers get when slaunch is asked to stop, other than by Ctrl-C; 0 = they only read it.
        abrupt: without the hub the workers are killed at once: the other nodes will go on without this one.
        stops: what the hub was told of signals to stop.
        orphaned: the hub is lost, and another one is looked for.
        hosts: host names by node.
        attempt, agents, record, bases, joined: what another hub has to know; see `Follows`.
        members: nodes of this attempt.
    """

    index: int
    host: str
    hub_host: str
    grace_s: float
    alive: frozenset[int]
    phase: str = "running"
    deadline: float = inf
    ended: int = 0
    failures: tuple[Failure, ...] = ()
    spoken: tuple[Failure, ...] = ()
    wanted: frozenset[int] = frozenset()
    asked_at: float = inf
    stopped: bool = False
    left: tuple[Stuck, ...] = ()
    verdict: Verdict | None = None
    services: frozenset[int] = frozenset()
    progress: int = -1
    abrupt: bool = False
    hub: int = HUB
    stops: tuple[StopAsked, ...] = ()
    orphaned: Lost | None = None
    hosts: tuple[str, ...] = ()
    attempt: int = 0
    agents: tuple[int, ...] = ()
    members: tuple[int, ...] = ()
    record: Record = field(default_factory=Record)
    bases: Bases = field(default_factory=Bases)
    joined: tuple[Joined, ...] = ()
    stop_signal: int = signal.SIGTERM
