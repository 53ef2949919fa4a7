"""Jobs that get nodes of another job, or lose some, by Slurm's own means while slaunch runs in them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from support.cluster import Cluster

from .test_growth import TRAINING, steps
from .test_restarts import read
from .test_supervision import worker

PATIENCE_S = 90
STAY = """
import os, time
place, attempt, rank, world = (os.environ[name] for name in ("PLACE", "SLAUNCH_ATTEMPT", "RANK", "WORLD_SIZE"))
with open(f"{place}/{attempt}.{rank}.of.{world}", "w") as file:
    file.write(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
while not os.path.exists(f"{place}/end"):
    time.sleep(0.05)
"""


class Resized:
    """A batch job, its folder, and what it has printed."""

    def __init__(self, cluster: Cluster, script: str, *options: str) -> None:
        self.cluster = cluster
        self.place = f"{cluster.scratch}/{os.urandom(4).hex()}"
        os.mkdir(self.place)
        os.chmod(self.place, 0o777)
        self.env = {"PLACE": self.place}
        with open(f"{self.place}/job.sh", "w") as file:
            file.write(f"#!/bin/bash\n{script}")
        batch = ["sbatch", "--parsable", "--ntasks-per-node=1", "-o", f"{self.place}/out", *options, f"{self.place}/job.sh"]
        self.job = cluster.run(batch, env=self.env, cwd=self.place).stdout.strip()

    def enlarge(self, *request: str) -> None:
        """Give it the nodes of another job."""
        give = 'scontrol update JobId="$SLURM_JOB_ID" NumNodes=0'
        words = ["salloc", "-Q", f"--dependency=expand:{self.job}", *request, "bash", "-c", give]
        done = self.cluster.run(words, cwd=self.place)
        assert done.returncode == 0, done.stderr

    def join(self, node: str, options: str) -> subprocess.Popen[str]:
        """Start a step there that takes part, from outside the job."""
        step = ["srun", "--jobid", self.job, "--overlap", "-N1", "-n1", "-c2", "-w", node]
        return self.cluster.start([*step, "slaunch", "--join", "yes", *options.split()], env=self.env, cwd=self.place)

    def shrink(self, nodes: int) -> None:
        """Take its last nodes from it."""
        done = self.cluster.run(["scontrol", "update", f"JobId={self.job}", f"NumNodes={nodes}"])
        assert done.returncode == 0, done.stderr

    def up(self, attempt: int, world: int) -> bool:
        """Whether that attempt's workers run."""
        return all(os.path.exists(f"{self.place}/{attempt}.{rank}.of.{world}") for rank in range(world))

    def wait_until(self, true: Callable[[], object]) -> None:
        self.cluster.wait_until(true, PATIENCE_S, self.said)

    def end(self) -> None:
        """Let the workers end, and wait for the job."""
        with open(f"{self.place}/end", "w"):
            pass
        self.wait_until(lambda: self.cluster.job(self.job)["JobState"] in ("COMPLETED", "FAILED"))

    def said(self) -> str:
        return f"{read(f'{self.place}/out')}\n{sorted(os.listdir(self.place))}\n{self.cluster.job(self.job)}"


def test_f123_a_job_grows_by_the_nodes_of_another_one(cluster: Cluster) -> None:
    """Steps on the new nodes join, from elsewhere and from the job's own shell; a later launch from that shell has all of them.

    The other job has a share of the old nodes as well: of nodes that it has alone, Slurm 22.05 forgets the cores.
    """
    program = worker(cluster, "grown", TRAINING)
    options = f"--nnodes 2:4 --nproc-per-node 1 --join-policy boundary --log-dir logs {program}"
    script = (
        f"slaunch {options} &\n"
        "while [ ! -e grown ]; do sleep 0.1; done\n"
        f"srun --overlap -N1 -n1 -c2 -w n4 slaunch --join yes {options}\n"
        "echo joined and ended with $?\n"
        "wait %1; echo ended with $?\n"
        f"slaunch --nproc-per-node 1 --log-dir again {worker(cluster, 'again', STAY)}; echo again $?\n"
    )
    job = Resized(cluster, script, "-N2", "-c2", "-w", "n[1-2]")
    job.wait_until(lambda: any(step > 3 for _, _, _, step in steps(job.place)))
    job.enlarge("-N4", "-n4", "-c2", "-w", "n[1-4]")

    late = job.join("n3", options)
    with open(f"{job.place}/grown", "w"):
        pass
    job.wait_until(lambda: len([world for _, world, _, _ in steps(job.place) if world == 4]) > 12)
    job.end()
    assert cluster.wait(late, PATIENCE_S).returncode == 0, job.said()

    assert {"joined and ended with 0", "ended with 0", "again 0"} <= set(read(f"{job.place}/out").splitlines()), job.said()
    assert "has been resized from 2 to 4 nodes" in read(f"{job.place}/out")
    assert job.up(0, 4), job.said()
    last = max(step for _, _, _, step in steps(job.place))
    done = [(rank, step) for _, world, rank, step in steps(job.place) if world == 4]
    first = min(step for _, step in done)
    every = [(rank, step) for rank in range(4) for step in range(first, last + 1)]
    assert sorted(done) == every, "a step is lost or made twice"


def test_p94_jobs_that_are_made_smaller_go_on_or_say_so(cluster: Cluster) -> None:
    program = worker(cluster, "stay", STAY)
    script = f"slaunch --nproc-per-node 1 --log-dir logs {{}} {program}\n"
    elastic = Resized(cluster, script.format("--nnodes 2:3"), "-N3", "-c2", "-w", "n[1-3]")
    fixed = Resized(cluster, script.format(""), "-N3", "-c2", "-w", "n[1-3]")
    for job in (elastic, fixed):
        job.wait_until(lambda job=job: job.up(0, 3))
        job.shrink(2)
    elastic.wait_until(lambda: elastic.up(1, 2))
    elastic.end()
    assert "slaunch: 2 workers on 2 nodes ended well" in read(f"{elastic.place}/out"), elastic.said()

    fixed.end()
    words = f"lost the agent on node 2 (n3): Slurm job {fixed.job} was made smaller, and no longer has that node"
    assert words in read(f"{fixed.place}/out"), fixed.said()
    with open(f"{fixed.place}/logs/report.json") as file:
        assert json.load(file)["code"] == 75


@pytest.fixture
def older() -> Iterator[Cluster]:
    """A cluster whose select plugin enlarges jobs with GPUs, too."""
    with Cluster(nodes=3, settings=("SelectType=select/cons_res",)).running() as cluster:
        yield cluster


def test_f123_a_job_with_gpus_grows_where_slurm_allows_that(older: Cluster) -> None:
    options = f"--nnodes 2:3 --nproc-per-node 1 --log-dir logs {worker(older, 'stay', STAY)}"
    job = Resized(older, f"slaunch {options}\n", "-N2", "-c2", "--gres=gpu:2", "-w", "n[1-2]")
    job.wait_until(lambda: job.up(0, 2))
    job.enlarge("-N3", "-n3", "-c2", "--gres=gpu:2", "-w", "n[1-3]")
    late = job.join("n3", options)
    job.wait_until(lambda: job.up(1, 3))
    job.end()
    assert older.wait(late, PATIENCE_S).returncode == 0, job.said()
    assert older.job(job.job)["JobState"] == "COMPLETED", job.said()
    assert [read(f"{job.place}/1.{rank}.of.3") for rank in range(3)] == ["0,1"] * 3
