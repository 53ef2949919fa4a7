"""The first node of a real Slurm step goes away, with it the agent that leads: the job goes on, or ends and says why.

srun runs on the login node here. Where a batch script starts the step, srun runs on the first node of the job and dies with it.
"""

from __future__ import annotations

import os
import signal

from support.cluster import Cluster

from .test_restarts import journal, notes, read, report_of, train
from .test_supervision import PATIENCE_S, STAY, WORKERS, Launch, worker

SURVIVES = ("--no-kill", "--kill-on-bad-exit=0")

DDP = """
import os, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
rank, world, attempt = dist.get_rank(), dist.get_world_size(), int(os.environ["SLAUNCH_ATTEMPT"])
torch.set_num_threads(1)

def made():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.05)

def loss_of(model, step, rank):
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(100 * step + rank))
    return ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()

plain, optimizer = made()
path, first, last = f"{os.environ['PLACE']}/model.pt", 0, 60
if os.path.exists(path):
    saved = torch.load(path)
    plain.load_state_dict(saved["model"]); first = saved["step"]
model = DistributedDataParallel(plain)
for step in range(first, last):
    loss = loss_of(model, step, rank)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if rank == 0:
        torch.save({"model": plain.state_dict(), "step": step + 1}, path + ".part"); os.replace(path + ".part", path)
    if attempt == 0:
        time.sleep(0.5)  # long enough for the node to die on the way
dist.barrier()
if rank == 0:  # the same training by one process
    alone, optimizer = made()
    for step in range(last):
        optimizer.zero_grad()
        for each in range(world): (loss_of(alone, step, each) / world).backward()
        optimizer.step()
    same = torch.allclose(alone.weight, plain.weight, atol=1e-4)
    print(f"done {attempt} {first} {world} {same}", flush=True)
print(f"rank {rank} before {os.environ.get('SLAUNCH_PREVIOUS_RANK')}", flush=True)
dist.destroy_process_group()
"""


def test_f124_p98_the_first_node_dies_and_a_spare_takes_its_place_in_a_torch_training(cluster: Cluster) -> None:
    """The result is that of a training that nothing disturbed, and the step ends with code 0."""
    launch = Launch(cluster, worker(cluster, "ddp_spare", DDP), "--spares", "1", srun=SURVIVES)
    started = lambda: os.path.exists(f"{launch.place}/model.pt")  # noqa: E731
    cluster.wait_until(started, 2 * PATIENCE_S, lambda: read(f"{launch.place}/logs/workerlog.0"))
    cluster.fail("n1")
    out, err = launch.process.communicate(timeout=3 * PATIENCE_S)
    cluster.heal("n1")
    assert launch.process.returncode == 0, err
    assert "a node waits to take the place of a lost one: n4" in err
    assert "lost node 0 (n1); attempt 1 starts" in err
    done = next(line.split() for line in out.splitlines() if line.startswith("done"))
    assert (done[1], done[3], done[4]) == ("1", "6", "True"), out + err
    assert int(done[2]) > 0
    places = {rank: read(f"{launch.place}/logs/workerlog.{rank}").splitlines()[-1] for rank in range(6)}
    assert [places[rank] for rank in range(2, 6)] == [f"rank {rank} before {rank}" for rank in range(2, 6)]
    assert [places[rank] for rank in (0, 1)] == ["rank 0 before None", "rank 1 before None"]
    report = report_of(launch.place)
    assert [lost["host"] for lost in report["earlier"][0]["verdict"]["lost"]] == ["n1"]


def test_the_first_node_is_cut_off_and_its_workers_end_before_the_others_go_on(cluster: Cluster) -> None:
    """The nodes' clocks are one clock here."""
    launch = train(cluster, "--nnodes", "1:4", "--grace", "60", args=("2000",))
    begun = lambda: os.path.exists(f"{launch.place}/checkpoint")  # noqa: E731
    cluster.wait_until(begun, PATIENCE_S, lambda: str(os.listdir(launch.place)))
    cluster.cut("n1")
    again = lambda: [line for line in notes(launch.place, 6) if line[:2] == ["start", "1"]]  # noqa: E731
    cluster.wait_until(lambda: len(again()) == 6, PATIENCE_S, lambda: str(notes(launch.place, 6)))
    entries = [entry for node in (1, 2, 3) for entry in journal(launch.place, node)]
    started = min(e["time_s"] for e in entries if e["kind"] == "begin" and e["attempt"] == 1)
    ended = [e["time_s"] for e in journal(launch.place, 0) if e.get("what") == "WorkerExited"]
    assert len(ended) == WORKERS
    assert max(ended) < started
    cluster.join("n1")
    assert {line[6] for line in again()} == {"n2", "n3", "n4"}, "one world, though a single node would be enough"
    cluster.run(["scancel", launch.step()])
    launch.process.communicate(timeout=PATIENCE_S)


def test_where_all_nodes_are_needed_the_next_agent_ends_the_job_and_tells(cluster: Cluster) -> None:
    launch = Launch(cluster, worker(cluster, "stay", STAY), srun=SURVIVES)
    launch.up()
    os.kill(launch.agent("n1"), signal.SIGKILL)
    done = launch.result()
    assert done.returncode in (75, 128 + signal.SIGKILL), "srun takes the highest code of all tasks"
    assert done.stderr.count("slaunch: lost the agent on node 0 (n1)") == 1, done.stderr
    assert report_of(launch.place)["verdict"]["code"] == 75
