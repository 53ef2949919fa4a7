"""A worker that notes when it starts; one of them ends with an error once all run, as long as it is the first attempt."""

import os
import sys
import time

began = time.time()
place, rank, world = os.environ["PLACE"], os.environ["RANK"], int(os.environ["WORLD_SIZE"])
attempt = "1" if os.path.exists(f"{place}/crashed") else "0"  # torchrun's own count is not the same on all nodes
with open(f"{place}/part.{attempt}.{rank}", "w") as file:
    file.write(repr(began))
os.rename(f"{place}/part.{attempt}.{rank}", f"{place}/began.{attempt}.{rank}")
while sum(name.startswith(f"began.{attempt}.") for name in os.listdir(place)) < world:
    time.sleep(0.01)
if attempt == "0":
    time.sleep(2 if rank == "3" else 600)
    with open(f"{place}/crashed.part", "w") as file:
        file.write(repr(time.time()))
    os.rename(f"{place}/crashed.part", f"{place}/crashed")
    os._exit(5)
sys.exit(0)
