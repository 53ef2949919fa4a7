"""PyTorch: the variables of torchrun.

Source: torch 2.13, `torch/distributed/elastic/agent/server/local_elastic_agent.py` (`_start_workers`, `_set_local_rank_env`)
and the recorded environments of its workers in tests/data/worker_env. torchrun also sets OMP_NUM_THREADS=1, where slaunch has a
better rule (`plan/share.py`), and TORCHELASTIC_ERROR_FILE, which only its own agent reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan.endpoints import TORCH, master
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a torchrun worker.

    LOCAL_RANK is the local rank, and with it the index of the worker's device. With `--visible virtual` it is 0, as with
    torchrun's `--virtual-local-rank`: the worker sees one device only, and scripts take LOCAL_RANK for its index.
    """
    address, port = master(seat.plan, TORCH)
    world, nodes = str(seat.plan.world), str(len(seat.plan.nodes))
    return {
        "RANK": str(seat.rank),
        "LOCAL_RANK": "0" if seat.options.visible == "virtual" else str(seat.local_rank),
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": str(seat.local_size),
        "GROUP_RANK": str(seat.node.index),
        "GROUP_WORLD_SIZE": nodes,
        "NODE_RANK": str(seat.node.index),
        "ROLE_RANK": str(seat.rank),
        "ROLE_WORLD_SIZE": world,
        "ROLE_NAME": "default",
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": str(seat.plan.attempt),
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": seat.plan.job,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": env.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }
