"""Train a small network on several processes with Paddle, and show that all of them end with the same model.

    slaunch --nproc_per_node 2 train.py                       on this machine
    srun -N4 --ntasks-per-node=1 slaunch train.py             on four nodes, a worker for each GPU

The script is ordinary Paddle: it knows nothing of slaunch, Slurm or MPI, and works without change under Paddle's launcher.
"""

import argparse

import paddle
import paddle.distributed as dist
from paddle import nn


def line(points: int, seed: int) -> tuple[paddle.Tensor, paddle.Tensor]:
    """Noisy points around a plane: y = 2a - 3b + 1."""
    paddle.seed(seed)
    inputs = paddle.rand([points, 2])
    outputs = inputs @ paddle.to_tensor([[2.0], [-3.0]]) + 1.0 + paddle.randn([points, 1]) * 0.01
    return inputs, outputs


def mean_over_all(value: paddle.Tensor) -> float:
    """The mean of a number over all processes; the same on each of them."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return float(total) / dist.get_world_size()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=5)
    chosen = options.parse_args()

    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        print(f"world size {world}, {chosen.epochs} epochs on {paddle.device.get_device()}", flush=True)

    inputs, outputs = line(points=1024, seed=1)
    mine = slice(rank, None, world)
    paddle.seed(0)
    network = paddle.DataParallel(nn.Linear(2, 1))
    optimizer = paddle.optimizer.Adam(0.05, parameters=network.parameters())
    loss_of = nn.MSELoss()

    for epoch in range(chosen.epochs):
        for _ in range(20):
            loss = loss_of(network(inputs[mine]), outputs[mine])
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        mean = mean_over_all(loss)
        if rank == 0:
            print(f"epoch {epoch + 1:2d}  loss {mean:.4f}", flush=True)

    final = float(loss_of(network(inputs), outputs))
    print(f"rank {rank} of {world}: final loss {final:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
