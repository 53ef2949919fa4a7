"""JAX: `jax.distributed.initialize()` without arguments.

Source: jax 0.10.2, `_src/distributed.py` (`State.initialize`) and `_src/clusters/`. JAX reads coordinator and devices from
JAX_… variables, but number and count of processes only from a cluster that it detects: Open MPI 4 (OMPI_MCA_orte_hnp_uri), then
Slurm (five variables). Where neither is there, this contract gives it Slurm's five (of the hosts only the first, all that it
looks for). JAX's own choices of a coordinator, the first host name of a list and a port from the job's number, are not used
(P1, P28).
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan.endpoints import COORDINATOR, join, master, without_proxy
from slaunch.plan.seat import Seat

SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
OPENMPI = "OMPI_MCA_orte_hnp_uri"


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a JAX process.

    JAX_NUM_PROCESSES and JAX_PROCESS_ID are for programs that pass them on; JAX itself does not read them.
    """
    address, port = master(seat.plan, COORDINATOR)
    values = {
        "JAX_COORDINATOR_ADDRESS": join(address, port),
        "JAX_NUM_PROCESSES": str(seat.plan.world),
        "JAX_PROCESS_ID": str(seat.rank),
    }
    if seat.devices:
        values["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, seat.positions))
    return values | detectable(seat, env) | without_proxy(env, [address])


def detectable(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Slurm's five variables, with the worker's values, unless JAX detects Open MPI or Slurm all the same."""
    if all(name in env for name in SLURM) or (OPENMPI in env and seat.plan.layout == "task"):
        return {}
    return {
        "SLURM_JOB_ID": env.get("SLURM_JOB_ID", "0"),
        "SLURM_STEP_NODELIST": env.get("SLURM_STEP_NODELIST", seat.plan.nodes[0].host),
        "SLURM_NTASKS": str(seat.plan.world),
        "SLURM_PROCID": str(seat.rank),
        "SLURM_LOCALID": str(seat.local_rank),
    }
