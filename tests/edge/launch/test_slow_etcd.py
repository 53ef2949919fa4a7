"""Jobs at an etcd that is slow, silent, restarted, or out of reach: real agents, workers and etcd, and a way to it of ours.

A worker sees every worker of another world of its name that lives; no job may ever have two at once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.etcds import Proxy, Server
from support.worlds import FAST, WORLD, steady_network, up, worlds

CLEAN = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
PATIENCE_S = 60.0


class Nodes:
    """Agents on this machine, each a node of its own, of jobs of one name."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        (folder / "fast.py").write_text(FAST)
        (folder / "world.py").write_text(WORLD)
        self.folder, self.place, self.name = folder, str(folder), f"{name}{os.getpid()}"
        self.key = f"/slaunch/by hand/{self.name}/server"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(
        self, who: str, port: int, nodes: str, grace: str = "1", options: Sequence[str] = (), **env: str
    ) -> subprocess.Popen[bytes]:
        call = [sys.executable, "fast.py", *(["paddle"] if options else ["--scheduler", "plain", "--grace", grace]), *options]
        call += ["--master", f"etcd://127.0.0.1:{port}", "--nnodes", nodes, "--log_dir", f"logs.{who}"]
        call += ["--nproc_per_node", "1", "--job_id", self.name, *steady_network(), "world.py", who]
        secret = "a secret of sixteen letters or more"
        env = {**CLEAN, "PLACE": self.place, "WHO": who, "SLAUNCH_SECRET": secret, "LAST_CALL": "0.2", **env}
        with open(self.folder / f"out.{len(self.started)}", "wb") as out:
            node = subprocess.Popen(call, cwd=self.place, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.started.append(node)
        return node

    def until(self, what: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not what():
            assert time.monotonic() < end, self.said()
            time.sleep(0.05)

    def up(self, who: str, attempt: int, world: int) -> None:
        self.until(lambda: up(self.place, who, attempt, world))

    def next_job(self, port: int) -> subprocess.Popen[bytes]:
        """Another job of the name, started again and again as the first one turns it away; until it runs."""
        while True:
            node = self.start("next", port, "1:2")
            self.until(lambda node=node: node.poll() is not None or up(self.place, "next", 0, 1))  # type: ignore[misc]
            if node.poll() is None:
                return node
            self.started.remove(node)

    def said(self) -> str:
        outs = (path.read_text() for path in sorted(self.folder.glob("out.*")))
        return "\n-- ".join((str(worlds(self.place)), *outs))

    def end(self) -> list[int]:
        (self.folder / "done").touch()
        return [node.wait(PATIENCE_S) for node in self.started]

    def close(self) -> None:
        for node in self.started:
            if node.poll() is None:
                node.kill()
            node.wait()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    made = Proxy(server.port)
    yield made
    made.close()


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Callable[[str], Nodes]]:
    """Jobs, by their names."""
    made: list[Nodes] = []

    def make(name: str) -> Nodes:
        made.append(Nodes(tmp_path / name, name))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_f110_f121_w20_nodes_meet_run_and_grow_at_a_slow_etcd_that_is_restarted(
    named: Callable[[str], Nodes], server: Server, proxy: Proxy
) -> None:
    """Each answer takes half a second, and a call may take two. The hub is lost, too."""
    proxy.delay_s = 0.5
    job = named("slow")
    reign = lambda: json.loads(server.client.get(job.key) or "{}").get("reign", -1)  # noqa: E731
    first, second = (job.start("job", proxy.port, "2:3", PATIENT="yes") for _ in range(2))
    job.up("job", 0, 2)
    job.until(lambda: reign() == 0)
    server.stop()
    server.start()
    job.start("job", proxy.port, "2:3", PATIENT="yes")
    job.up("job", 1, 3)
    hub = first if "has come to the job" in (job.folder / "out.0").read_text() else second
    hub.kill()
    job.up("job", 2, 2)
    job.until(lambda: reign() == 1)
    assert sorted(job.end()) == [-signal.SIGKILL, 0, 0], job.said()
    assert "silent" not in job.said()
    assert worlds(job.place) == ["job 0 begins", "job 1 begins", "job 2 begins"]


def test_f110_w20_jobs_whose_etcd_falls_silent_are_gone_before_the_next_ones_of_their_names_begin(
    named: Callable[[str], Nodes], server: Server, proxy: Proxy
) -> None:
    """Connections are still made. The workers do not heed SIGTERM, and would have a minute to save: longer than etcd waits.

    One of the jobs loses its hub as well. The next hub cannot know since when etcd has been silent; it starts no worker.
    """
    kept, parted = named("kept"), named("parted")
    wishes = {"grace": "60", "STUBBORN": "yes", "LAST_CALL": "10"}
    alone = kept.start("first", proxy.port, "1:2", **{**wishes, "LAST_CALL": "0"})
    hub, other = (parted.start("first", proxy.port, "1:2", **wishes) for _ in range(2))
    kept.up("first", 0, 1)
    parted.up("first", 0, 2)
    for job in (kept, parted):
        job.until(lambda job=job: "reign" in server.client.get(job.key))  # type: ignore[misc]
    proxy.deaf = True
    if "met 2 tasks" not in (parted.folder / "out.0").read_text():
        hub, other = other, hub
    hub.kill()
    following = [job.next_job(server.port) for job in (kept, parted)]
    assert alone.wait(PATIENCE_S) == 69, kept.said()
    assert "go on, as another job of this name may begin" in kept.said()
    assert other.wait(PATIENCE_S) in (69, 75), parted.said()  # 75: on a busy machine it cannot be sure that the hub is dead
    for job in (kept, parted):
        job.end()
        assert worlds(job.place) == ["first 0 begins", "next 0 begins"]
    assert [each.returncode for each in following] == [0, 0]


def test_w20_a_node_that_comes_too_late_to_a_job_that_takes_in_none_is_no_second_job(
    named: Callable[[str], Nodes], server: Server
) -> None:
    """Paddle's level -1: the range only says with how many nodes the job may begin; and one is enough."""
    job = named("level")
    options = ("--elastic_level", "-1")
    first = job.start("first", server.port, "1:2", options=options)
    job.up("first", 0, 1)
    job.until(lambda: "reign" in server.client.get(job.key))
    late = job.start("first", server.port, "1:2", options=options)
    assert late.wait(PATIENCE_S) == 69, job.said()
    assert "it keeps the nodes with which it has begun" in job.said()
    assert job.end() == [0, 69], job.said()
    assert first.returncode == 0
    assert worlds(job.place) == ["first 0 begins"]
    assert server.client.get(job.key) == ""
