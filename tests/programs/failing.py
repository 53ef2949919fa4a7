"""All workers run until they are told to stop, and note that in a file; one fails on its own after a while.

failing.py FOLDER RANK CODE SECONDS
"""

import os
import signal
import sys
import time

folder, failing, code, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
rank = os.environ["RANK"]


def stop(number: int, frame: object) -> None:
    with open(f"{folder}/told.{rank}", "w") as file:
        file.write(str(number))
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
with open(f"{folder}/up.{rank}", "w") as file:
    file.write(str(os.getpid()))
deadline = time.monotonic() + (seconds if rank == failing else 60)
while time.monotonic() < deadline:
    time.sleep(0.05)
print(f"rank {rank}: these are my last words", file=sys.stderr, flush=True)
sys.exit(code if rank == failing else 99)
