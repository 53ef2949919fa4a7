"""slaunch: a launcher for distributed training that is native to Slurm and MPI.

    slaunch.launch("train.py", "--lr", "0.1", nproc_per_node=2)     start a job from Python; see `slaunch.api`
    slaunch.worker.rank()                                           inside a worker; see `slaunch.worker`
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch import worker as worker
    from slaunch.api import launch as launch


def __getattr__(name: str) -> object:
    """Load the Python interface when it is asked for: starting the program must not pay for it."""
    from importlib import import_module

    if name == "worker":
        return import_module("slaunch.worker")
    if name == "launch":
        return import_module("slaunch.api").launch
    raise AttributeError(f"module 'slaunch' has no attribute {name!r}")
