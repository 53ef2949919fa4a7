"""Limits that break training."""

from __future__ import annotations

import subprocess
import sys

import pytest

from slaunch.node.limits import UNLIMITED, limit_notes

FINE = {name: (UNLIMITED, UNLIMITED) for name in ("memlock", "nofile", "nproc", "stack")}


def notes(workers=8, rdma=True, root=False, **low):
    return limit_notes(FINE | {name: (soft, UNLIMITED) for name, soft in low.items()}, workers, rdma, root)


def test_p46_no_limits_no_notes():
    assert notes() == ()


@pytest.mark.parametrize(
    ("limit", "soft", "flag"),
    [("memlock", 65536, "ulimit -l"), ("nofile", 256, "ulimit -n"), ("nproc", 512, "ulimit -u"), ("stack", 8192, "ulimit -s")],
)
def test_p46_each_low_limit_is_named_with_its_flag(limit, soft, flag):
    (note,) = notes(**{limit: soft})
    assert note.startswith(f"limit {limit} is {soft} (hard limit unlimited)")
    assert flag in note


def test_p46_locked_memory_matters_to_rdma_alone():
    assert notes(rdma=False, memlock=65536) == ()


def test_p46_processes_are_not_counted_for_root_and_are_per_worker():
    assert notes(root=True, nproc=10) == ()
    assert notes(workers=1, nproc=512) == ()


def test_p46_usual_limits_of_a_cluster_are_fine():
    assert notes(nofile=1024, nproc=4096, stack=8 << 20) == ()


def test_p46_limits_of_a_real_process(tmp_path):
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    code = (
        "import resource, sys; from slaunch.node.limits import notes_here\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)); resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "print(notes_here(1, sys.argv[1]))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path)]
    told = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "limit memlock is 65536 (hard limit 65536)" in told
    assert "limit nofile is 200" in told
