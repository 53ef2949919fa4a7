"""Train a small GPT with tensor, pipeline and sharded data parallelism, and tell its speed and peak memory.

    slaunch --nproc-per-node 2 train.py --tensor 2             on this machine
    slaunch tune tuner.json --nproc-per-node 2 train.py        find the fastest setting that fits

The script is ordinary PyTorch: it knows nothing of slaunch or of a tuner, and reads all settings from its options. The number of
data-parallel replicas is what the other degrees leave of the processes. All settings train the same model on the same text, the
source code of Python's own library, and end with the same loss, but for rounding.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

BYTES = 256  # the vocabulary: every byte is a token
MIB = 1 << 20


class Block(nn.Module):
    """One layer: attention and a small network, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm1(x)
        parts = [part(normed).unflatten(-1, (-1, self.head_width)).transpose(1, 2) for part in (self.query, self.key, self.value)]
        attended = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


TENSOR_PLAN = {
    **{name: ColwiseParallel() for name in ("query", "key", "value", "up")},
    **{name: RowwiseParallel() for name in ("out", "down")},
}


class Stage(nn.Module):
    """One pipeline stage: some layers, with the embedding in front in the first stage and the output behind in the last."""

    def __init__(self, chosen: argparse.Namespace, index: int) -> None:
        super().__init__()
        self.recompute = chosen.recompute
        count = chosen.layers // chosen.pipeline
        first, last = index == 0, index == chosen.pipeline - 1
        torch.manual_seed(1)
        self.embed = nn.Embedding(BYTES, chosen.width) if first else None
        self.place = nn.Embedding(chosen.seq, chosen.width) if first else None
        self.blocks = nn.ModuleList(self.block(chosen, layer) for layer in range(index * count, (index + 1) * count))
        torch.manual_seed(2)
        self.head = nn.Linear(chosen.width, BYTES) if last else None

    @staticmethod
    def block(chosen: argparse.Namespace, layer: int) -> Block:
        torch.manual_seed(10 + layer)  # the same weights in whatever stage the layer is
        return Block(chosen.width, chosen.heads)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.embed is not None and self.place is not None:
            x = self.embed(x) + self.place(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return x if self.head is None else self.head(x.flatten(0, 1))


def loss_of(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(scores.float(), targets.flatten())


def text(length: int) -> torch.Tensor:
    """So many bytes of the source code of Python's library."""
    folder = os.path.dirname(os.__file__)
    data = b""
    for name in ("argparse", "inspect", "os", "typing"):
        with open(os.path.join(folder, f"{name}.py"), "rb") as file:
            data += file.read()
    return torch.frombuffer(bytearray(data[:length]), dtype=torch.uint8).long()


def batches(chosen: argparse.Namespace, copy: int, copies: int, device: torch.device):  # type: ignore[no-untyped-def]
    """Endless pairs of inputs and targets: of each global batch the part of one copy of the model."""
    data = text(200_000)
    random = torch.Generator().manual_seed(0)
    while True:
        starts = torch.randint(len(data) - chosen.seq - 1, (chosen.global_batch,), generator=random)[copy::copies]
        pieces = torch.stack([data[start : start + chosen.seq + 1] for start in starts.tolist()]).to(device)
        yield pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()


class Memory:
    """The most memory in use: on a GPU by its allocator; on a CPU parameters, optimizer and what autograd keeps are counted."""

    def __init__(self, budget_mib: float, device: torch.device) -> None:
        self.budget, self.device = budget_mib * MIB, device
        self.fixed = self.kept = self.most = 0
        if budget_mib and device.type == "cuda":
            torch.cuda.set_per_process_memory_fraction(min(1.0, self.budget / torch.cuda.mem_get_info()[1]))

    def holds(self, model: nn.Module) -> None:
        """Weights, gradients and Adam's two moments stay all the time."""
        local = [parameter.to_local() if hasattr(parameter, "to_local") else parameter for parameter in model.parameters()]
        self.fixed = 4 * sum(part.numel() * part.element_size() for part in local)

    def peak_mib(self) -> float:
        return (torch.cuda.max_memory_allocated() if self.device.type == "cuda" else self.fixed + self.most) / MIB

    def counted(self):  # type: ignore[no-untyped-def]
        """Within this context, what autograd keeps for the backward pass is counted."""
        return torch.autograd.graph.saved_tensors_hooks(lambda tensor: Kept(tensor, self), lambda kept: kept.tensor)

    def add(self, size: int) -> None:
        self.kept += size
        self.most = max(self.most, self.kept)
        if self.budget and self.device.type == "cpu" and self.fixed + self.kept > self.budget:
            raise torch.OutOfMemoryError(
                f"CPU out of memory: {self.peak_mib():.1f} MiB of a budget of {self.budget / MIB:.1f} MiB"
            )


class Kept:
    """A tensor that autograd keeps, until it is used."""

    def __init__(self, tensor: torch.Tensor, memory: Memory) -> None:
        self.tensor, self.memory, self.size = tensor, memory, tensor.numel() * tensor.element_size()
        memory.add(self.size)

    def __del__(self) -> None:
        self.memory.kept -= self.size


def build(chosen: argparse.Namespace, mesh: DeviceMesh, device: torch.device) -> Stage:
    """This process's part of the model: its stage, its slice of each layer, its shard of the parameters."""
    model = Stage(chosen, mesh["pipeline"].get_local_rank()).to(device)
    for block in model.blocks:
        if chosen.tensor > 1:
            parallelize_module(block, mesh["tensor"], TENSOR_PLAN)
    if mesh["replica"].size() * mesh["shard"].size() > 1:
        for block in model.blocks:
            fully_shard(block, mesh=mesh["replica", "shard"])
        fully_shard(model, mesh=mesh["replica", "shard"])
    return model


def step(model: Stage, schedule: Schedule1F1B | None, inputs: torch.Tensor, targets: torch.Tensor, parts: int) -> torch.Tensor:
    """Forward and backward over all micro batches; their mean loss, in the last stage."""
    losses: list[torch.Tensor] = []
    if schedule is not None:
        first, last = model.embed is not None, model.head is not None
        schedule.step(*([inputs] if first else []), **({"target": targets, "losses": losses} if last else {}))
        return torch.stack(losses).detach().mean() if last else torch.zeros(())
    for index, (some, wanted) in enumerate(zip(inputs.chunk(parts), targets.chunk(parts), strict=True)):
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(index == parts - 1)
        losses.append(loss_of(model(some), wanted))
        (losses[-1] / parts).backward()
    return torch.stack(losses).detach().mean()


def over_copies(loss: torch.Tensor, mesh: DeviceMesh) -> float:
    """The mean loss of all copies of the model."""
    for name in ("replica", "shard"):
        dist.all_reduce(loss, group=mesh[name].get_group())
    return float(loss) / mesh["replica"].size() / mesh["shard"].size()


def options() -> argparse.Namespace:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {
        **{"--tensor": 1, "--pipeline": 1, "--shards": 1, "--micro-batch": 1, "--global-batch": 8},
        **{"--layers": 4, "--width": 64, "--heads": 4, "--seq": 32, "--steps": 5},
    }.items():
        found.add_argument(name, type=int, default=default)
    found.add_argument("--recompute", action="store_true", help="recompute each layer in the backward pass")
    found.add_argument("--memory-budget", type=float, default=0.0, help="MiB that a process may use; 0 = no limit")
    return found.parse_args()


def main() -> None:
    chosen = options()
    gpus = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    dist.init_process_group("nccl" if gpus else "gloo")

    replicas = dist.get_world_size() // (chosen.tensor * chosen.pipeline * chosen.shards)
    shape = (chosen.pipeline, replicas, chosen.shards, chosen.tensor)
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=("pipeline", "replica", "shard", "tensor"))
    copies = replicas * chosen.shards  # each gets its own part of the batch
    copy = mesh["replica"].get_local_rank() * chosen.shards + mesh["shard"].get_local_rank()
    parts = chosen.global_batch // copies // chosen.micro_batch

    memory = Memory(chosen.memory_budget, device)
    model = build(chosen, mesh, device)
    memory.holds(model)
    schedule = None
    if chosen.pipeline > 1:
        stage = PipelineStage(
            model, mesh["pipeline"].get_local_rank(), chosen.pipeline, device, group=mesh["pipeline"].get_group()
        )
        schedule = Schedule1F1B(stage, parts, loss_of)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    teller = model.head is not None and copy == 0 and mesh["tensor"].get_local_rank() == 0
    for number, (inputs, targets) in zip(range(chosen.steps), batches(chosen, copy, copies, device), strict=False):
        start = time.perf_counter()
        with memory.counted():
            loss = step(model, schedule, inputs, targets, parts)
        optimizer.step()
        optimizer.zero_grad()
        if gpus:
            torch.cuda.synchronize()
        if teller:
            speed = chosen.global_batch * chosen.seq / (time.perf_counter() - start)
            print(f"step {number} tokens_per_sec: {speed:.1f}", flush=True)
    final = over_copies(loss.to(device), mesh)
    if teller:
        print(f"final loss: {final:.4f}", flush=True)
    print(f"max_memory_allocated: {memory.peak_mib():.2f}", flush=True)
    dist.destroy_process_group()
    # With sharded parameters on CPU, PyTorch 2.13 now and then aborts in a thread of its own while the interpreter winds up
    # ("terminate called without an active exception"), after all work is done: leave without winding up.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
