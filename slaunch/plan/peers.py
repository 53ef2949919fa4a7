"""The list of all workers, for programs that follow no framework's contract."""

from __future__ import annotations

import json
from functools import lru_cache

from slaunch.plan.endpoints import endpoints
from slaunch.plan.seat import Seat
from slaunch.plan.values import EnvFile, Plan


def files(seat: Seat) -> tuple[EnvFile, ...]:
    """SLAUNCH_PEERS_FILE, if slaunch's own contract is in force."""
    return (EnvFile("SLAUNCH_PEERS_FILE", "peers.json", listed(seat.plan)),) if "slaunch" in seat.plan.contracts else ()


@lru_cache(maxsize=2)
def listed(plan: Plan) -> str:
    """JSON: the job's name, attempt and size, and each node's host, address, and the ranks and endpoints of its workers."""
    all_endpoints = endpoints(plan)
    nodes = [
        {
            "host": node.host,
            "address": node.address.ip,
            "ranks": node.ranks,
            "endpoints": [all_endpoints[rank] for rank in node.ranks],
        }
        for node in plan.nodes
    ]
    return json.dumps({"job": plan.job, "attempt": plan.attempt, "world_size": plan.world, "nodes": nodes}, separators=(",", ":"))
