"""Print what this worker knows of its place, as one line of JSON, and wait a moment if asked."""

import json
import os
import sys
import time

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "PADDLE_TRAINER_ID")
NAMES += ("PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT", "SLAUNCH_RANK", "SLAUNCH_LOCAL_DEVICE")
NAMES += ("CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "SLURM_JOB_ID", "MARK")
place = {name: os.environ.get(name) for name in NAMES}
print("world", json.dumps({**place, "host": os.uname().nodename, "cpus": len(os.sched_getaffinity(0))}), flush=True)
if len(sys.argv) > 1:
    time.sleep(float(sys.argv[1]))
