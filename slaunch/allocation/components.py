"""Components of a heterogeneous Slurm job: which of them a node belongs to."""

from __future__ import annotations

from slaunch.allocation import hostlist
from slaunch.allocation.reader import Env, first_of, number

UNKNOWN = -1
STEMS = ("HET", "PACK")
"""srun that makes the job itself sets the older names (recorded on Slurm 22.05)."""


def component_of(env: Env, host: str) -> int:
    """Return the number of the component whose nodes include this one; -1 in a job without components.

    A step that runs on some of the components keeps the job's numbers, those of `srun --het-group`.

    Args:
        env: this process's environment.
        host: this machine's name, where Slurm does not tell the node's.
    """
    size = number(env, "SLURM_HET_SIZE") if env.get("SLURM_HET_SIZE") else 0
    own = env.get("SLURMD_NODENAME") or host
    for index in range(size):
        name = first_of(env, *(f"SLURM_JOB_NODELIST_{stem}_GROUP_{index}" for stem in STEMS))
        if env.get(name) and own in hostlist.expand(env[name], name):
            return index
    return UNKNOWN
