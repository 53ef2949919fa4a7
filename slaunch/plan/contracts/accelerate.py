"""Hugging Face Accelerate.

Source: accelerate 1.15.0, `state.py` (`PartialState._prepare_backend`) and `utils/environment.py`
(`get_cpu_distributed_information`): LOCAL_RANK is the sign of a distributed run, but without a device only if CPU use was asked
for; else each worker is a world of one.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan import env_init
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """What Accelerate reads where `accelerate launch` did not start it; the user's own ACCELERATE_… settings stay."""
    cpu = {} if seat.devices else {"ACCELERATE_USE_CPU": "true"}
    return env_init.variables(seat) | cpu
