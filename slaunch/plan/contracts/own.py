"""slaunch's own variables, for programs that follow no framework's contract. Documented in docs/worker-environment.md."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan.endpoints import endpoints
from slaunch.plan.seat import Seat
from slaunch.plan.staged import folder


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Numbers of the worker, its job and its devices.

    SLAUNCH_LOCAL_DEVICE is the position of its device in the visible list (several: comma-separated; empty: none), which
    differs from the local rank where each task sees a device of its own.
    """
    plan = seat.plan
    staged = {"SLAUNCH_STAGE_DIR": folder(seat.options, plan.job)} if seat.options.stage else {}
    return staged | {
        "SLAUNCH_RANK": str(seat.rank),
        "SLAUNCH_WORLD_SIZE": str(plan.world),
        "SLAUNCH_LOCAL_RANK": str(seat.local_rank),
        "SLAUNCH_LOCAL_WORLD_SIZE": str(seat.local_size),
        "SLAUNCH_NODE_RANK": str(seat.node.index),
        "SLAUNCH_NNODES": str(len(plan.nodes)),
        "SLAUNCH_ATTEMPT": str(plan.attempt),
        "SLAUNCH_JOB": plan.job,
        "SLAUNCH_LOCAL_DEVICE": ",".join(map(str, seat.positions)),
        "SLAUNCH_ADDRESS": seat.node.address.ip,
        "SLAUNCH_ENDPOINT": endpoints(plan)[seat.rank],
        "SLAUNCH_FIRST_ENDPOINT": endpoints(plan)[0],
    }
