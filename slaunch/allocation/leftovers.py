"""Worker variables that another launcher, or the user's profile, left around slaunch."""

from __future__ import annotations

from slaunch.allocation.reader import Env, shown

WORKER = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "NODE_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "PADDLE_TRAINER_ID",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_CURRENT_ENDPOINT",
    "PADDLE_MASTER",
    "JAX_COORDINATOR_ADDRESS",
    "JAX_PROCESS_ID",
    "HOROVOD_RANK",
)


def warnings(env: Env) -> tuple[str, ...]:
    """Return a warning that names the worker variables found; slaunch replaces them and never takes a rank from them."""
    found = shown(env, *WORKER)
    return (f"{found}: left over from another launcher or a profile; not used, and replaced for the workers",) if found else ()
