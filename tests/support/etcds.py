"""A real etcd of one process, and a way to it that can be made slow, or lead nowhere, while it is used."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from slaunch.rendezvous.etcd_client import Etcd, EtcdError

PATIENCE_S = 60.0
TICK_S = 0.02


def needed() -> None:
    """The test that asks is skipped where there is no etcd; in CI that is a failure."""
    if not shutil.which("etcd"):
        pytest.skip("etcd is not installed")


class Server:
    """A real etcd.

    Attributes:
        port: where clients ask.
        client: one of them.
        process: it.
    """

    def __init__(self, folder: Path) -> None:
        needed()
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
            self.port = one.getsockname()[1]
            client, peer = (f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in (one, two))
        self.argv = ["etcd", "--data-dir", f"{folder}/etcd", "--listen-client-urls", client, "--advertise-client-urls", client]
        self.argv += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
        self.log = open(folder / "etcd.log", "w")  # noqa: SIM115 - for the process's whole life
        self.client = Etcd([("127.0.0.1", self.port)])
        self.start()

    def start(self) -> None:
        env = {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"}
        self.process = subprocess.Popen(self.argv, stdout=self.log, stderr=self.log, env=env)
        end = time.monotonic() + PATIENCE_S
        while not self.answers():
            assert time.monotonic() < end, "etcd does not answer"
            time.sleep(0.05)

    def answers(self) -> bool:
        try:
            self.client.get("anything")
        except EtcdError:
            return False
        return True

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.stop()
        self.log.close()


class Proxy:
    """A port that leads to another one.

    Attributes:
        port: it.
        delay_s: every answer comes so much later.
        deaf: connections are made, but nothing goes through any more.
        mute: what is asked goes through, the answers do not.
    """

    def __init__(self, target: int, delay_s: float = 0.0) -> None:
        self.target, self.delay_s = target, delay_s
        self.deaf = self.mute = self._closed = False
        self._door = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._door.getsockname()[1]
        self._open = [self._door]
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def close(self) -> None:
        self._closed = True
        for sock in self._open:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:  # the other side has closed it
                pass
            sock.close()
        for thread in self._threads:
            thread.join()

    def _begin(self, call: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=self._tried, args=(call,)))
        self._threads[-1].start()

    def _tried(self, call: Callable[[], None]) -> None:
        try:
            call()
        except OSError:  # one of the two sides has gone
            pass

    def _accept(self) -> None:
        while True:
            near = self._door.accept()[0]
            self._open.append(near)
            self._begin(partial(self._serve, near))

    def _serve(self, near: socket.socket) -> None:
        """One request and its answer: the client closes the connection after each."""
        with near:
            asked = near.recv(1 << 16)
            self._wait(lambda: self.deaf)
            with socket.create_connection(("127.0.0.1", self.target)) as far:
                self._open.append(far)
                self._begin(partial(pass_on, asked, near, far))
                answer, until = far.recv(1 << 16), time.monotonic() + self.delay_s
                self._wait(lambda: self.mute or self.deaf or time.monotonic() < until)
                pass_on(answer, far, near)

    def _wait(self, still: Callable[[], bool]) -> None:
        while still() and not self._closed:
            time.sleep(TICK_S)
        if self._closed:
            raise ConnectionAbortedError


def pass_on(data: bytes, source: socket.socket, sink: socket.socket) -> None:
    """These bytes, and all that follow."""
    while data:
        sink.sendall(data)
        data = source.recv(1 << 16)
