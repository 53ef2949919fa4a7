"""Lightning takes the workers that are there and starts none; all add up their numbers."""

import os

import lightning
import torch

devices, nodes = int(os.environ["SLAUNCH_LOCAL_WORLD_SIZE"]), int(os.environ["SLAUNCH_NNODES"])
fabric = lightning.Fabric(accelerator="cpu", devices=devices, num_nodes=nodes, strategy="ddp")
fabric.launch()
assert type(fabric.strategy.cluster_environment).__name__ == "TorchElasticEnvironment"
assert fabric.local_rank == int(os.environ["SLAUNCH_LOCAL_RANK"])
ranks = fabric.all_gather(torch.tensor(fabric.global_rank))
os.write(1, f"hello {fabric.global_rank} {fabric.world_size} {int(ranks.sum())}\n".encode())
