"""A PyTorch training on the cluster that goes on through faults, and what it must come to in the end.

Each step uses the same twelve rows, however many workers share them: neither the losses nor the result depend on how the job grew
and shrank.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from support.cluster import Cluster, Result

PATIENCE_S = 120.0
NEAR = 1e-9
DDP = """
import os, sys, time
place, attempt = os.environ["PLACE"], os.environ.get("SLAUNCH_ATTEMPT", "0")
alone = "WORLD_SIZE" not in os.environ
def lines(name): return os.open(f"{place}/{name}.{'alone' if alone else 'job'}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
def write(file, *words): os.write(file, (" ".join(map(str, words)) + "\\n").encode())
write(lines("starts"), time.time(), attempt, os.environ.get("RANK"), os.environ.get("SLAUNCH_PREVIOUS_RANK"))
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
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
steps = lines("steps")
def last():
    try: return int(open(f"{place}/last").read())
    except (OSError, ValueError): return 10**9
while True:
    end = torch.tensor(last())
    if not alone: dist.broadcast(end, 0)
    if step >= end: break
    rows = torch.randn(12, 4, generator=torch.Generator().manual_seed(step))
    own = rows[rank::world]
    loss = ((model(own) - (own ** 2).sum(1, keepdim=True)) ** 2).sum() * world / 12
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    whole = loss.detach() / world
    if not alone: dist.all_reduce(whole)
    step += 1
    if rank == 0: write(steps, time.time(), attempt, world, step, whole.item())
    if rank == 0 and not alone:
        torch.save({"model": plain.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".part")
        os.replace(path + ".part", path)
        time.sleep(0.02)
if rank == 0:
    with open(f"{place}/result.{'alone' if alone else 'job'}", "w") as file:
        print(step, *plain.weight.detach().flatten().tolist(), *plain.bias.detach().tolist(), file=file)
if not alone: dist.barrier(); dist.destroy_process_group()
"""
SURVIVES = ("--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--overlap")


@dataclass(frozen=True)
class Fault:
    """Something that happens to a node: its "worker" is killed, its "agent" is, the "node" dies, its link is "cut" until the
    others have gone on, or "join": a step of its own starts an agent there; on several nodes if they are told with commas."""

    kind: str
    node: str


@dataclass(frozen=True)
class Step:
    """A step, as worker 0 writes it down before its checkpoint. The loss is that of all workers' rows."""

    time_s: float
    attempt: int
    world: int
    number: int
    loss: float


@dataclass(frozen=True)
class Went:
    """How the training went on after a fault: the seconds until the last worker of the next attempt ran its first line, and
    until its first step; the attempts and numbers of workers before and after."""

    fault: Fault
    workers_s: float
    steps_s: float
    attempts: tuple[int, int]
    workers: tuple[int, int]


class Training:
    """The training, one worker on each node. The job holds all nodes of the cluster, and begins on the first `begin` of them.

    Attributes:
        went: what has happened to it so far.
        ended: what the first step and those that joined have said, once they have ended.
    """

    def __init__(self, cluster: Cluster, script: str, begin: int = 4, spares: int = 0) -> None:
        self.cluster, self.script = cluster, script
        self.place = f"{cluster.scratch}/{os.urandom(4).hex()}"
        os.mkdir(self.place)
        os.chmod(self.place, 0o777)
        self.world, self.spares = begin - spares, spares
        self.came: list[subprocess.Popen[str]] = []
        self.joining: subprocess.Popen[str] | None = None
        self.went: list[Went] = []
        self.ended: list[Result] = []
        self.options = ["--nnodes", f"1:{len(cluster.nodes) - spares}", "--nproc-per-node", "1", "--max-restarts", "99"]
        self.options += ["--spares", str(spares), "--grace", "3", "--log-dir", f"{self.place}/logs"]
        self.options += ["--exclude-bad", f"{self.place}/bad", script]
        job = ["salloc", "-Q", "--no-kill", f"-N{len(cluster.nodes)}", "--ntasks-per-node=1", "-c2"]
        step = ["srun", *SURVIVES, f"-N{begin}", f"-n{begin}", "-c2", "-w", ",".join(cluster.nodes[:begin])]
        self.main = cluster.start([*job, *step, "slaunch", *self.options], env={"PLACE": self.place})
        self.await_steps(0, self.world)
        self.job = cluster.run(["squeue", "--noheader", "--states=RUNNING", "--format=%A", "--user=hpc"]).stdout.strip()

    # -- what it does -------------------------------------------------------------------------------------------

    def steps(self, whose: str = "job") -> list[Step]:
        """All steps that have been made, in the order in which they were."""
        rows = self.rows(f"steps.{whose}")
        return [Step(float(row[0]), int(row[1]), int(row[2]), int(row[3]), float(row[4])) for row in rows]

    def starts(self) -> list[tuple[float, int]]:
        """When workers have started, and in which attempt."""
        return [(float(row[0]), int(row[1])) for row in self.rows("starts.job")]

    def ranks(self, attempt: int) -> list[tuple[str, str]]:
        """The ranks in an attempt, each with the one before."""
        return sorted((row[2], row[3]) for row in self.rows("starts.job") if int(row[1]) == attempt)

    def rows(self, name: str) -> list[list[str]]:
        if not os.path.exists(f"{self.place}/{name}"):
            return []
        with open(f"{self.place}/{name}") as file:
            return [line.split() for line in file if line.endswith("\n")]

    def await_steps(self, attempt: int, world: int) -> list[Step]:
        """Wait until a few are made with so many workers, in this attempt or later; those of these attempts."""
        found: list[Step] = []

        def on() -> bool:
            assert self.main.poll() is None and (not self.joining or self.joining.poll() is None), self.said()
            found[:] = [step for step in self.steps() if step.attempt >= attempt]
            return sum(step.world == world for step in found) > 2

        self.cluster.wait_until(on, PATIENCE_S, self.said)
        return found

    def said(self) -> str:
        """Everything, for a test that fails."""
        texts = [f"now {self.steps()[-1:]}, {self.went}"]
        ended = [process for process in (self.main, *self.came) if process.poll() is not None]
        texts += [f"-- {process.args!r} ended with {process.returncode}\n{process.communicate()[1]}" for process in ended]
        for name in sorted(os.listdir(f"{self.place}/logs")) if os.path.isdir(f"{self.place}/logs") else []:
            if name.startswith("workerlog"):
                with open(f"{self.place}/logs/{name}", errors="replace") as file:
                    texts.append(f"-- {name}\n" + "".join(file.readlines()[-8:]))
        return "\n".join(texts)

    def agents(self, node: str) -> list[int]:
        """Process ids of slaunch's agents on a node."""
        own = [p for p in self.cluster.processes(f"PLACE={self.place}") if p.node == node and "--nnodes" in p.argv]
        return sorted(p.pid for p in own if "srun" not in p.argv[0])

    def workers(self, node: str) -> list[int]:
        """Process ids of the training's workers on a node."""
        own = [p for p in self.cluster.processes(f"PLACE={self.place}") if p.node == node and "--nnodes" not in p.argv]
        return [p.pid for p in own if self.script in p.argv]

    # -- what happens to it -------------------------------------------------------------------------------------

    def inflict(self, fault: Fault) -> Went:
        """Let it happen, and wait until the training goes on with as many workers as are left."""
        before, world = self.steps()[-1].attempt, self.world
        self.world = self.world_after(fault)
        began = time.time()
        self.happen(fault)
        if fault.kind == "cut":  # not longer: Slurm gives the node up after SlurmdTimeout, and it is no part of the job any more
            on = lambda: any(attempt > before for _, attempt in self.starts())  # noqa: E731
            self.cluster.wait_until(on, PATIENCE_S, self.said)
            self.cluster.join(fault.node)
        made = self.await_steps(before + 1, self.world)
        self.joining = None
        first = made[0]
        workers = max(time_s for time_s, attempt in self.starts() if attempt == first.attempt)
        went = Went(fault, workers - began, first.time_s - began, (before, made[-1].attempt), (world, self.world))
        self.went.append(went)
        return went

    def world_after(self, fault: Fault) -> int:
        if fault.kind == "worker":
            return self.world
        if fault.kind == "join":
            return self.world + len(fault.node.split(","))
        if self.spares:
            self.spares -= 1
            return self.world
        return self.world - 1

    def happen(self, fault: Fault) -> None:
        if fault.kind == "worker":
            for pid in self.workers(fault.node):
                os.kill(pid, signal.SIGKILL)
        elif fault.kind == "agent":
            os.kill(self.agents(fault.node)[0], signal.SIGKILL)
        elif fault.kind == "node":
            self.cluster.fail(fault.node)
        elif fault.kind == "cut":
            self.cluster.cut(fault.node)
        else:
            self.come(fault.node)

    def come(self, nodes: str) -> None:
        """Another step of the job starts agents there, once those before them have ended."""
        names = nodes.split(",")
        self.cluster.wait_until(lambda: not any(map(self.agents, names)), PATIENCE_S, self.said)
        step = ["srun", "--jobid", self.job, *SURVIVES, f"-N{len(names)}", f"-n{len(names)}", "-c2", "-w", nodes]
        self.joining = self.cluster.start([*step, "slaunch", "--join", "yes", *self.options], env={"PLACE": self.place})
        self.came.append(self.joining)

    # -- its end ------------------------------------------------------------------------------------------------

    def end(self, steps: int = 20) -> None:
        """A few steps more; then the same training by one process, which nothing disturbs."""
        last = self.steps()[-1].number + steps
        with open(f"{self.place}/last.part", "w") as file:
            file.write(str(last))
        os.replace(f"{self.place}/last.part", f"{self.place}/last")
        self.ended = [self.cluster.wait(process, PATIENCE_S) for process in (self.main, *self.came)]
        subprocess.run([sys.executable, self.script], env={**os.environ, "PLACE": self.place}, check=True, timeout=120)
        listed = lambda: self.cluster.run(["squeue", "--noheader", f"--jobs={self.job}"]).stdout.strip()  # noqa: E731
        self.cluster.wait_until(lambda: not listed(), PATIENCE_S, listed)  # a dead node that comes back sooner keeps it there

    def faults(self) -> list[str]:
        """What is wrong, after its end: with the result, with the loss of any step, with their order, or left processes."""
        found = broken(self.steps(), self.steps("alone"))
        if distance(self.result("job"), self.result("alone")) > NEAR:
            found.append(f"the result is {self.result('job')} instead of {self.result('alone')}")
        return found + [f"left on {p.node}: {p.argv}" for p in self.cluster.processes(f"PLACE={self.place}")]

    def result(self, whose: str) -> list[float]:
        """Number of steps and weights, at its end."""
        with open(f"{self.place}/result.{whose}") as file:
            return [float(word) for word in file.read().split()]

    def apart(self, attempts: range) -> float:
        """How far the losses of these attempts' steps are from the undisturbed ones."""
        alone = {step.number: step.loss for step in self.steps("alone")}
        return max(abs(step.loss - alone[step.number]) for step in self.steps() if step.attempt in attempts)


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def broken(made: Sequence[Step], undisturbed: Sequence[Step]) -> list[str]:
    """Where the curve does not continue: each step follows the one before it; after a fault one may be made twice, the one whose
    checkpoint was still to come. Attempts follow each other, too: two worlds at once would show here. All losses are those of the
    undisturbed training, which made the steps 1, 2, 3, …"""
    found = []
    before = Step(0.0, 0, 0, 0, 0.0)
    for step in made:
        again = step.attempt > before.attempt and step.number == before.number
        if step.attempt < before.attempt or not (step.number == before.number + 1 or again):
            found.append(f"{step} follows {before}")
        if abs(step.loss - undisturbed[step.number - 1].loss) > NEAR:
            found.append(f"{step} has another loss than {undisturbed[step.number - 1]}")
        before = step
    if before.number != len(undisturbed):
        found.append(f"{before} is the last of {len(undisturbed)}")
    return found


def draw(seed: int, count: int, nodes: tuple[str, ...]) -> list[Fault]:
    """So many faults in a row. Nodes that are lost come back, so that there is always another one to lose."""
    chance = random.Random(seed)
    kinds = ("worker", "worker", "agent", "agent", "cut")
    drawn = [Fault(chance.choice(kinds), chance.choice(nodes)) for _ in range(count)]
    return [each for fault in drawn for each in ([fault] if fault.kind == "worker" else [fault, Fault("join", fault.node)])]
