"""Agents of the doctor, asked as over srun: one by its own input, several of one machine among themselves."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from slaunch.allocation.values import StepCall
from slaunch.doctor import send
from slaunch.doctor.conversation import Conversation
from slaunch.doctor.reach import Doors, everybody, failures
from slaunch.doctor.send import push
from slaunch.errors import MissingToolError
from slaunch.selfcall import module_command

TOKEN = "0123456789abcdef" * 2
LOOK = {"do": "look", "request": {"quick": True, "scratch": [], "program": ""}, "token": TOKEN}
PATIENCE_S = 60.0


def talk_to(argv: tuple[str, ...], end_s: float = PATIENCE_S) -> Conversation:
    return Conversation([StepCall(argv, {**os.environ, "SLURMD_NODENAME": "n1"})], end_s)


def ask(talk: Conversation, order: Mapping[str, Any], count: int = 1) -> dict[str, dict[str, Any]]:
    found = talk.ask(order, time.monotonic() + PATIENCE_S, count)
    return {sender: answer.value for sender, answer in found.items()}


def test_an_agent_does_as_it_is_told() -> None:
    talk = talk_to(module_command("slaunch.doctor.agent"))
    try:
        ((sender, told),) = ask(talk, {"do": "time"}).items()
        assert sender.startswith("n1:") and abs(told["time_s"] - time.time()) < PATIENCE_S
        looked = ask(talk, LOOK)[sender]
        assert looked["outcomes"]["cpus"]["facts"]["cpus"] >= 1 and looked["port"] > 0 and looked["addresses"]
        rows = [[sender, looked["port"], looked["addresses"]]]
        assert ask(talk, {"do": "reach", "nodes": rows, "credential": ""})[sender] == {
            "failures": [],
            "credential": "",
            "number": 3,
        }
    finally:
        talk.close()
    assert talk.complaints == ""


MANY = """
import subprocess, sys
agents = [subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, text=True, bufsize=1) for _ in range(3)]
for line in sys.stdin:
    for agent in agents:
        agent.stdin.write(line)
for agent in agents:
    agent.stdin.close()
sys.exit(max(agent.wait() for agent in agents))
"""
"""Like srun: what comes goes to all agents, and their output is one."""


def test_agents_reach_and_send_to_each_other() -> None:
    talk = talk_to((sys.executable, "-c", MANY, *module_command("slaunch.doctor.agent")))
    try:
        senders = sorted(ask(talk, {"do": "time"}, 3))
        looked = ask(talk, LOOK, 3)
        rows = [[sender, looked[sender]["port"], looked[sender]["addresses"]] for sender in senders]
        assert [told["failures"] for told in ask(talk, {"do": "reach", "nodes": rows, "credential": ""}, 3).values()] == [[]] * 3
        usable = bool(send.shared(everybody(rows)))  # a machine may have no address besides loopback
        sent = ask(talk, {"do": "send", "shift": 1, "net": 0}, 3) if usable else {}
        assert all(told["rate"] > 0 and not told["error"] for told in sent.values()), sent
    finally:
        talk.close()


def test_what_ends_early_is_over_and_tells_why() -> None:
    talk = talk_to((sys.executable, "-c", "import sys; sys.exit('srun: error: Task launch failed on node n7: no way')"))
    try:
        assert ask(talk, {"do": "time"}, 1) == {} and talk.over
    finally:
        talk.close()
    assert talk.failed_nodes() == ("n7",)


def test_nobody_waits_for_one_who_is_silent() -> None:
    talk = talk_to((sys.executable, "-c", "import sys; sys.stdin.read()"))
    try:
        assert talk.ask({"do": "time"}, time.monotonic() + 0.2, 1) == {} and not talk.over
    finally:
        talk.close()


def test_one_who_does_not_listen_is_ended() -> None:
    talk = talk_to((sys.executable, "-c", "import time; time.sleep(300)"), end_s=0.2)
    try:
        assert talk.ask({"do": "look", "much": "x" * (1 << 20)}, time.monotonic() + 0.3, 1) == {}
    finally:
        talk.close()


def test_no_srun() -> None:
    with pytest.raises(MissingToolError):
        talk_to(("/does/not/exist/srun",))


@pytest.fixture
def doors() -> Iterator[Doors]:
    made = Doors.open(["127.0.0.1"], TOKEN.encode())
    yield made
    made.close()


def test_what_is_sent_is_counted(doors: Doors) -> None:
    assert push(("127.0.0.1", doors.port), TOKEN.encode(), time_s=0.05) > 0


def test_bytes_are_bounded(doors: Doors) -> None:
    assert push(("127.0.0.1", doors.port), TOKEN.encode(), time_s=PATIENCE_S, most=1 << 20) > 0


def test_strangers_are_not_heard(doors: Doors) -> None:
    with pytest.raises(OSError):
        push(("127.0.0.1", doors.port), b"x" * len(TOKEN), time_s=0.05)
    with socket.create_connection(("127.0.0.1", doors.port), timeout=PATIENCE_S) as sock:
        sock.sendall(b"short")
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(8) == b""


def test_a_closed_door_is_a_failure() -> None:
    made = Doors.open(["127.0.0.1"], TOKEN.encode())
    made.close()
    rows = [["a:1", 1, [["127.9.9.9", "lo", 24, 0]]], ["b:2", made.port, [["127.0.0.1", "lo", 24, 0]]]]
    assert failures("a:1", everybody(rows)) == []  # loopback is no network
    with pytest.raises(OSError):
        push(("127.0.0.1", made.port), TOKEN.encode())


def test_the_command_on_this_machine(tmp_path: Any) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    argv = [sys.executable, "-m", "slaunch", "doctor", "--quick", "--json", "gone.py"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False)
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] == 78, done.stderr
    (missing,) = [each for each in told["findings"] if each["check"] == "script"]
    assert "cannot run gone.py: no such file" in missing["seen"] and missing["nodes"] == [os.uname().nodename]


ROOM = """
import resource, sys
from slaunch.doctor.reach import room
limits = tuple(map(int, sys.argv[1:]))
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
print(room(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (("256", "2048"), "1024 1088 2048"),
        (("256", "512"), "448 512 512"),
        (("1500", "2048"), "1024 1500 2048"),
        (("40", "40"), "1 40 40"),
    ],
)
def test_p46_connections_are_as_many_as_files_may_be_open(limits: tuple[str, str], expected: str) -> None:
    done = subprocess.run([sys.executable, "-c", ROOM, *limits], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == expected, done.stderr
