"""A PyTorch training on the cluster that goes on through faults, and what it must come to in the end.

Each step uses the same twelve rows, however many workers share them: the result does not depend on how the job grew and shrank.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from support.cluster import Cluster

PATIENCE_S = 120.0
DDP = """
import os, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
place = os.environ["PLACE"]
alone = "WORLD_SIZE" not in os.environ
if not alone: dist.init_process_group("gloo")
rank, world = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())
torch.manual_seed(0)
plain = torch.nn.Linear(4, 1)
model = plain if alone else DistributedDataParallel(plain)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
path, step = f"{place}/model.pt", 0
if os.path.exists(path) and not alone:
    saved = torch.load(path)
    plain.load_state_dict(saved["model"]); optimizer.load_state_dict(saved["optimizer"]); step = saved["step"]
def last():
    try: return int(open(f"{place}/last").read())
    except (OSError, ValueError): return 10**9
while True:
    end = torch.tensor(last())
    if not alone: dist.broadcast(end, 0)
    if step >= end: break
    rows = torch.randn(12, 4, generator=torch.Generator().manual_seed(step))
    own = rows[rank::world]
    loss = ((model(own) - own.sum(1, keepdim=True)) ** 2).sum() * world / 12
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    step += 1
    if rank == 0 and not alone:
        torch.save({"model": plain.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".part")
        os.replace(path + ".part", path)
        with open(f"{place}/step.part", "w") as file: file.write(f"{step} {world}")
        os.replace(f"{place}/step.part", f"{place}/step")
        time.sleep(0.02)
if rank == 0:
    with open(f"{place}/result.{'alone' if alone else 'job'}", "w") as file:
        print(step, *plain.weight.detach().flatten().tolist(), *plain.bias.detach().tolist(), file=file)
if not alone: dist.barrier(); dist.destroy_process_group()
"""
SURVIVES = ("--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--overlap")


@dataclass(frozen=True)
class Fault:
    """Something that happens to a node. `back`: an agent is started there again afterwards."""

    kind: str
    node: str
    back: bool = True


class Training:
    """The training, on all nodes of the cluster, one worker on each."""

    def __init__(self, cluster: Cluster, script: str) -> None:
        self.cluster = cluster
        self.place = f"{cluster.scratch}/{os.urandom(4).hex()}"
        os.mkdir(self.place)
        os.chmod(self.place, 0o777)
        self.script = script
        self.steps: list[subprocess.Popen[str]] = []
        self.log: list[str] = []
        self.options = ["--nnodes", f"2:{len(cluster.nodes)}", "--nproc-per-node", "1", "--max-restarts", "99"]
        self.options += ["--grace", "3", "--log-dir", f"{self.place}/logs", "--exclude-bad", f"{self.place}/bad", script]
        nodes = str(len(cluster.nodes))
        words = ["srun", *SURVIVES, f"-N{nodes}", "--ntasks-per-node=1", "-c2", "slaunch", *self.options]
        self.main = cluster.start(words, env={"PLACE": self.place})
        self.await_world(len(cluster.nodes))
        jobs = cluster.run(["squeue", "--noheader", "--format=%A", "--user=hpc"]).stdout.split()
        self.job = jobs[-1]

    def progress(self) -> tuple[int, int]:
        """The step that has been reached, and with how many workers."""
        try:
            with open(f"{self.place}/step") as file:
                step, world = file.read().split()
                return int(step), int(world)
        except (OSError, ValueError):
            return 0, 0

    def await_world(self, world: int) -> None:
        """Wait until steps are made with so many workers."""
        began = self.progress()[0]
        on = lambda: self.progress()[0] > began + 2 and self.progress()[1] == world  # noqa: E731
        self.cluster.wait_until(on, PATIENCE_S, self.said)

    def said(self) -> str:
        """Everything, for a test that fails."""
        texts = [f"now {self.progress()}, main {self.main.poll()}, {self.log}"]
        for name in sorted(os.listdir(f"{self.place}/logs")) if os.path.isdir(f"{self.place}/logs") else []:
            if name.startswith("workerlog"):
                with open(f"{self.place}/logs/{name}", errors="replace") as file:
                    texts.append(f"-- {name}\n" + "".join(file.readlines()[-8:]))
        return "\n".join(texts)

    def agents(self, node: str) -> list[int]:
        """Process ids of slaunch's agents on a node."""
        own = [p for p in self.cluster.processes(f"PLACE={self.place}") if p.node == node and "--nnodes" in p.argv]
        return [p.pid for p in own if "srun" not in p.argv[0]]

    def workers(self, node: str) -> list[int]:
        """Process ids of the training's workers on a node."""
        own = [p for p in self.cluster.processes(f"PLACE={self.place}") if p.node == node and "--nnodes" not in p.argv]
        return [p.pid for p in own if self.script in p.argv]

    def inflict(self, fault: Fault, world: int) -> int:
        """Let it happen, and wait until the training goes on; with how many workers."""
        self.log.append(f"{self.progress()[0]}: {fault.kind} {fault.node}")
        if fault.kind == "worker":
            for pid in self.workers(fault.node):
                os.kill(pid, signal.SIGKILL)
        elif fault.kind == "agent":
            for pid in sorted(self.agents(fault.node))[:1]:
                os.kill(pid, signal.SIGKILL)
            world -= 1
        elif fault.kind == "node":
            self.cluster.fail(fault.node)
            world -= 1
        elif fault.kind == "cut":
            self.cluster.cut(fault.node)
            world -= 1
        self.await_world(world)
        if fault.kind == "cut":
            self.cluster.join(fault.node)
            self.cluster.wait_until(lambda: not self.agents(fault.node), PATIENCE_S, self.said)
        if fault.kind in ("agent", "cut") and fault.back:
            self.come(fault.node)
            world += 1
            self.await_world(world)
        return world

    def come(self, node: str) -> None:
        """An agent is started there by another step of the job."""
        words = ["srun", "--jobid", self.job, *SURVIVES, "-N1", "-n1", "-c2", "-w", node, "slaunch", "--join", "yes"]
        self.steps.append(self.cluster.start([*words, *self.options], env={"PLACE": self.place}))

    def end(self, steps: int = 20) -> tuple[list[float], list[float]]:
        """A few steps more; the result, and that of a training that nothing has disturbed."""
        last = self.progress()[0] + steps
        with open(f"{self.place}/last.part", "w") as file:
            file.write(str(last))
        os.replace(f"{self.place}/last.part", f"{self.place}/last")
        done = lambda: os.path.exists(f"{self.place}/result.job")  # noqa: E731
        self.cluster.wait_until(done, PATIENCE_S, self.said)
        env = {**os.environ, "PLACE": self.place}
        subprocess.run([sys.executable, self.script], env=env, check=True, timeout=120)
        return self.result("job"), self.result("alone")

    def result(self, whose: str) -> list[float]:
        end = time.monotonic() + 20
        while True:
            with open(f"{self.place}/result.{whose}") as file:
                words = file.read()
            if words.endswith("\n"):
                return [float(word) for word in words.split()]
            assert time.monotonic() < end
            time.sleep(0.1)


def draw(seed: int, count: int, nodes: tuple[str, ...]) -> list[Fault]:
    """Faults in a row: nodes come back after them, so that there is always another one to lose."""
    chance = random.Random(seed)
    kinds = ("worker", "worker", "agent", "agent", "cut")
    return [Fault(chance.choice(kinds), chance.choice(nodes)) for _ in range(count)]
