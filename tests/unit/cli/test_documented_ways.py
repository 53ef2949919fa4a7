"""The ways in which Paddle's documentation starts jobs: each is read as the job that it means.

The command lines are those of the documentation of `paddle.distributed.launch`, with other addresses.
"""

import shlex

import pytest

from slaunch.allocation.claims import heed
from slaunch.allocation.values import Allocation, Shell, Slot, StepShape, Task
from slaunch.cli.options import read_options

WAYS = {
    "collective, one machine": (
        "train.py",
        {"mode": "collective", "nproc_per_node": 0, "master": "", "log_dir": "log"},
    ),
    "collective, one machine, some devices": (
        "--devices=0,1,2,3 train.py",
        {"mode": "collective", "devices": ("0", "1", "2", "3")},
    ),
    "collective, two nodes, a store opened by the first": (
        "--nnodes=2 train.py",
        {"mode": "collective", "nnodes": (2, 2), "master": ""},
    ),
    "collective, two nodes, ip:port": (
        "--nnodes=2 --master=10.0.0.1:49178 train.py",
        {"nnodes": (2, 2), "master": "10.0.0.1:49178"},
    ),
    "collective, two nodes, ip:port and rank": (
        "--nnodes=2 --master=10.0.0.1:49178 --rank=1 --devices=0,1 train.py",
        {"nnodes": (2, 2), "node_rank": 1, "devices": ("0", "1")},
    ),
    "collective, etcd": (
        "--nnodes=2 --master=etcd://10.0.0.1:2379 train.py",
        {"nnodes": (2, 2), "master": "etcd://10.0.0.1:2379", "mode": "collective"},
    ),
    "parameter servers, one machine": (
        "--server_num=1 --trainer_num=2 train.py",
        {"mode": "ps", "server_num": 1, "trainer_num": 2},
    ),
    "parameter servers, two nodes": (
        "--master=10.0.0.1:49178 --nnodes=2 --server_num=1 --trainer_num=2 train.py",
        {"mode": "ps", "nnodes": (2, 2), "master": "10.0.0.1:49178"},
    ),
    "parameter servers, two nodes, all endpoints": (
        "--servers=10.0.0.1:6170,10.0.0.2:6171 --trainers=10.0.0.1:6172,10.0.0.2:6173 train.py",
        {"mode": "ps", "nnodes": (2, 2), "ips": ("10.0.0.1", "10.0.0.2"), "master": "10.0.0.1:6768"},
    ),
    "parameter servers on GPUs": (
        "--run_mode=ps --server_num=1 --trainer_num=1 --gpus=0,1 train.py",
        {"mode": "ps", "devices": ("0", "1")},
    ),
    "heterogeneous parameter servers": (
        "--run_mode=ps-heter --server_num=2 --worker_num=2 --heter_devices=gpu --heter_worker_num=2 train.py",
        {"mode": "ps_heter", "trainer_num": 2, "heter_num": (2,), "heter_devices": ("gpu",)},
    ),
    "elastic": (
        "--master=etcd://10.0.0.1:2379 --nnodes=2:4 train.py",
        {"nnodes": (2, 4), "master": "etcd://10.0.0.1:2379"},
    ),
    "ipu": (
        "--devices 4 ipu --hosts=h1 --nproc_per_host=2 --ipus_per_replica=1 --ipu_partition=p --vipu_server=s train.py",
        {"mode": "ipu"},
    ),
    "rpc": (
        "--master=10.0.0.1:8765 --nnodes=1 --rank=0 --nproc_per_node=2 --run_mode=rpc train.py",
        {"mode": "rpc", "nproc_per_node": 2},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_f17_f18_f19_f20_f24_f54_each_way_is_read_as_it_is_meant(way):
    line, fields = WAYS[way]
    options = read_options(["paddle", *shlex.split(line)], {})
    assert {name: getattr(options, name) for name in fields} == fields


STARTED = Task(Allocation("slurm", "7", "0", ("n1", "n2"), (1, 1)), Slot(1, 2, 0, 1))
SHELL = Shell(Allocation("slurm", "7", nodes=("n1", "n2")), StepShape(2))
ALONE = Task(Allocation("plain"), Slot(0, 1, 0))


@pytest.mark.parametrize("standing", [STARTED, SHELL], ids=["in a step", "in a batch script"])
@pytest.mark.parametrize("way", [way for way in WAYS if "two nodes" in way or "etcd" in way or way == "elastic"])
def test_f4_f5_in_an_allocation_of_two_nodes_the_master_is_not_needed(way, standing):
    options = read_options(["paddle", *shlex.split(WAYS[way][0])], {})
    kept, heeded = heed(standing, options)
    assert kept == standing
    assert heeded.master == ""
    assert len(heeded.notes) == bool(options.master)


def test_f12_f99_nodes_that_are_started_by_hand_meet_later():
    options = read_options(["paddle", "--nnodes=2", "train.py"], {})
    assert heed(ALONE, options) == (ALONE, options)
