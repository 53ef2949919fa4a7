"""A plan of 16,384 nodes with eight workers each stays cheap."""

import time
import tracemalloc

import pytest
from support import plans

from slaunch.plan.build import build
from slaunch.plan.workers import worker
from slaunch.rendezvous.values import Membership

NODES, WORKERS = 16_384, 8


@pytest.fixture(scope="module")
def membership():
    devices = plans.gpus(*map(str, range(WORKERS)))
    return Membership(tuple(plans.facts(index, WORKERS, devices) for index in range(NODES)), 0, 0, "none", "", b"")


def test_building_takes_about_a_second_and_little_memory(membership):
    taken = []
    for _ in range(3):
        start = time.process_time()
        made = build(membership, plans.options(), plans.SLURM, ("python3", "train.py"), "job7", "/logs")
        taken.append(time.process_time() - start)
    assert made.world == NODES * WORKERS
    assert min(taken) < 3  # half a second to one on a quiet machine
    tracemalloc.start()
    build(membership, plans.options(), plans.SLURM, ("python3", "train.py"), "job7", "/logs")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_the_last_node_s_workers_start_with_lists_in_one_file(membership):
    made = build(membership, plans.options(), plans.SLURM, ("python3", "train.py"), "job7", "/logs")
    specs = [worker(made, rank, {}, plans.options()) for rank in made.nodes[-1].ranks]
    assert [spec.set_env["RANK"] for spec in specs] == [str(rank) for rank in range(131_064, 131_072)]
    assert len({spec.files for spec in specs}) == 1
    assert max(len(name) + len(value) for spec in specs for name, value in spec.set_env.items()) < 131_000
