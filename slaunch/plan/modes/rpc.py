"""Paddle's rpc jobs (`paddle.distributed.rpc`).

Source: paddlepaddle 2.6.2, the recorded environments of its launcher's workers in tests/data/worker_env/paddle_rpc.json. torch's
own contract stays in force, as `torch.distributed.rpc` reads that one.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan.contracts.paddle import pod_name
from slaunch.plan.endpoints import PADDLE, endpoints, join, master
from slaunch.plan.modes import Mode
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a worker."""
    return {
        "POD_NAME": pod_name(seat),
        "PADDLE_MASTER_ENDPOINT": join(*master(seat.plan, PADDLE)),
        "PADDLE_WORKER_ENDPOINT": endpoints(seat.plan)[seat.rank],
        "PADDLE_TRAINER_ID": str(seat.rank),
        "PADDLE_TRAINERS_NUM": str(seat.plan.world),
        **({"PADDLE_LOG_DIR": seat.plan.log_dir} if seat.plan.log_dir else {}),
    }


MODE = Mode("rpc", variables=variables, contracts=("torch", "slaunch"), replaces=("paddle",))
