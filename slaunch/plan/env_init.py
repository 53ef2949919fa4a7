"""What `torch.distributed.init_process_group(init_method="env://")` reads: the common ground of all PyTorch launchers.

Source: torch 2.13, `torch/distributed/rendezvous.py` (`_env_rendezvous_handler`).
"""

from __future__ import annotations

from slaunch.plan.endpoints import TORCH, master
from slaunch.plan.seat import Seat


def variables(seat: Seat) -> dict[str, str]:
    """Rank, world and master of the process group.

    LOCAL_RANK is the local rank, and with it the index of the worker's device. With `--visible virtual` it is 0, as with
    torchrun's `--virtual-local-rank`: the worker sees one device only, and scripts take LOCAL_RANK for its index.
    """
    address, port = master(seat.plan, TORCH)
    return {
        "RANK": str(seat.rank),
        "LOCAL_RANK": "0" if seat.options.visible == "virtual" else str(seat.local_rank),
        "WORLD_SIZE": str(seat.plan.world),
        "LOCAL_WORLD_SIZE": str(seat.local_size),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }
