"""Horovod, where each task is a worker: it meets by MPI.

Source: horovod 0.28.1, `runner/gloo_run.py` (`create_slot_env_vars`) for the numbers, `common/utils/env_parser.cc` for the
controller. Its other way of meeting, Gloo, needs horovodrun's own HTTP server to run beside the workers; without that each
worker quietly becomes a world of one, so that an agent's workers are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.errors import PlanError
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a Horovod process that MPI connects.

    "Cross" are the workers with the same local rank on other nodes.

    Raises:
        PlanError: an agent starts the workers, so that they have no MPI identity of their own.
    """
    if seat.plan.layout != "task":
        raise PlanError(
            "let Horovod's workers meet",
            "an agent on each node starts them, but Horovod meets by MPI, which knows tasks only",
            "start one task for each worker: srun --mpi=pmix --ntasks-per-node=…, or mpirun -np …",
        )
    across = [node.index for node in seat.plan.nodes if len(node.ranks) > seat.local_rank]
    return {
        "HOROVOD_CONTROLLER": "mpi",
        "HOROVOD_CPU_OPERATIONS": "mpi",
        "HOROVOD_HOSTNAME": seat.node.host,
        "HOROVOD_RANK": str(seat.rank),
        "HOROVOD_SIZE": str(seat.plan.world),
        "HOROVOD_LOCAL_RANK": str(seat.local_rank),
        "HOROVOD_LOCAL_SIZE": str(seat.local_size),
        "HOROVOD_CROSS_RANK": str(across.index(seat.node.index)),
        "HOROVOD_CROSS_SIZE": str(len(across)),
    }
