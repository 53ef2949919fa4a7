"""A job at an etcd of three members, which lose their leader, and then their majority."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.etcds import needed
from support.worlds import FAST, WORLD, steady_network, up, worlds

from slaunch.rendezvous.etcd_client import Etcd, EtcdError, post

PATIENCE_S = 60.0
CLEAN = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def until(what: Callable[[], object], text: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, text()
        time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return ports


class Members:
    """A real etcd of three processes.

    Attributes:
        ports: where clients ask, of those that run.
    """

    def __init__(self, folder: Path) -> None:
        ports = free_ports(6)
        self.ports, peers = ports[:3], ports[3:]
        cluster = ",".join(f"m{number}=http://127.0.0.1:{port}" for number, port in enumerate(peers))
        self.log = open(folder / "etcd.log", "w")  # noqa: SIM115 - for the processes' whole life
        self.run: dict[int, subprocess.Popen[bytes]] = {}
        for number, (port, peer) in enumerate(zip(self.ports, peers, strict=True)):
            client, other = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
            argv = ["etcd", "--name", f"m{number}", "--data-dir", f"{folder}/m{number}", "--initial-cluster", cluster]
            argv += ["--listen-client-urls", client, "--advertise-client-urls", client]
            argv += ["--listen-peer-urls", other, "--initial-advertise-peer-urls", other]
            env = {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"}
            self.run[port] = subprocess.Popen(argv, stdout=self.log, stderr=self.log, env=env)
        until(lambda: self.get("anything") is not None, lambda: "etcd does not answer")

    def get(self, key: str) -> str | None:
        """A key; None if etcd does not answer."""
        try:
            return Etcd([("127.0.0.1", port) for port in self.run]).get(key)
        except EtcdError:
            return None

    def leader(self) -> int:
        """The leader's port."""
        status = {port: post(("127.0.0.1", port), "/v3/maintenance/status", {}) for port in self.run}
        return next(port for port, said in status.items() if said["leader"] == said["header"]["member_id"])

    def kill(self, port: int) -> None:
        process = self.run.pop(port)
        process.kill()
        process.wait()

    def close(self) -> None:
        for port in list(self.run):
            self.kill(port)
        self.log.close()


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    needed()
    made = Members(tmp_path)
    yield made
    made.close()


def test_f110_f121_w20_a_job_outlives_etcds_leader_and_ends_without_its_majority(members: Members, tmp_path: Path) -> None:
    (tmp_path / "fast.py").write_text(FAST)
    (tmp_path / "world.py").write_text(WORLD)
    place = str(tmp_path)
    master = "etcd://" + ",".join(f"127.0.0.1:{port}" for port in members.ports)
    call = [sys.executable, "fast.py", "--scheduler", "plain", "--master", master, "--nnodes", "2:3", "--nproc-per-node", "1"]
    call += ["--job-id", f"members{os.getpid()}", "--grace", "1", "--log-dir", "logs", *steady_network(), "world.py"]
    env = {**CLEAN, "PLACE": place, "WHO": "job", "LAST_CALL": "0.5", "SLAUNCH_SECRET": "a secret of sixteen letters or more"}
    started: list[subprocess.Popen[bytes]] = []
    said = lambda: f"{worlds(place)}\n" + "\n".join(path.read_text() for path in sorted(tmp_path.glob("out.*")))  # noqa: E731

    def start() -> None:
        with open(tmp_path / f"out.{len(started)}", "wb") as out:
            started.append(subprocess.Popen(call, cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    try:
        start()
        start()
        until(lambda: up(place, "job", 0, 2), said)
        key = f"/slaunch/by hand/members{os.getpid()}/server"
        until(lambda: "reign" in (members.get(key) or ""), said)
        members.kill(members.leader())
        start()  # finds the job by the entry, which the others keep
        until(lambda: up(place, "job", 1, 3), said)
        members.kill(members.leader())
        assert [agent.wait(PATIENCE_S) for agent in started] == [69, 69, 69], said()
    finally:
        for agent in started:
            if agent.poll() is None:
                agent.kill()
            agent.wait()
    assert "has not renewed" in said()
    assert worlds(place) == ["job 0 begins", "job 1 begins"]
