"""Print where this worker may run, as one line of JSON."""

import json
import os

NAMES = ("RANK", "SLURM_CPU_BIND_LIST", "CUDA_VISIBLE_DEVICES", "SLAUNCH_LOCAL_DEVICE", "FLAGS_selected_gpus", "OMP_NUM_THREADS")
place = {name: os.environ.get(name) for name in NAMES}
print("mask", json.dumps({**place, "host": os.uname().nodename, "cpus": sorted(os.sched_getaffinity(0))}), flush=True)
