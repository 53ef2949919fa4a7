"""Jobs on 64 nodes: all meet, in either way, and those that do not come are named among them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

import pytest
from support.cluster import Cluster
from support.jobs import folder_in

NODES = 64
EACH = (f"-N{NODES}", "--ntasks-per-node=1")


@pytest.fixture(scope="module")
def _many() -> Iterator[Cluster]:
    with Cluster(nodes=NODES, cpus=2, gpus=0).running() as cluster:
        yield cluster


@pytest.fixture
def many(_many: Cluster) -> Iterator[Cluster]:
    """64 nodes. A job or process that a test leaves behind fails it."""
    yield _many
    left = _many.clean()
    assert not left, "left on the cluster:\n" + "\n".join(left)


def slaunch(cluster: Cluster, *options: str) -> tuple[str, ...]:
    return (cluster.python, "-m", "slaunch", "--log_dir", folder_in(cluster.scratch), "--nproc_per_node", "1", *options)


@pytest.mark.parametrize(("way", "plugin"), [("slurm", "none"), ("mpi", "pmi2")])
def test_all_of_64_nodes_meet(many: Cluster, way: str, plugin: str) -> None:
    began = time.monotonic()
    program = slaunch(many, "--rendezvous", way, "--rendezvous-timeout", "150", "-c", "pass")
    done = many.srun(f"--mpi={plugin}", *EACH, *program, timeout=170)
    print(f"64 nodes, {way}: srun took {time.monotonic() - began:.1f} s")
    assert done.returncode == 0, done.stderr
    assert f"slaunch: met {NODES} tasks by {way}: " in done.stderr
    assert f"slaunch: {NODES} workers on {NODES} nodes ended well" in done.stderr


LATE = """
case $SLURM_PROCID in
    40) exec sleep 300 ;;
    17) touch "$0/begun"; while ! [ -e "$0/cut" ]; do sleep 0.1; done ;;
esac
exec "$@"
"""
"""Task 40 never starts slaunch, task 17 only when its node is cut off."""


def test_w16_the_missing_of_64_nodes_are_named(many: Cluster) -> None:
    folder = folder_in(many.scratch)
    program = slaunch(many, "--rendezvous", "slurm", "--rendezvous-timeout", "20", "-c", "pass")
    options = ("--mpi=none", *EACH, "--kill-on-bad-exit=0", f"--error={folder}/%t")
    step = many.start(["srun", *options, "sh", "-c", LATE, folder, *program])
    many.wait_until(lambda: os.path.exists(f"{folder}/begun"), 60, lambda: "task 17 has not begun")
    many.cut("n18")
    with open(f"{folder}/cut", "w"):
        began = time.monotonic()
    many.wait_until(lambda: "cannot meet" in text(f"{folder}/0"), 90, lambda: text(f"{folder}/0"))
    print(f"named after {time.monotonic() - began:.1f} s")
    many.join("n18")
    many.stop(step)
    seen = " ".join(text(f"{folder}/0").split())
    assert "slaunch: waiting for n18 (task 17), n41 (task 40)" in seen
    assert re.search(r"seen: 62 of 64 tasks are here, but not n18 \(task 17\), n41 \(task 40\)", seen)


def text(path: str) -> str:
    """What is in a file; "" while it is not there."""
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()
