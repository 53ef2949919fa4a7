"""Nodes that are not fit for another attempt: real agents, a real look at each node's folder, real workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .job import Job, shell, wait_for

WORKER = """
touch {place}/up.${{ATTEMPT:-0}}.$RANK
until [ -e {place}/crash.${{ATTEMPT:-0}} ]; do sleep 0.02; done
[ $RANK = 0 ] && exit 3
exec sleep 600
"""


def job(place: Path, nodes: int, **options: Any) -> Job:
    for node in range(nodes):
        (place / f"disk.{node}").mkdir()
    commands = [[shell(WORKER.format(place=place))]] * nodes
    return Job(place, commands, health=f"{place}/disk", limits={"attempts.HEALTH_S": 2.0}, options={"max_restarts": 9, **options})


def up(place: Path, attempt: int, world: int) -> None:
    """Wait until all workers of an attempt run."""
    wait_for(lambda: len([name for name in os.listdir(place) if name.startswith(f"up.{attempt}.")]) == world, f"{attempt}")


def break_disk(place: Path, node: int) -> None:
    (place / f"disk.{node}").rmdir()
    (place / f"disk.{node}").write_text("no folder any more")


def mend_disk(place: Path, node: int) -> None:
    (place / f"disk.{node}").unlink()


def crash(place: Path, attempt: int) -> None:
    (place / f"crash.{attempt}").touch()


def test_w62_a_node_that_is_not_fit_is_left_out_and_comes_back_where_it_is_needed(tmp_path: Path) -> None:
    """The hub's own node is one of them."""
    with job(tmp_path, 3, nnodes=(2, 3), exclude_bad=f"{tmp_path}/bad") as running:
        up(tmp_path, 0, 3)
        break_disk(tmp_path, 0)
        crash(tmp_path, 0)
        up(tmp_path, 1, 2)
        assert (tmp_path / "bad").read_text() == "n0\n"
        mend_disk(tmp_path, 0)
        break_disk(tmp_path, 2)
        crash(tmp_path, 1)
        up(tmp_path, 2, 2)
        wait_for(lambda: (tmp_path / "bad").read_text() == "n[0,2]\n", "both are listed")
        break_disk(tmp_path, 1)
        crash(tmp_path, 2)
        assert running.wait() == [66] * 3
        report = running.report()
        assert report["verdict"]["outcome"] == "start"
        assert "node 1 (n1): cannot write to" in report["verdict"]["problem"]["seen"]
        assert "at least 2 are wanted" in report["verdict"]["problem"]["seen"]
        said = running.text("err.0")
        assert "slaunch: node 0 (n0) is left out: cannot write to" in said
        assert "node 1 (n1): cannot write to" in said
        assert [each["nodes"] for each in report["earlier"]] == [3, 2, 2]
        assert [running.text(f"err.{node}") for node in (1, 2)] == ["", ""], "one agent tells"


def test_a_job_that_needs_all_nodes_ends_and_names_the_one_that_is_not_fit(tmp_path: Path) -> None:
    with job(tmp_path, 2) as running:
        up(tmp_path, 0, 2)
        break_disk(tmp_path, 1)
        crash(tmp_path, 0)
        assert running.wait() == [66, 66]
        assert "node 1 (n1): cannot write to" in running.report()["verdict"]["problem"]["seen"]


def test_a_look_that_hangs_keeps_nobody_waiting_for_ever_and_leaves_nothing(tmp_path: Path) -> None:
    """Meanwhile the agents hear each other; the job is stopped before the look is given up."""
    with job(tmp_path, 2, nnodes=(1, 2)) as running:
        up(tmp_path, 0, 2)
        (tmp_path / "disk.1" / "hangs").touch()
        crash(tmp_path, 0)
        up(tmp_path, 1, 1)
        assert "node 1 (n1) is left out: the look at its health did not end" in running.text("err.0")
        (tmp_path / "disk.1" / "hangs").unlink()
        running.agents[1].terminate()
        assert running.wait() == [143, 143]
