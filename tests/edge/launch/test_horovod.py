"""Horovod's workers under an agent meet at slaunch's store, which ends with the job however that ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.jobs import PROGRAMS, logs

from slaunch import gloo_store

CLEAN = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
HOROVOD = (sys.executable, "-m", "slaunch", "--log_dir", "logs", "--contract", "horovod,slaunch", "--nproc_per_node")
LIMIT_S = 60.0
REPORT = "import os; print('at', *(os.environ['HOROVOD_GLOO_RENDEZVOUS_' + name] for name in ('ADDR', 'PORT')), flush=True); "


def launch(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    call = [*HOROVOD, *args]
    return subprocess.run(call, cwd=folder, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)


def place(text: str) -> tuple[str, int]:
    """Where the store was."""
    ip, port = next(line for line in text.splitlines() if line.startswith("at ")).split()[1:]
    return ip, int(port)


def nobody_listens(at: tuple[str, int]) -> bool:
    with socket.socket() as link:
        return link.connect_ex(at) != 0


def stores(at: tuple[str, int]) -> list[int]:
    """Process ids of this job's store."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if [at[0], str(at[1])] == (process.info["cmdline"] or [])[-3:-1]:
            found.append(process.pid)
    return found


def test_f331_workers_meet_twice_in_all_three_scopes(tmp_path: Path) -> None:
    done = launch(tmp_path, "3", f"{PROGRAMS}/meet_by_gloo.py")
    assert done.returncode == 0, done.stderr + logs(str(tmp_path))
    said = sorted(line for line in logs(str(tmp_path)).splitlines() if line.startswith("turn"))
    met = "met [0, 1, 2] here [0, 1, 2] across"
    assert said == [f"turn {turn}: rank {rank} of 3 {met} [{rank}]" for turn in range(2) for rank in range(3)]


@pytest.mark.parametrize(("end", "code"), [("pass", 0), ("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", 137)])
def test_the_store_ends_with_the_workers(tmp_path: Path, end: str, code: int) -> None:
    done = launch(tmp_path, "2", "-c", REPORT + end)
    assert done.returncode == code, done.stderr
    at = place(logs(str(tmp_path)))  # of the worker that ended first: the other may not have come to print anything
    assert nobody_listens(at)
    assert stores(at) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_store_ends_with_its_agent(tmp_path: Path, number: int) -> None:
    call = [*HOROVOD, "2", "-c", REPORT + "import time; time.sleep(99)"]
    with subprocess.Popen(call, cwd=tmp_path, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as agent:
        assert agent.stdout is not None
        at = place(agent.stdout.readline())
        assert wait_until(lambda: not nobody_listens(at))
        agent.send_signal(number)
        agent.wait(LIMIT_S)
    assert wait_until(lambda: not stores(at) and nobody_listens(at))


def test_a_store_that_is_lost_fails_the_job(tmp_path: Path) -> None:
    kill = (
        "import time, psutil; time.sleep(1); "
        "[each.kill() for each in psutil.Process(os.getppid()).children() if each.cmdline()[1:3] == ['-I', '-S']]; "
        "time.sleep(99)"
    )
    done = launch(tmp_path, "1", "-c", REPORT + kill)
    assert done.returncode == 137, done.stderr
    assert "gloo-store" in done.stderr


def test_another_attempt_meets_at_another_store(tmp_path: Path) -> None:
    program = "import os, runpy; os.environ['SLAUNCH_ATTEMPT'] == '0' and os._exit(5); "
    program += f"runpy.run_path('{PROGRAMS}/meet_by_gloo.py')"
    done = launch(tmp_path, "2", "--max-restarts", "1", "-c", program)
    assert done.returncode == 0, done.stderr + logs(str(tmp_path))
    assert logs(str(tmp_path)).count("turn 1: rank ") == 2


def test_explain_shows_the_store_and_compares_workers_only(tmp_path: Path) -> None:
    call = (sys.executable, "-m", "slaunch", "explain", "--contract", "horovod", "--nproc_per_node", "2", "x.py")
    done = subprocess.run(call, cwd=tmp_path, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert "gloo-store.log" in done.stdout, done.stderr
    assert "different for each worker: HOROVOD_LOCAL_RANK, HOROVOD_RANK\n" in done.stdout


def wait_until(holds) -> bool:
    until = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


# -- the store among strangers ------------------------------------------------------------------------------------------


class Running:
    """A store in this process, turned by hand."""

    def __init__(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.at = listener.getsockname()
        self.server = gloo_store.Server(listener, gloo_store.Store(2))

    def connect(self) -> socket.socket:
        link = socket.create_connection(self.at, timeout=LIMIT_S)
        self.server.turn(LIMIT_S)
        return link

    def ask(self, request: bytes) -> bytes:
        """The whole response."""
        with self.connect() as link:
            link.sendall(request)
            link.setblocking(False)
            got = bytearray()
            until = time.monotonic() + LIMIT_S
            while time.monotonic() < until:
                self.server.turn(0.05)
                try:
                    if not (more := link.recv(1 << 20)):
                        break
                    got += more
                except BlockingIOError:
                    continue
            return bytes(got)


@pytest.fixture
def running():
    made = Running()
    yield made
    made.server.close()


def put(path: str, value: bytes) -> bytes:
    return f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(value)}\r\n\r\n".encode() + value


def test_a_value_is_there_for_all_once_it_is_put(running: Running) -> None:
    assert running.ask(b"GET /global/0 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 404 ")
    assert running.ask(put("/global/0", b"here\r\n\r\n\0")).startswith(b"HTTP/1.0 200 ")
    assert running.ask(b"GET /global/0 HTTP/1.1\r\n\r\n").endswith(b"\r\n\r\nhere\r\n\r\n\0")


def test_a_large_value_takes_several_turns(running: Running) -> None:
    value = os.urandom(gloo_store.Store(2).value_limit)
    assert running.ask(put("/global/0", value)).startswith(b"HTTP/1.0 200 ")
    assert running.ask(b"GET /global/0 HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")[2] == value


def test_who_says_nothing_is_shown_the_door(running: Running) -> None:
    with running.connect() as link:
        until = time.monotonic() + LIMIT_S
        link.setblocking(False)
        while time.monotonic() < until:
            running.server.turn(0.2)
            try:
                assert link.recv(1) == b""
                break
            except BlockingIOError:
                continue
        else:
            pytest.fail("still connected")


def test_more_visitors_than_it_takes_at_once_harm_nobody(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gloo_store, "VISITS", 3)
    idle = [running.connect() for _ in range(3)]
    waiting = socket.create_connection(running.at, timeout=LIMIT_S)
    waiting.sendall(put("/global/1", b"x"))
    running.server.turn(0.1)
    idle[0].close()
    for _ in range(5):
        running.server.turn(0.1)
    assert waiting.recv(100).startswith(b"HTTP/1.0 200 ")
    for link in (*idle, waiting):
        link.close()


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert gloo_store.main("127.0.0.1", str(taken.getsockname()[1]), "2") == 1
    assert "cannot meet at 127.0.0.1:" in capsys.readouterr().err
