"""The result of the meeting."""

from __future__ import annotations

from slaunch.frozen import dataclass
from slaunch.node.values import NodeFacts


@dataclass(frozen=True)
class Membership:
    """Who is in the job: every task's facts, in task-rank order, the same on all of them.

    Attributes:
        facts: one entry per task.
        rank: index of this task.
        epoch: number of the meeting within the job, from 0.
        way: back end that made it: "mpi", "slurm", "none" (one task only), …
        reason: one line on why this way was taken.
        secret: the job's secret for the agents' channel. Never printed, never in a plan.
        mark: what the meeting has left where it was; see `gather.StarGatherer`.
    """

    facts: tuple[NodeFacts, ...]
    rank: int
    epoch: int
    way: str
    reason: str
    secret: bytes
    mark: str = ""
