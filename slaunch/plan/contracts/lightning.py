"""Lightning (Fabric and Trainer): it must neither start workers itself nor take Slurm's variables for its own.

Source: lightning 2.6.6, `fabric/connector.py` (`_choose_and_init_cluster_environment`) asks its environments in the order
TorchElastic, SLURM, LSF, MPI. `plugins/environments/torchelastic.py` takes TORCHELASTIC_RUN_ID for the sign and reads the rest
here; the one for Slurm would parse host lists by regular expression and refuse a step without `--ntasks-per-node`.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan import env_init
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """What Lightning's TorchElasticEnvironment reads."""
    return env_init.variables(seat) | {
        "GROUP_RANK": str(seat.node.index),
        "NODE_RANK": str(seat.node.index),
        "TORCHELASTIC_RUN_ID": seat.plan.job,
    }
