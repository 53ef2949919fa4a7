"""Train a small network on several processes with PyTorch DDP, and show that all of them end with the same model.

    slaunch --nproc_per_node 2 train.py                       on this machine
    srun -N4 --ntasks-per-node=1 slaunch train.py             on four nodes, a worker for each GPU

The script is ordinary PyTorch: it knows nothing of slaunch, Slurm or MPI, and works without change under other launchers.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def spirals(points: int, seed: int) -> TensorDataset:
    """Two interleaved spirals, one for each class: a straight line cannot tell them apart, a small network can."""
    random = torch.Generator().manual_seed(seed)
    label = torch.arange(points) % 2
    turn = torch.rand(points, generator=random) * 3.0 + 0.5
    angle = turn * 2.0 + label * torch.pi
    noise = torch.randn(points, 2, generator=random) * 0.05
    return TensorDataset(torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) + noise, label)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))


def mean_over_all(value: torch.Tensor) -> float:
    """The mean of a number over all processes; the same on each of them."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return float(total) / dist.get_world_size()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--lr", type=float, default=0.01)
    chosen = options.parse_args()

    gpus = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpus else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        print(f"world size {world}, {chosen.epochs} epochs on {device.type}", flush=True)

    data = spirals(points=4096, seed=1)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank)
    network = DistributedDataParallel(model().to(device), device_ids=[device.index] if gpus else None)
    optimizer = torch.optim.Adam(network.parameters(), lr=chosen.lr)
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(chosen.epochs):
        sampler.set_epoch(epoch)
        losses = []
        for points, labels in DataLoader(data, batch_size=512 // world, sampler=sampler):
            loss = loss_of(network(points.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        mean = mean_over_all(torch.stack(losses).mean())
        if rank == 0:
            print(f"epoch {epoch + 1:2d}  loss {mean:.4f}", flush=True)

    with torch.no_grad():
        points, labels = (part.to(device) for part in data.tensors)
        final = float(loss_of(network.module(points), labels))
    print(f"rank {rank} of {world}: final loss {final:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
