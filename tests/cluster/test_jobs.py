"""Whole jobs on the cluster: the world is right however they are started."""

import pytest
from support.cluster import Cluster
from support.jobs import WORLD, assert_world, folder_in, logs, places

from slaunch import templates


def test_f14_f16_f135_f320_agents_start_the_workers_of_their_nodes(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    done = cluster.srun("-N4", "--ntasks-per-node=1", "slaunch", "--nproc_per_node", "2", "--log_dir", folder, WORLD)
    assert done.returncode == 0, done.stderr
    assert_world(logs(folder), 8, [2, 2, 2, 2])
    assert [place["RANK"] for place in places(done.stdout)] == ["0"]  # only rank 0 is on the console
    assert done.stderr.count("slaunch: 8 workers on 4 nodes ended well") == 1


def test_p15_tasks_become_workers(cluster: Cluster) -> None:
    done = cluster.srun("-N4", "--ntasks-per-node=2", "slaunch", WORLD)
    assert done.returncode == 0, done.stderr
    assert_world(done.stdout, 8, [2, 2, 2, 2])
    assert [place["SLURM_PROCID"] for place in places(done.stdout)] == list("01234567")


def test_f15_f57_f63_f64_a_worker_for_each_gpu(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    done = cluster.srun("-N2", "--ntasks-per-node=1", "--gres=gpu:4", "slaunch", "--log_dir", folder, WORLD)
    assert done.returncode == 0, done.stderr
    found = logs(folder)
    assert_world(found, 8, [4, 4])
    assert [place["SLAUNCH_LOCAL_DEVICE"] for place in places(found)] == list("01230123")


def test_p47_a_task_that_sees_one_gpu_uses_position_zero(cluster: Cluster) -> None:
    done = cluster.srun("-N2", "--ntasks-per-node=4", "--gpus-per-task=1", "slaunch", WORLD)
    assert done.returncode == 0, done.stderr
    assert_world(done.stdout, 8, [4, 4])
    assert [place["SLAUNCH_LOCAL_DEVICE"] for place in places(done.stdout)] == ["0"] * 8


def test_f82_p06_uneven_tasks(cluster: Cluster) -> None:
    done = cluster.srun("-N3", "-n5", "--distribution=block", "slaunch", WORLD)
    assert done.returncode == 0, done.stderr
    assert len(places(done.stdout)) == 5
    assert {place["WORLD_SIZE"] for place in places(done.stdout)} == {"5"}


def test_p08_a_step_on_part_of_the_job(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = f"#!/bin/bash\nsrun -N2 -n2 -w n3,n2 slaunch --log_dir {folder} {WORLD}\n"
    job = cluster.sbatch(script, "-N4", "--ntasks-per-node=1")
    assert job.code == 0, job.output
    assert_world(logs(folder), 2, [1, 1])
    assert [place["host"] for place in places(logs(folder))] == ["n2", "n3"]


@pytest.mark.parametrize("shape", [("-N4", "--ntasks-per-node=1"), ("-N4", "--ntasks=8"), ("-N4", "-n8", "--export=NONE")])
def test_p14_p72_a_batch_script_starts_its_own_step(cluster: Cluster, shape: tuple[str, ...]) -> None:
    folder = folder_in(cluster.scratch)
    path = f"export PATH={cluster.path}"
    script = f"#!/bin/bash\n{path}\nexec slaunch --nproc_per_node 2 --log_dir {folder} {WORLD}\n"
    job = cluster.sbatch(script, *shape)
    assert (job.state, job.code) == ("COMPLETED", 0), job.output
    assert_world(logs(folder), 8, [2, 2, 2, 2])


def test_p12_an_allocation_shell_on_the_login_node(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    done = cluster.run(["salloc", "-N2", "--gres=gpu:2", "slaunch", "--log_dir", folder, WORLD])
    assert done.returncode == 0, done.stderr
    assert_world(logs(folder), 4, [2, 2])
    assert {place["host"] for place in places(logs(folder))} == {"n1", "n2"}


def test_p10_a_heterogeneous_job_uses_all_its_parts(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = f"#!/bin/bash\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\nexec slaunch --log_dir {folder} {WORLD}\n"
    job = cluster.sbatch(script)
    assert (job.state, job.code) == ("COMPLETED", 0), job.output
    assert_world(logs(folder), 3, [1, 1, 1])


def test_p28_p29_two_jobs_on_the_same_nodes_do_not_meet(cluster: Cluster) -> None:
    folders = [folder_in(cluster.scratch) for _ in "12"]
    started = [
        cluster.start(["srun", "-N4", "--ntasks-per-node=1", "slaunch", "--nproc_per_node", "2", "--log_dir", folder, WORLD, "2"])
        for folder in folders
    ]
    for process in started:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    for folder in folders:
        assert_world(logs(folder), 8, [2, 2, 2, 2])


def test_p79_the_template_is_a_job(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    with open(templates.path("collective")) as file:
        job = cluster.sbatch(file.read(), "-N2", "--gpus-per-node=2", args=["--log_dir", folder, WORLD])
    assert (job.state, job.code) == ("COMPLETED", 0), job.output
    assert_world(logs(folder), 4, [2, 2])
