"""slaunch: a launcher for distributed training that is native to Slurm and MPI."""

__version__ = "0.1.0"
