"""The 13 examples of Paddle's documentation of its launcher, each run as it stands: node by node, by hand, without Slurm."""

import os
import re
from collections import Counter
from dataclasses import dataclass

import pytest
from support.cluster import Cluster
from support.jobs import PROGRAMS, folder_in, logs


@dataclass(frozen=True)
class Way:
    """An example.

    Attributes:
        line: its options, with {0} and {1} for the addresses of two nodes, and {rank}.
        roles: how many workers of each role the job has.
        nodes: how many nodes run the command.
        visible: CUDA_VISIBLE_DEVICES.
    """

    line: str
    roles: dict[str, int]
    nodes: int = 1
    visible: str = ""


LISTS = "--servers={0}:6170,{1}:6170 --workers={0}:6171,{0}:6172,{1}:6171,{1}:6172"
HETERS = "--servers={0}:6270,{1}:6270 --workers={0}:6271,{1}:6271 --heter_workers={0}:6272,{1}:6272"
SIX, FOUR_EACH = {"PSERVER": 2, "TRAINER": 4}, {"PSERVER": 4, "TRAINER": 4}
TWO_EACH = {"PSERVER": 2, "TRAINER": 2, "HETER_TRAINER": 2}
WAYS = {
    "1 collective, single node": Way("--devices=0,1,2,3", {"WORKER": 4}, 1, "0,1,2,3"),
    "2 collective, multi node": Way("--devices=0,1,2,3 --master={0}:8090 --nnodes=2", {"WORKER": 8}, 2, "0,1,2,3"),
    "3 ps, cpu, single node": Way("--server_num=2 --worker_num=4", SIX),
    "4 ps, cpu, multi node": Way(LISTS, SIX, 2),
    "4 ps, cpu, multi node, with master": Way("--master {0}:9090 --server_num=2 --trainer_num=2 --nnodes 2", FOUR_EACH, 2),
    "5 ps, gpu, single node": Way("--server_num=2 --worker_num=4", SIX, 1, "0,1,2,3"),
    "6 ps, gpu, multi node": Way(LISTS, SIX, 2, "0,1"),
    "7 ps-heter, single node": Way("--server_num=2 --worker_num=2 --heter_worker_num=2", TWO_EACH, 1, "0,1"),
    "8 ps-heter, multi node": Way(HETERS, TWO_EACH, 2, "0"),
    "9 elastic": Way("--master etcd://ctl:2379 --nnodes 2:4 --elastic_timeout 50", {"WORKER": 4}, 4),
    "11 rpc, single node": Way("--master 127.0.0.1:8765 --nnodes 1 --nproc_per_node 2 --rank 0 --run_mode rpc", {"WORKER": 2}),
    "12 rpc, multi node": Way("--master {0}:8765 --nnodes 2 --nproc_per_node 2 --rank {rank} --run_mode rpc", {"WORKER": 4}, 2),
}


def words(cluster: Cluster, *more: str) -> list[str]:
    return [cluster.python, "-m", "slaunch.paddle", *more, f"{PROGRAMS}/ways.py", "--lr=0.01"]


def assert_ran(folder: str, roles: dict[str, int]) -> None:
    """So many of each role, each with a number of its own, with the size of the world and the program's arguments."""
    text = "\n".join(logs(folder, name) for name in ("workerlog", "serverlog", "heter2log"))
    found = re.findall(r"^is (\w+) (\S+) of (\d+) --lr=0.01$", text, re.MULTILINE)
    assert Counter(role for role, _, _ in found) == roles, text
    clients = "TRAINER" if "TRAINER" in roles else "WORKER"
    assert sorted(number for role, number, _ in found if role == clients) == [str(number) for number in range(roles[clients])]
    assert {size for _, _, size in found} == {str(roles[clients])}


@pytest.mark.parametrize("name", WAYS)
def test_f4_f5_f13_f17_f18_f19_f20_f30_f31_an_example_of_the_documentation(cluster: Cluster, name: str) -> None:
    way, folder = WAYS[name], folder_in(cluster.scratch)
    addresses = [cluster.run(["getent", "hosts", node]).stdout.split()[0] for node in cluster.nodes[:2]]
    env = {"CUDA_VISIBLE_DEVICES": way.visible, "PADDLE_JOB_ID": f"way-{os.urandom(4).hex()}"}
    started = []
    for rank, node in enumerate(cluster.nodes[: way.nodes]):
        call = words(cluster, *way.line.format(*addresses, rank=rank).split())
        started.append(cluster.start(call, node, env=env, cwd=folder))
    ended = [cluster.wait(process, 60) for process in started]
    assert [done.returncode for done in ended] == [0] * way.nodes, ended
    assert_ran(folder, way.roles)


def test_f12_f99_example_0_the_first_node_says_what_to_start_on_the_others(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    first = cluster.start(words(cluster, "--nnodes", "2"), "n1", cwd=folder)
    assert first.stderr is not None
    said = ""
    while "start on each other node" not in said:
        said = first.stderr.readline()
        assert said, "the first node ended"
    other = cluster.run(["bash", "-c", said.partition("node:")[2]], "n2", cwd="/")
    assert (cluster.wait(first, 60).returncode, other.returncode) == (0, 0), other.stderr
    assert_ran(folder, {"WORKER": 2})


def test_f36_f92_example_10_poprun_is_started_once(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    with open(f"{folder}/poprun", "w") as file:
        file.write('#!/bin/sh\nfor word; do echo "word $word"; done\n')
    os.chmod(f"{folder}/poprun", 0o755)
    ipu = "ipu --hosts=localhost --nproc_per_host=2 --ipus_per_replica=1 --ipu_partition=pod16 --vipu_server=127.0.0.1"
    done = cluster.run(words(cluster, "--devices", "4", *ipu.split()), "n1", cwd=folder, env={"PATH": f"{folder}:{cluster.path}"})
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^word (.*)$", logs(folder), re.MULTILINE)
    assert found[:4] == ["--num-instances=2", "--num-replicas=4", "--ipus-per-replica=1", "--host=localhost"]
    assert found[-2:] == [f"{PROGRAMS}/ways.py", "--lr=0.01"]


def test_example_2_without_a_number_of_nodes_is_an_error_where_it_cannot_be_meant(cluster: Cluster) -> None:
    """Paddle starts a job of its own on each node then."""
    other = cluster.run(words(cluster, "--master", "n1:8090"), "n2", cwd=folder_in(cluster.scratch))
    assert (other.returncode, "give all of them --nnodes N" in other.stderr) == (2, True), other.stderr
    first = cluster.run(words(cluster, "--master", "n1:8090"), "n1", cwd=folder_in(cluster.scratch))
    assert (first.returncode, "--nnodes N makes N nodes meet there" in first.stderr) == (0, True), first.stderr
