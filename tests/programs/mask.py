"""Print where this worker may run, as one line of JSON."""

import json
import os

RANKS = ("RANK", "LOCAL_RANK")
DEVICES = ("CUDA_VISIBLE_DEVICES", "SLAUNCH_LOCAL_DEVICE", "FLAGS_selected_gpus")
NAMES = (*RANKS, *DEVICES, "SLURM_CPU_BIND_LIST", "OMP_NUM_THREADS")
place = {name: os.environ.get(name) for name in NAMES}
with open("/proc/self/numa_maps") as file:
    memory = file.readline().split()[1]
mine = {"host": os.uname().nodename, "cpus": sorted(os.sched_getaffinity(0)), "memory": memory}
print("mask", json.dumps({**place, **mine}), flush=True)
