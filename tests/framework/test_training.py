"""Real training with PyTorch and Paddle over gloo, however it is started: the loss falls, and all ranks end with one model."""

import shlex

import pytest
from support.cluster import Cluster
from support.jobs import EXAMPLES, final_losses, folder_in, free_port, logs, losses

TRAINING = {"torch": f"{EXAMPLES}/ddp/train.py", "paddle": f"{EXAMPLES}/paddle/train.py"}
LIMIT_S = 110.0
"""Up to four processes that import a framework, on whatever this machine has."""

pytestmark = pytest.mark.parametrize("framework", ["torch", "paddle"])


def assert_trained(text: str, world: int) -> None:
    """Both examples print rank 0's loss after each epoch, and every rank's final one."""
    falling, final = losses(text), final_losses(text)
    assert falling[-1] < 0.2 * falling[0], text
    assert sorted(final) == list(range(world)), text
    assert len(set(final.values())) == 1, final


def test_f331_an_agent_on_each_node(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    shape = ("-N2", "--ntasks-per-node=1")
    done = cluster.srun(*shape, "slaunch", "--nproc_per_node", "2", "--log_dir", folder, TRAINING[framework], timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(logs(folder), 4)
    assert losses(done.stdout) == losses(logs(folder))  # rank 0's output is on the console, too


def test_f331_a_task_for_each_worker(cluster: Cluster, framework: str) -> None:
    done = cluster.srun("-N2", "--ntasks-per-node=2", "slaunch", TRAINING[framework], timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(done.stdout, 4)


def test_f331_p14_a_batch_script_without_srun(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    script = f"#!/bin/bash\nexec slaunch --nproc_per_node 1 --log_dir {folder} {TRAINING[framework]}\n"
    job = cluster.sbatch(script, "-N2", "--exclusive", timeout=LIMIT_S)
    assert (job.state, job.code) == ("COMPLETED", 0), job.output
    assert_trained(logs(folder), 2)


MPIRUN = {
    "torch": "mpirun.openmpi -np 2 --map-by ppr:1:node --bind-to none -x MPI4PY_LIBMPI=libmpi.so.40",
    "paddle": "mpirun.mpich -np 2 -ppn 1",
}
"""Neither framework looks at either's variables."""


def test_f331_mpirun_in_an_allocation(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    command = [*shlex.split(MPIRUN[framework]), "slaunch", "--log_dir", folder, TRAINING[framework]]
    done = cluster.run(["salloc", "-N2", "--exclusive", *command], timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(logs(folder), 2)


def test_f116_one_machine_without_a_scheduler(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    done = cluster.run(["slaunch", "--nproc_per_node", "2", "--log_dir", folder, TRAINING[framework]], timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(logs(folder), 2)


BY_HAND = {
    "torch": ("torchrun", "--nnodes=2", "--nproc-per-node=1", "--rdzv-endpoint=n1:{port}"),
    "paddle": ("paddle", "--nnodes=2", "--nproc_per_node=1", "--master=n1:{port}"),
}


def test_f4_f17_two_nodes_by_hand_at_an_address(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    words = [word.format(port=free_port()) for word in BY_HAND[framework]]
    call = ["slaunch", *words, "--job-id", f"hand-{framework}", "--log-dir", folder, TRAINING[framework]]
    started = [cluster.start(call, node) for node in ("n1", "n2")]
    ended = [cluster.wait(process, LIMIT_S) for process in started]
    assert [done.returncode for done in ended] == [0, 0], ended
    assert_trained(logs(folder), 2)
