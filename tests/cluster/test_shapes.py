"""Jobs of unusual shape train a real model: parts of different kinds, arrays, and an allocation that has shrunk."""

import os
import re

from support.cluster import Cluster
from support.jobs import EXAMPLES, WORLD, assert_world, folder_in, logs

DDP = os.path.join(EXAMPLES, "ddp", "train.py")


def assert_trained(text: str, world: int) -> None:
    """Every rank ended with the same loss."""
    found = dict(re.findall(r"rank (\d+) of \d+: final loss ([\d.]+)", text))
    assert sorted(map(int, found)) == list(range(world)), text
    assert len(set(found.values())) == 1, text


def test_p10_a_heterogeneous_step_of_srun_trains(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    part = ("--ntasks-per-node=1", "slaunch", "--log_dir", folder, DDP, "--epochs", "1")
    done = cluster.srun("-N1", *part, ":", "-N2", *part, timeout=150)
    assert done.returncode == 0, done.stderr
    assert_trained(logs(folder), 3)


def test_p10_p11_a_heterogeneous_allocation_trains(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    inner = ("slaunch", "--log_dir", folder, DDP, "--epochs", "1")
    done = cluster.run(["salloc", "-Q", "-N1", "--cpus-per-task=2", ":", "-N2", *inner], timeout=150)
    assert done.returncode == 0, done.stderr
    assert_trained(logs(folder), 3)


def test_p84_tasks_of_an_array_are_jobs_of_their_own(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = f"#!/bin/bash\nexec slaunch --log_dir {folder}/$SLURM_ARRAY_TASK_ID {WORLD}\n"
    job = cluster.sbatch(script, "-N2", "--ntasks-per-node=1", "--array=0-1")
    assert job.code == 0, job.output
    for index in (0, 1):
        assert_world(logs(f"{folder}/{index}"), 2, [1, 1])
        with open(f"{folder}/{index}/report.json") as file:
            assert re.search(rf'"job": "\d+_{index}\.0"', file.read())


def test_a_job_that_has_shrunk_uses_the_nodes_it_still_has(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = (
        "#!/bin/bash\nscontrol update JobId=$SLURM_JOB_ID NumNodes=2\n"
        f"exec slaunch --nproc_per_node 2 --log_dir {folder} {WORLD}\n"
    )
    job = cluster.sbatch(script, "-N4", "--ntasks-per-node=1")
    assert job.code == 0, job.output
    assert_world(logs(folder), 4, [2, 2])


def test_a_job_that_has_shrunk_and_read_its_new_shape(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = (
        "#!/bin/bash\nscontrol update JobId=$SLURM_JOB_ID NumNodes=3\n"
        ". ./slurm_job_${SLURM_JOB_ID}_resize.sh\n"
        f"exec slaunch --log_dir {folder} {WORLD}\n"
    )
    job = cluster.sbatch(script, "-N4", "--ntasks-per-node=1")
    assert job.code == 0, job.output
    assert_world(logs(folder), 3, [1, 1, 1])
