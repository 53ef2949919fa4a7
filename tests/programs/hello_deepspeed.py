"""DeepSpeed finds its world without MPI; all processes add up their numbers."""

import os

os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed
import torch
from deepspeed import comm

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # else it compiles that for a minute
deepspeed.init_distributed(dist_backend="gloo")
number = torch.tensor([comm.get_rank()])
comm.all_reduce(number)
assert comm.get_local_rank() == int(os.environ["SLAUNCH_LOCAL_RANK"])
os.write(1, f"hello {comm.get_rank()} {comm.get_world_size()} {int(number)}\n".encode())
comm.destroy_process_group()
