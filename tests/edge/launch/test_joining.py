"""Nodes that come to a running job, at an address or by an etcd. All on this machine: real agents, sockets, workers and etcd."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.etcds import Server
from support.worlds import FAST, steady_network

from slaunch.agent import keeper
from slaunch.badnodes import read
from slaunch.options import Options, Program
from slaunch.rendezvous import etcd_late
from slaunch.rendezvous.etcd_late import KEPT, TAKEN, Entry, remove, renew

CLEAN = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
PATIENCE_S = 60.0
WORKER = """
import os, time
open(f"{os.environ['PLACE']}/up.{os.environ['SLAUNCH_ATTEMPT']}.{os.environ['WORLD_SIZE']}.{os.environ['RANK']}", "w").close()
while not os.path.exists(os.environ["PLACE"] + "/done"): time.sleep(0.02)
"""


def until(what: Callable[[], object], text: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, text()
        time.sleep(0.05)


class Agents:
    """Agents of one job on this machine, each a node of its own."""

    def __init__(self, place: Path, master: str, nodes: str) -> None:
        self.place, self.started = place, []  # type: ignore[var-annotated]
        (place / "fast.py").write_text(FAST)
        self.call = [sys.executable, "fast.py", "--scheduler", "plain", "--master", master, "--nnodes", nodes]
        self.call += ["--nproc-per-node", "1", "--max-restarts", "5", "--job-id", f"join{os.getpid()}", "--log-dir", "logs"]
        self.call += steady_network()

    def start(self, **more: str) -> subprocess.Popen[bytes]:
        number = len(self.started)
        with open(self.place / f"out.{number}", "wb") as out:
            secret = "a secret of sixteen letters or more"
            env = {**CLEAN, "PLACE": str(self.place), "SLAUNCH_SECRET": secret, "PATIENT": "yes", "LAST_CALL": "1", **more}
            argv = [*self.call, "-c", WORKER]
            agent = subprocess.Popen(argv, cwd=self.place, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.started.append(agent)
        return agent

    def up(self, attempt: int, world: int) -> None:
        """Wait until all workers of an attempt run."""
        ranks = lambda: len(list(self.place.glob(f"up.{attempt}.{world}.*")))  # noqa: E731
        until(lambda: ranks() == world, lambda: f"attempt {attempt} of {world}\n{self.said()}")

    def said(self) -> str:
        return "\n".join(f"-- {path.name}\n{path.read_text()}" for path in sorted(self.place.glob("out.*")))

    def end(self) -> list[int]:
        (self.place / "done").touch()
        try:
            return [agent.wait(PATIENCE_S) for agent in self.started]
        finally:
            self.kill()

    def kill(self) -> None:
        for agent in self.started:
            if agent.poll() is None:
                agent.kill()
            agent.wait()


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Callable[[str, str], Agents]]:
    made: list[Agents] = []

    def make(master: str, nodes: str) -> Agents:
        made.append(Agents(tmp_path, master, nodes))
        return made[-1]

    yield make
    for each in made:
        each.kill()


def test_f121_f123_nodes_come_to_a_job_by_etcd_also_after_its_first_node_is_lost(
    agents: Callable[[str, str], Agents], server: Server
) -> None:
    """And etcd is restarted meanwhile."""
    job = agents(f"etcd://127.0.0.1:{server.port}", "2:4")
    first, second = job.start(), job.start()
    job.up(0, 2)
    key = f"/slaunch/by hand/join{os.getpid()}/server"
    until(lambda: "reign" in server.client.get(key), lambda: "no entry: " + server.client.get(key))
    server.stop()
    server.start()
    job.start()
    job.up(1, 3)
    hub = first if "has come to the job" in (job.place / "out.0").read_text() else second
    hub.kill()
    job.up(2, 2)
    until(lambda: json.loads(server.client.get(key) or '{"reign": 0}')["reign"] == 1, lambda: server.client.get(key))
    job.start()
    job.up(3, 3)
    codes = job.end()
    assert sorted(codes) == [-signal.SIGKILL, 0, 0, 0], job.said()
    assert server.client.get(key) == "", "nothing is left"


def test_f123_nodes_come_to_a_job_at_its_master(agents: Callable[[str, str], Agents]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    job = agents(f"127.0.0.1:{port}", "1:3")
    job.start()
    job.up(0, 1)
    job.start()
    job.up(1, 2)
    wrong = agents(f"127.0.0.1:{port}", "1:3")
    wrong.call[wrong.call.index("--max-restarts") + 1] = "9"
    wrong.started = job.started
    wrong.start()
    assert wrong.started.pop().wait(PATIENCE_S) == 69, job.said()
    assert "cannot take part: program (its content or the options)" in job.said()
    assert job.end() == [0, 0], job.said()


# -- the entry at etcd, in steps that take long in real life


def entry(server: Server, nonce: str = "ours", reign: int = 0) -> Entry:
    return Entry(Options(Program("x"), master=f"etcd://127.0.0.1:{server.port}"), {}, "/slaunch/job/server", nonce, reign)


def test_f110_w20_an_entry_is_kept_and_never_taken_from_another_job(server: Server) -> None:
    assert renew(entry(server), "1", "")[0] == KEPT
    assert server.client.get("/slaunch/job/server") == "1"
    own = '{"nonce": "ours", "reign": 0}'
    server.client.replace("/slaunch/job/server", "1", own, "0")
    kept = renew(entry(server), own, "")
    assert kept[0] == KEPT, "its own, whose lease has been lost"
    assert renew(entry(server), own, kept[1]) == kept
    theirs = '{"nonce": "theirs", "reign": 0}'
    assert renew(entry(server, "theirs"), theirs, "") == [TAKEN, own], "another job may not take it"
    later = '{"nonce": "ours", "reign": 1}'
    assert renew(entry(server, reign=1), later, "")[0] == KEPT, "the next hub may"
    assert renew(entry(server), own, kept[1]) == [TAKEN, later], "and the old one may not take it back"
    assert remove(entry(server), own, kept[1], True)
    assert server.client.get("/slaunch/job/server") == later


def test_a_lease_that_has_been_lost_is_made_anew(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_late, "LEASE_S", 1)
    kept = renew(entry(server), "text", "")
    until(lambda: server.client.get("/slaunch/job/server") == "", lambda: "the lease does not end")
    monkeypatch.setattr(etcd_late, "LEASE_S", 60)
    again = renew(entry(server), "text", kept[1])
    assert again[0] == KEPT
    assert again[1] != kept[1]
    assert server.client.get("/slaunch/job/server") == "text"


def watched(server: Server, monkeypatch: pytest.MonkeyPatch, trouble: Callable[[], None]) -> str:
    """Why a hub has its job end after some trouble."""
    import selectors

    monkeypatch.setattr(keeper, "RENEW_S", 0.2)
    monkeypatch.setattr(keeper, "TRUST_S", 6.0)
    monkeypatch.setattr(keeper, "FIRST_S", 6.0)
    spared: set[int] = set()
    with selectors.DefaultSelector() as selector, socket.create_server(("127.0.0.1", 0)) as door:
        kept = keeper.Keeper(entry(server), [door], selector, spared)
        told: list[object] = []
        todo = [trouble]
        end = time.monotonic() + PATIENCE_S
        while not told and time.monotonic() < end:
            for key, _ in selector.select(0.05):
                key.data()
            told += kept.tick(time.monotonic())
            if todo and server.client.get("/slaunch/job/server"):
                todo.pop()()
        assert told, "the hub goes on"
        server.process.send_signal(signal.SIGCONT)
        kept.close(True)
    for pid in spared:  # as the agent does with every orphan
        os.waitpid(pid, 0)
    return told[0].problem.seen  # type: ignore[attr-defined,no-any-return]


def test_w20_a_hub_that_cannot_reach_its_etcd_ends_its_job_before_another_may_begin(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(server, monkeypatch, lambda: server.process.send_signal(signal.SIGSTOP))
    assert "has not renewed" in seen


def test_w20_a_hub_whose_entry_another_job_has_ends_its_job(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def take() -> None:
        there = server.client.get("/slaunch/job/server")
        assert server.client.replace("/slaunch/job/server", there, '{"nonce": "theirs", "reign": 0}', "0")

    assert "another entry" in watched(server, monkeypatch, take)


def test_a_node_that_is_not_fit_at_the_start_is_left_out(tmp_path: Path, agents: Callable[[str, str], Agents]) -> None:
    """The first one: its agent leads all the same. Its list of devices is wrong; three nodes are there, and two are enough."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    job = agents(f"127.0.0.1:{port}", "2:3")
    job.call += ["--exclude-bad", "bad"]
    job.start(CUDA_VISIBLE_DEVICES="0,0")
    listens = re.compile(rf":{port:04X} 0+:0000 0A ")
    until(lambda: listens.search(Path("/proc/net/tcp").read_text()), lambda: f"nobody listens\n{job.said()}")
    job.start()
    job.start()
    job.up(0, 2)
    until((tmp_path / "bad").exists, lambda: f"no list for later jobs\n{job.said()}")
    assert job.end() == [0, 0, 0], job.said()
    assert "is left out: CUDA_VISIBLE_DEVICES=0,0 names 0 twice" in job.said()
    assert "2 workers on 2 nodes ended well" in job.said()
    assert listed(tmp_path) == [f"CUDA_VISIBLE_DEVICES=0,0 names 0 twice of join{os.getpid()}"]


def test_nodes_that_keep_a_job_from_beginning_are_listed_for_the_next_one(
    tmp_path: Path, agents: Callable[[str, str], Agents]
) -> None:
    """Two of three are fit, and all three are wanted."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        job = agents(f"127.0.0.1:{probe.getsockname()[1]}", "3")
    job.call += ["--exclude-bad", "bad"]
    job.start()
    job.start(CUDA_VISIBLE_DEVICES="0,0")
    job.start()
    assert job.end() == [66, 66, 66], job.said()
    assert listed(tmp_path) == [f"CUDA_VISIBLE_DEVICES=0,0 names 0 twice of join{os.getpid()}"]


def listed(place: Path) -> list[str]:
    """The faults in the list of bad nodes; the list itself has this machine."""
    assert (place / "bad").read_text() == f"{os.uname().nodename}\n"
    return [f"{fault.why.split(';')[0]} of {fault.job}" for fault in read(f"{place}/bad")]
