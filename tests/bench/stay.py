"""A worker that notes when it began, and stays."""

import os
import sys
import time

now = repr(time.time())
attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
if attempt == "0" and os.path.exists(f"{os.environ['PLACE']}/began.0.{rank}"):
    attempt = "new"  # a new world whose launcher calls it the first attempt again
path = f"{os.environ['PLACE']}/began.{attempt}.{rank}"
with open(f"{path}.part", "w") as file:
    file.write(now)
os.replace(f"{path}.part", path)
time.sleep(600)
sys.exit(0)
