"""Whatever is wrong is told once, in three parts, with its own exit code, by however many tasks it is met."""

import os

import pytest
from support.cluster import Cluster
from support.jobs import WORLD, assert_three_parts, folder_in

AGENTS = ("-N4", "--ntasks-per-node=1")
TASKS = ("-N4", "--ntasks-per-node=2")


@pytest.fixture(params=[AGENTS, TASKS], ids=["agents", "tasks"])
def shape(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


def test_no_such_script(cluster: Cluster, shape: tuple[str, ...]) -> None:
    assert_three_parts(cluster.srun(*shape, "slaunch", "trian.py"), 127, "trian.py")


def test_script_not_executable(cluster: Cluster, shape: tuple[str, ...]) -> None:
    path = os.path.join(folder_in(cluster.scratch), "train.sh")
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(path, 0o644)
    assert_three_parts(cluster.srun(*shape, "slaunch", path), 126, "train.sh", "chmod")


def test_f316_unknown_option(cluster: Cluster, shape: tuple[str, ...]) -> None:
    assert_three_parts(cluster.srun(*shape, "slaunch", "--nproc_per_nod", "2", WORLD), 2, "--nproc-per-node")


def test_f14_no_workers(cluster: Cluster, shape: tuple[str, ...]) -> None:
    assert_three_parts(cluster.srun(*shape, "slaunch", "--nproc_per_node", "0", WORLD), 2, "at least 1")


def test_f69_more_workers_than_devices(cluster: Cluster) -> None:
    done = cluster.srun(*AGENTS, "--gres=gpu:2", "slaunch", "--nproc_per_node", "3", WORLD)
    assert_three_parts(done, 66, "3", "2")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLURM_PROCID", "first"),
        ("SLURM_STEP_TASKS_PER_NODE", "2(x4"),
        ("SLURM_STEP_NODELIST", "n[1-"),
        ("SLURM_STEP_NUM_TASKS", "-3"),
        ("SLURM_NODEID", ""),
    ],
)
def test_p05_p06_malformed_variables(cluster: Cluster, shape: tuple[str, ...], name: str, value: str) -> None:
    done = cluster.srun(*shape, "env", f"{name}={value}", "slaunch", WORLD)
    assert_three_parts(done, 65, name)


def test_f16_the_log_folder_cannot_be_written(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    os.chmod(folder, 0o755)
    done = cluster.srun(*AGENTS, "slaunch", "--log_dir", f"{folder}/logs", WORLD)
    assert_three_parts(done, 73, folder)


def test_f16_the_log_folder_is_full(cluster: Cluster) -> None:
    for node in cluster.nodes:
        cluster.root(
            node,
            "sh",
            "-c",
            "mkdir -p /tmp/full && mount -t tmpfs -o size=4k,nr_inodes=2,mode=777 full /tmp/full && touch /tmp/full/a",
        )
    try:
        done = cluster.srun(*AGENTS, "slaunch", "--log_dir", "/tmp/full", WORLD)
    finally:
        for node in cluster.nodes:
            cluster.root(node, "umount", "/tmp/full")
    assert_three_parts(done, 73, "/tmp/full", "No space left on device")


def test_p21_one_node_without_the_script(cluster: Cluster) -> None:
    cluster.root("n1", "touch", "/tmp/only-on-n1.py")
    cluster.root("n2", "touch", "/tmp/only-on-n1.py")
    done = cluster.srun(*AGENTS, "slaunch", "/tmp/only-on-n1.py")
    assert_three_parts(done, 127, "n3")


def test_p13_tasks_that_do_not_agree(cluster: Cluster) -> None:
    done = cluster.srun(*AGENTS, "bash", "-c", f"exec slaunch {WORLD} $SLURM_PROCID")
    assert_three_parts(done, 70)


def test_f315_a_task_that_does_not_come(cluster: Cluster) -> None:
    command = f"[ $SLURM_PROCID = 2 ] && exec sleep 4; exec slaunch --rendezvous slurm --rendezvous-timeout 3 {WORLD}"
    done = cluster.srun(*AGENTS, "bash", "-c", command)
    assert_three_parts(done, 69, "n3")
