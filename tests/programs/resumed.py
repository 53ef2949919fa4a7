"""At its first start run until somebody ends it; when Slurm starts it again, end with the exit code given.

An array's task and a job without such a code (none, or "none") end at once: rank 0 with the number of the task.
"""

import os
import signal
import sys
import time


def stop(number: int, frame: object) -> None:
    print("saved", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
start, task = os.environ.get("SLURM_RESTART_COUNT", "0"), os.environ.get("SLURM_ARRAY_TASK_ID")
print(f"start {start} of task {task}, rank {os.environ['RANK']}", flush=True)
code = sys.argv[1] if len(sys.argv) > 1 else "none"
if task is not None or code == "none":
    sys.exit(int(task or 0) if os.environ["RANK"] == "0" else 0)
while start == "0":
    time.sleep(0.1)
sys.exit(int(code))
