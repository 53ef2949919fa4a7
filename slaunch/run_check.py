"""A self-test to be run as a job: `slaunch paddle run_check`, `slaunch -m slaunch.run_check`.

Every worker checks its numbers, then all of them add up their ranks over plain TCP and with each framework that is installed. It
exits with 1, and says what is wrong, if a check fails.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

from slaunch import worker

DEADLINE_S = 60.0


def main() -> int:
    """Run all checks in this worker; the number of those that failed is the exit code, at most 1."""
    failed = [name for name, check in checks() if not passed(name, check)]
    return min(1, len(failed))


def checks() -> list[tuple[str, Callable[[], str]]]:
    """The checks that can run here."""
    found: list[tuple[str, Callable[[], str]]] = [("numbers", numbers), ("sum over TCP", tcp_sum)]
    if find_spec("torch") and "MASTER_PORT" in os.environ:
        found.append(("sum with PyTorch", torch_sum))
    if find_spec("paddle") and "PADDLE_TRAINER_ENDPOINTS" in os.environ:
        found.append(("sum with Paddle", paddle_sum))
    return found


def passed(name: str, check: Callable[[], str]) -> bool:
    """Run one check and tell how it went."""
    begin = time.monotonic()
    try:
        detail, good = check(), True
    except Exception as error:  # whatever a framework raises is the result of its check
        detail, good = f"{type(error).__name__}: {error}", False
    word = "passed" if good else "FAILED"
    print(f"worker {worker.rank()}: {name} {word} in {time.monotonic() - begin:.2f} s, {detail}", flush=True)
    return good


def numbers() -> str:
    """Ranks lie within their worlds, and all contracts name the same ones."""
    rank, world = worker.rank(), worker.world_size()
    if not (0 <= worker.local_rank() <= rank < world and worker.local_world_size() <= world):
        raise ValueError(f"rank {rank} of {world}, local rank {worker.local_rank()} of {worker.local_world_size()}")
    for name, expected in (("RANK", rank), ("PADDLE_TRAINER_ID", rank), ("WORLD_SIZE", world), ("PADDLE_TRAINERS_NUM", world)):
        if os.environ.get(name, str(expected)) != str(expected):
            raise ValueError(f"{name}={os.environ[name]}, but slaunch says {expected}")
    return f"rank {rank} of {world} on node {worker.node_rank()}"


def tcp_sum() -> str:
    """Worker 0 collects every rank at its endpoint and sends the sum back."""
    world = worker.world_size()
    total = collect(world) if worker.rank() == 0 else report()
    return compare(total, world)


def collect(world: int) -> int:
    """Worker 0's part."""
    with socket.create_server(address("SLAUNCH_ENDPOINT"), family=family("SLAUNCH_ENDPOINT"), backlog=world) as server:
        server.settimeout(DEADLINE_S)
        peers = [server.accept()[0] for _ in range(world - 1)]
        total = 0
        for peer in peers:
            peer.settimeout(DEADLINE_S)
            total += int(peer.makefile("r").readline())
        for peer in peers:
            peer.sendall(f"{total}\n".encode())
            peer.close()
    return total


def report() -> int:
    """What every other worker does."""
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            peer = socket.create_connection(address("SLAUNCH_FIRST_ENDPOINT"), timeout=DEADLINE_S)
            break
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    with peer:
        peer.sendall(f"{worker.rank()}\n".encode())
        return int(peer.makefile("r").readline())


def address(name: str) -> tuple[str, int]:
    """An endpoint from a variable."""
    host, _, port = os.environ[name].rpartition(":")
    return host.strip("[]"), int(port)


def family(name: str) -> socket.AddressFamily:
    """IPv6 for an address with colons."""
    return socket.AF_INET6 if ":" in address(name)[0] else socket.AF_INET


def compare(total: float, world: int) -> str:
    """The sum of all ranks is known."""
    expected = world * (world - 1) // 2
    if total != expected:
        raise ValueError(f"the sum of {world} ranks is {total}, not {expected}")
    return f"sum {expected}"


def torch_sum() -> str:
    """All-reduce, over NCCL where every worker has a GPU, else over Gloo."""
    import torch
    import torch.distributed as dist

    on_gpu = torch.cuda.is_available() and dist.is_nccl_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    where = f"cuda:{worker.local_rank()}" if on_gpu else "cpu"
    value = torch.tensor([float(worker.rank())], device=where)
    dist.all_reduce(value)
    dist.destroy_process_group()
    return f"{compare(value.item(), worker.world_size())} on {where}"


def paddle_sum() -> str:
    """All-reduce in Paddle's own default group."""
    import paddle
    import paddle.distributed as dist

    dist.init_parallel_env()
    value = paddle.to_tensor([float(worker.rank())])
    if worker.world_size() > 1:
        dist.all_reduce(value)
    return f"{compare(float(value.numpy()[0]), worker.world_size())} on {paddle.device.get_device()}"


if __name__ == "__main__":
    sys.exit(main())
