"""PyTorch: the variables of torchrun.

Source: torch 2.13, `torch/distributed/elastic/agent/server/local_elastic_agent.py` (`_start_workers`, `_set_local_rank_env`)
and the recorded environments of its workers in tests/data/worker_env. torchrun also sets OMP_NUM_THREADS=1, where slaunch has a
better rule (`plan/threads.py`). TORCHELASTIC_ERROR_FILE is where a program decorated with torch's `record` writes what ended it;
the agent puts that in its report. NODE_RANK is not torchrun's, but many scripts and Lightning read it.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan import env_init
from slaunch.plan.commands import command_of
from slaunch.plan.modes.logs import log_name
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a torchrun worker."""
    return env_init.variables(seat) | error_file(seat) | {
        "GROUP_RANK": str(seat.node.index),
        "GROUP_WORLD_SIZE": str(len(seat.plan.nodes)),
        "NODE_RANK": str(seat.node.index),
        "ROLE_RANK": str(seat.rank),
        "ROLE_WORLD_SIZE": str(seat.plan.world),
        "ROLE_NAME": command_of(seat.plan, seat.rank).name or seat.options.role,
        "TORCHELASTIC_RESTART_COUNT": str(seat.plan.attempt),
        "TORCHELASTIC_MAX_RESTARTS": str(seat.options.max_restarts),
        "TORCHELASTIC_RUN_ID": seat.plan.job,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": env.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }


def error_file(seat: Seat) -> dict[str, str]:
    """Where the worker tells its last exception: beside its log. Nobody would read it where the task itself is the worker."""
    if not seat.plan.log_dir:
        return {}
    return {"TORCHELASTIC_ERROR_FILE": f"{seat.plan.log_dir}/{log_name(seat)}.error.json"}
