"""DeepSpeed.

Source: deepspeed 0.19.8, `launcher/launch.py` sets these for each process; `comm/comm.py` (`init_distributed`) looks for MPI
unless RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are all there.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan import env_init
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a worker of the `deepspeed` launcher."""
    return env_init.variables(seat) | {
        "LOCAL_SIZE": str(seat.local_size),
        "CROSS_RANK": str(seat.node.index),
        "CROSS_SIZE": str(len(seat.plan.nodes)),
    }
