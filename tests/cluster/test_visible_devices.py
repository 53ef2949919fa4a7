"""Devices as Slurm itself hands them out: what each worker sees, and where its own stands in that list."""

import re

import pytest
from support.cluster import Cluster
from support.jobs import folder_in, logs

SHOW = (
    "import os; e = os.environ; os.write(1, ('sees %s %s %s %s\\n' % (e['RANK'], e['CUDA_VISIBLE_DEVICES'], "
    "e['SLAUNCH_LOCAL_DEVICE'], e['FLAGS_selected_gpus'])).encode())"
)


def seen(text: str) -> dict[int, tuple[str, ...]]:
    """Visible list, slaunch's and Paddle's position of each rank."""
    found = re.findall(r"^(?:\[\d+\] )?sees (\d+) (\S+) (\S+) (\S+)$", text, re.MULTILINE)
    return {int(rank): tuple(rest) for rank, *rest in found}


def agents(cluster: Cluster, *options: str) -> dict[int, tuple[str, ...]]:
    folder = folder_in(cluster.scratch)
    shape = ("-N2", "--ntasks-per-node=1", "--gres=gpu:4", "--cpu-bind=none", "slaunch", "--log_dir", folder)
    done = cluster.srun(*shape, *options, "-c", SHOW)
    assert done.returncode == 0, done.stderr
    return seen(logs(folder))


def tasks(cluster: Cluster, *shape: str) -> dict[int, tuple[str, ...]]:
    done = cluster.srun(*shape, "slaunch", "-c", SHOW)
    assert done.returncode == 0, done.stderr
    return seen(done.stdout)


def test_f15_f64_an_agent_starts_a_worker_for_each_device(cluster: Cluster) -> None:
    assert agents(cluster) == {rank: ("0,1,2,3", str(rank % 4), str(rank % 4)) for rank in range(8)}


def test_f66_a_subset_in_the_user_s_order(cluster: Cluster) -> None:
    assert agents(cluster, "--devices", "3,1") == {rank: ("3,1", str(rank % 2), str(rank % 2)) for rank in range(4)}


def test_only_the_own_device(cluster: Cluster) -> None:
    assert agents(cluster, "--visible", "own") == {rank: (str(rank % 4), "0", "0") for rank in range(8)}


def test_tasks_that_see_all_devices_deal_them_out(cluster: Cluster) -> None:
    shown = tasks(cluster, "-N2", "--ntasks-per-node=4", "--gres=gpu:4")
    assert shown == {rank: ("0,1,2,3", str(rank % 4), str(rank % 4)) for rank in range(8)}


@pytest.mark.parametrize("more", [(), ("--nproc_per_node", "4")], ids=["", "count"])
def test_p47_p48_tasks_with_a_device_each_are_one_world_and_use_index_0(cluster: Cluster, more: tuple[str, ...]) -> None:
    done = cluster.srun("-N2", "--ntasks-per-node=4", "--gpus-per-task=1", "slaunch", *more, "-c", SHOW)
    assert done.returncode == 0, done.stderr
    shown = seen(done.stdout)
    assert sorted(shown) == list(range(8))
    assert {rest[1:] for rest in shown.values()} == {("0", "0")}
    assert sorted(rest[0] for rank, rest in shown.items() if rank < 4) == ["0", "1", "2", "3"]
