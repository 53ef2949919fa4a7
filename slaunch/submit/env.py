"""The environment that sbatch gets, and with `--export=ALL` the job.

A job that is submitted from inside another one, or by a worker, must not be steered by that: what Slurm, MPI and slaunch have set
for that job goes. `SBATCH_…` variables are options of sbatch; they have been read as such, and are in the script.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan.hygiene import drops

SLURM = ("SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_")
KEPT = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
"""Which controller to ask, and how Slurm's tools print."""
DEVICES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK")
SETTINGS = "SLAUNCH_*"
"""Outside a job these are the user's settings, which hold in the job as on the command line."""


def for_job(env: Mapping[str, str]) -> dict[str, str]:
    """The environment for sbatch."""
    inside = "SLURM_JOB_ID" in env or "SLAUNCH_MARK" in env
    dropped = set(drops(env, "agent", keep=() if inside else (SETTINGS,)))
    if inside:
        dropped |= set(DEVICES)
    return {
        name: value
        for name, value in env.items()
        if name in KEPT or not (name in dropped or name.startswith(SLURM))
    }
