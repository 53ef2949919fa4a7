"""A PyTorch program that sums over all workers again and again. It notes when it begins and when its first sum is there; rank 3
crashes when it is told to, once."""

import os
import time

place, rank, world = os.environ["PLACE"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
notes = os.open(f"{place}/notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)


def note(what):
    slot = f"{os.uname().nodename}.{os.environ['LOCAL_RANK']}"
    os.write(notes, f"{what} {time.time()} {slot} {world} {os.getpid()} {os.environ['TORCHELASTIC_RESTART_COUNT']}\n".encode())


note("begin")
from datetime import timedelta  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=timedelta(seconds=float(os.environ["TIMEOUT_S"])))
first = True
while True:
    values = torch.tensor([1.0, float(rank == 0 and os.path.exists(f"{place}/end"))])
    dist.all_reduce(values)
    if values[1]:
        break
    if first:
        note("step")
        first = False
    if rank == 3 and os.path.exists(f"{place}/crash"):
        os.rename(f"{place}/crash", f"{place}/crashed")
        note("crash")
        os._exit(5)
    time.sleep(0.02)
dist.barrier()
dist.destroy_process_group()
