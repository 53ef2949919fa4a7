"""A worker that the kernel kills for lack of memory, in a control group with a real limit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .job import Job, python

V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
LIMIT = 100 << 20


@pytest.fixture
def small_group() -> Iterator[str]:
    """A memory control group of 100 MB, v1 or v2 as the machine has it."""
    v1 = os.path.isdir(V1)
    group = f"{V1 if v1 else V2}/slaunch-test-{os.getpid()}"
    os.mkdir(group)
    with open(f"{group}/{'memory.limit_in_bytes' if v1 else 'memory.max'}", "w") as file:
        file.write(str(LIMIT))
    yield group
    os.rmdir(group)


def test_p93_the_oom_killer_is_named_with_the_limit(tmp_path: Path, small_group: str) -> None:
    """The agent moves into the group before it runs; its worker takes more than there is."""
    greedy = "import time; time.sleep(0.5); data = bytearray(1 << 30); data[::4096] = b'x' * len(data[::4096])"
    enter = f'echo $$ > {small_group}/cgroup.procs; exec "$@"'
    with Job(tmp_path, [[python(greedy), ["sleep", "600"]]], wrap=["/bin/sh", "-c", enter, "sh"]) as job:
        assert job.wait() == [137]
        first = job.report()["verdict"]["first"]
        assert (first["rank"], first["signal"], first["cause"]) == (0, 9, "memory")
        assert first["detail"] == "out of memory: control group limit of 0.1 GiB"
        assert "cause:  out of memory: control group limit of 0.1 GiB" in job.text("err.0")


def test_p93_a_kill_from_outside_is_not_called_so(tmp_path: Path, small_group: str) -> None:
    enter = f'echo $$ > {small_group}/cgroup.procs; exec "$@"'
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    with Job(tmp_path, [[killed]], wrap=["/bin/sh", "-c", enter, "sh"]) as job:
        assert job.wait() == [137]
        assert job.report()["verdict"]["first"]["cause"] == "signal"


def test_the_group_is_real(small_group: str) -> None:
    greedy = "bytearray(1 << 30)[::4096]"
    done = subprocess.run(["/bin/sh", "-c", f"echo $$ > {small_group}/cgroup.procs; exec {sys.executable} -c '{greedy}'"])
    assert done.returncode in (-9, 137)
