"""CPUs and GPUs of workers under a Slurm that binds tasks (task/affinity), without and with control groups."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

import pytest
from support.cluster import CHECKOUT, Cluster
from support.jobs import folder_in, logs

MASK = os.path.join(CHECKOUT, "tests", "programs", "mask.py")
CPUS = 2
"""Of each node, and of the machine that carries them: tests of binding need real ones."""


def of_kind(*options: str) -> Iterator[Cluster]:
    cluster = Cluster(nodes=2, cpus=CPUS, gpus=4)
    cluster._shape += options
    with cluster.running():
        yield cluster
        assert not cluster.clean()


@pytest.fixture(scope="module")
def loose() -> Iterator[Cluster]:
    """Slurm binds tasks by their masks alone."""
    yield from of_kind()


@pytest.fixture(scope="module")
def tight() -> Iterator[Cluster]:
    """Slurm shuts tasks into control groups."""
    yield from of_kind("-C")


def masks(text: str) -> list[Mapping[str, object]]:
    found = [json.loads(line) for line in re.findall(r"^(?:\[\d+\] )?mask (\{.*\})$", text, re.MULTILINE)]
    return sorted(found, key=lambda each: int(each["RANK"]))


def run(cluster: Cluster, srun: tuple[str, ...], *options: str) -> tuple[list[Mapping[str, object]], str]:
    folder = folder_in(cluster.scratch)
    done = cluster.srun(*srun, "slaunch", "--log_dir", folder, *options, MASK)
    assert done.returncode == 0, done.stderr
    return masks(logs(folder) or done.stdout), done.stderr


def test_p39_workers_leave_the_one_core_of_their_agent(loose: Cluster) -> None:
    found, _ = run(loose, ("-N1", "-n1"), "--nproc_per_node", "2")
    assert [each["cpus"] for each in found] == [[0], [1]]


def test_p39_p44_a_lone_worker_keeps_the_mask_and_has_threads_for_it(loose: Cluster) -> None:
    found, _ = run(loose, ("-N1", "-n1", "-c2"))
    assert [(each["cpus"], each["OMP_NUM_THREADS"]) for each in found] == [([0, 1], "2")]


def test_p37_cpu_bind_none_is_bound_by_slaunch(loose: Cluster) -> None:
    found, _ = run(loose, ("-N2", "--ntasks-per-node=1", "-c2", "--cpu-bind=none"), "--nproc_per_node", "2")
    assert [(each["host"], each["cpus"]) for each in found] == [("n1", [0]), ("n1", [1]), ("n2", [0]), ("n2", [1])]


def test_policy_none_leaves_workers_the_mask_of_their_agent(loose: Cluster) -> None:
    found, _ = run(loose, ("-N1", "-n1", "-c2"), "--nproc_per_node", "2", "--bind", "none")
    assert [each["cpus"] for each in found] == [[0, 1], [0, 1]]


def test_tasks_that_are_workers_keep_slurm_s_masks(loose: Cluster) -> None:
    found, _ = run(loose, ("-N2", "--ntasks-per-node=2", "--cpu-bind=cores"))
    assert [each["cpus"] for each in found] == [[0], [1], [0], [1]]


def test_p39_an_agent_shut_in_one_core_says_what_to_ask_for(tight: Cluster) -> None:
    done = tight.srun("-N1", "-n1", "slaunch", "--nproc_per_node", "2", MASK)
    assert done.returncode == 71, done.stderr
    assert re.search(r"may use the CPUs [01] only, of 2", done.stderr)
    assert "--cpus-per-task" in done.stderr


def test_p39_enough_cpus_in_a_control_group(tight: Cluster) -> None:
    found, _ = run(tight, ("-N1", "-n1", "-c2"), "--nproc_per_node", "2")
    assert [each["cpus"] for each in found] == [[0], [1]]


@pytest.mark.parametrize("bind", [(), ("--gpu-bind=single:1",), ("--gpu-bind=map_gpu:2,3",), ("--gpu-bind=mask_gpu:0x4,0x8",)])
def test_p47_p48_a_task_uses_the_gpu_that_it_sees(loose: Cluster, bind: tuple[str, ...]) -> None:
    count = ("--gres=gpu:4", *bind) if bind else ("--gpus-per-task=1",)
    found, _ = run(loose, ("-N1", "-n2", *count))
    assert len({each["CUDA_VISIBLE_DEVICES"] for each in found}) == 2
    assert [each["SLAUNCH_LOCAL_DEVICE"] for each in found] == ["0", "0"]


def test_p47_isolated_tasks_all_call_their_gpu_zero(tight: Cluster) -> None:
    found, _ = run(tight, ("-N1", "-n2", "--gpus-per-task=1"))
    assert [(each["CUDA_VISIBLE_DEVICES"], each["SLAUNCH_LOCAL_DEVICE"]) for each in found] == [("0", "0"), ("0", "0")]


def test_f57_f64_one_worker_for_each_gpu_of_the_step(loose: Cluster) -> None:
    found, _ = run(loose, ("-N2", "--ntasks-per-node=1", "-c2", "--gpus-per-task=2"))
    assert [(each["CUDA_VISIBLE_DEVICES"], each["FLAGS_selected_gpus"]) for each in found] == [("0,1", "0"), ("0,1", "1")] * 2


def test_f66_devices_of_the_list_by_name(loose: Cluster) -> None:
    found, _ = run(loose, ("-N1", "-n1", "-c2", "--gres=gpu:4"), "--devices", "2,3")
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found] == ["2,3", "2,3"]
    assert [each["SLAUNCH_LOCAL_DEVICE"] for each in found] == ["0", "1"]


def test_f69_more_workers_than_gpus_is_one_error(loose: Cluster) -> None:
    done = loose.srun("-N2", "--ntasks-per-node=1", "--gpus-per-task=2", "slaunch", "--nproc_per_node", "3", MASK)
    assert done.returncode == 66, done.stderr
    assert "2 visible: 0,1" in done.stderr


@pytest.mark.parametrize(
    ("srun", "options"),
    [
        (("-N1", "-n1"), ("--nproc_per_node", "2")),
        (("-N1", "-n1", "-c2"), ("--nproc_per_node", "2", "--bind", "core")),
        (("-N2", "--ntasks-per-node=1", "--exclusive"), ("--nproc_per_node", "2")),
        (("-N1", "-n1", "-c2", "--gpus-per-task=2"), ()),
        (("-N1", "-n1", "-c2", "--gpus-per-task=2"), ("--workers-per-device", "1", "--bind", "map:1,0")),
        (("-N1", "-n2", "--cpu-bind=cores", "--gres=gpu:4", "--gpu-bind=single:1"), ()),
        (("-N1", "-n1", "-c2", "--cpu-bind=map_cpu:1"), ("--bind", "none", "--nproc_per_node", "2")),
    ],
    ids=lambda words: " ".join(words),
)
def test_masks_in_proc_are_as_the_map_says(loose: Cluster, srun: tuple[str, ...], options: tuple[str, ...]) -> None:
    where = () if "-N2" in srun else ("--nodelist=n1",)
    found, _ = run(loose, (*where, *srun), *options)
    told = loose.srun(*where, *srun, "slaunch", "explain", "--bind", "--json", *options, MASK)
    assert told.returncode == 0, told.stderr
    planned = {
        (host, worker["local_rank"]): worker["cpus"]
        for node in json.loads(told.stdout)["nodes"]
        for host in node["hosts"]
        for worker in node["workers"]
    }
    assert {(str(each["host"]), int(str(each["LOCAL_RANK"]))): each["cpus"] for each in found} == planned


@pytest.mark.parametrize(
    ("srun", "options"), [(("-N1", "-n1", "-c2"), ("--nproc_per_node", "2")), (("-N1", "-n2"), ())], ids=["agent", "tasks"]
)
def test_p43_memory_of_workers_is_bound_where_that_is_asked_for(
    loose: Cluster, srun: tuple[str, ...], options: tuple[str, ...]
) -> None:
    assert [each["memory"] for each in run(loose, srun, *options)[0]] == ["default"] * 2
    assert [each["memory"] for each in run(loose, srun, *options, "--bind-memory", "bind")[0]] == ["bind:0"] * 2


def test_f71_w43_workers_share_gpus_or_have_several_where_that_is_asked_for(loose: Cluster) -> None:
    found, said = run(loose, ("-N1", "-n1", "-c2", "--gres=gpu:2"), "--workers-per-device", "2")
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found] == ["0", "0", "1", "1"]
    assert [each["SLAUNCH_LOCAL_DEVICE"] for each in found] == ["0"] * 4
    assert "take turns on it: no MPS daemon runs" in said
    found, _ = run(loose, ("-N1", "-n1", "-c2", "--gres=gpu:4"), "--devices-per-worker", "2")
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found] == ["0,1", "2,3"]
    assert [each["SLAUNCH_LOCAL_DEVICE"] for each in found] == ["0,1", "0,1"]


def test_w10_the_most_memory_is_told_at_the_end(loose: Cluster) -> None:
    _, said = run(loose, ("-N2", "--ntasks-per-node=1"), "--nproc_per_node", "1")
    assert re.search(r"memory: hosts at most \d+ MiB \(rank [01] on n[12]\)", said)
