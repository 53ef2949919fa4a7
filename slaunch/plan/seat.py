"""A worker's place in the plan: what every contract and rule is asked about."""

from __future__ import annotations

from functools import lru_cache

from slaunch.errors import PlanError
from slaunch.frozen import dataclass
from slaunch.node.values import Device
from slaunch.options import Options
from slaunch.plan.values import NodePlan, Plan


@dataclass(frozen=True)
class Seat:
    """One worker's place.

    Attributes:
        plan: the whole job.
        node: its node.
        rank: its global rank.
        local_rank: its number on the node.
        options: what the user asked for.
    """

    plan: Plan
    node: NodePlan
    rank: int
    local_rank: int
    options: Options

    @property
    def devices(self) -> tuple[Device, ...]:
        """Its devices; () for a CPU worker."""
        return self.node.devices[self.local_rank]

    @property
    def view(self) -> tuple[str, ...]:
        """Labels that its visible list is rewritten to; () = left as found."""
        return self.node.views[self.local_rank] if self.node.views else ()

    @property
    def positions(self) -> tuple[int, ...]:
        """Where its devices stand in the visible list that it will see, which is what frameworks count by (P47)."""
        view = self.view
        if view:
            return tuple(view.index(device.label) for device in self.devices)
        return tuple(device.position for device in self.devices)

    @property
    def role(self) -> str:
        """Its role; "worker" where all are alike."""
        return self.node.roles[self.local_rank] if self.node.roles else "worker"

    @property
    def number(self) -> int:
        """Its number among all workers of its role; its rank where all are alike."""
        return self.node.numbers[self.local_rank] if self.node.roles else self.rank

    @property
    def local_size(self) -> int:
        """Number of workers on its node."""
        return len(self.node.ranks)


def take_seat(plan: Plan, rank: int, options: Options) -> Seat:
    """Find worker `rank`.

    Raises:
        PlanError: if the plan has no such worker.
    """
    if not 0 <= rank < plan.world:
        raise PlanError(
            f"prepare worker {rank}", f"a plan of {plan.world} workers", f"ask for a rank from 0 to {plan.world - 1}"
        )
    node, local_rank = next((node, node.ranks.index(rank)) for node in plan.nodes if rank in node.ranks)
    return Seat(plan, node, rank, local_rank, options)


@lru_cache(maxsize=2)
def homes(plan: Plan) -> tuple[tuple[NodePlan, int], ...]:
    """(node, local rank) of every worker, by rank."""
    found: list[tuple[NodePlan, int]] = [(plan.nodes[0], 0)] * plan.world
    for node in plan.nodes:
        for local_rank, rank in enumerate(node.ranks):
            found[rank] = (node, local_rank)
    return tuple(found)
