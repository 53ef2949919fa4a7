"""Memory counters, from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slaunch.agent.oom import MemoryGroup, OomCount, count, explain, limit_bytes

V2_EVENTS = "low 0\nhigh 0\nmax 1207\noom 3\noom_kill 2\noom_group_kill 0\n"
V1_CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"


def v2(root: Path) -> MemoryGroup:
    step = root / "slurm" / "job_7" / "step_0"
    step.mkdir(parents=True)
    (step / "memory.events").write_text(V2_EVENTS)
    (step / "memory.max").write_text("max\n")
    (step.parent / "memory.max").write_text("2147483648\n")
    (root / "slurm" / "memory.max").write_text("max\n")
    return MemoryGroup(str(root), "/slurm/job_7/step_0", 2)


def test_p93_counts_of_v2(tmp_path: Path) -> None:
    group = v2(tmp_path)
    assert count(group).group == 2
    assert limit_bytes(group) == 2147483648


def test_p93_counts_of_v1(tmp_path: Path) -> None:
    step = tmp_path / "job_7"
    step.mkdir()
    (step / "memory.oom_control").write_text(V1_CONTROL)
    (step / "memory.limit_in_bytes").write_text("52428800\n")
    (tmp_path / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    group = MemoryGroup(str(tmp_path), "/job_7", 1)
    assert count(group).group == 4
    assert limit_bytes(group) == 52428800


def test_no_group_at_all(tmp_path: Path) -> None:
    group = MemoryGroup(str(tmp_path), "/nowhere", 2)
    assert count(group).group == 0
    assert limit_bytes(group) == 0


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (OomCount(1, 5), OomCount(2, 6), "out of memory: control group limit of 2.0 GiB"),
        (OomCount(1, 5), OomCount(1, 6), "out of memory: the whole node"),
        (OomCount(1, 5), OomCount(1, 5), ""),
    ],
)
def test_p93_in_words(tmp_path: Path, before: OomCount, after: OomCount, words: str) -> None:
    assert explain(v2(tmp_path), before, after) == words
