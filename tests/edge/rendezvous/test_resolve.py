"""From names to addresses, with the system's resolver and with Slurm's tools."""

import socket
import time

import pytest

from slaunch.rendezvous import resolve
from slaunch.rendezvous.resolve import by_slurm, is_numeric, look_up, resolve_any, usable


@pytest.mark.parametrize(
    ("ip", "good"),
    [
        ("10.0.0.1", True),
        ("fd00::1", True),
        ("127.0.0.1", False),
        ("127.0.1.1", False),
        ("::1", False),
        ("0.0.0.0", False),
        ("169.254.1.2", False),
        ("fe80::1%eth0", False),
    ],
)
def test_p19_loopback_and_link_local_addresses_lead_nowhere(ip, good):
    assert usable(ip) is good


def test_p19_p21_a_name_that_leads_to_loopback_is_not_resolved():
    assert look_up("localhost") == ()
    assert "127.0.0.1" in resolve_any("localhost")


def test_numeric_addresses_are_themselves():
    assert resolve_any("10.1.2.3") == ("10.1.2.3",)
    assert resolve_any("fd00::1") == ("fd00::1",)
    assert is_numeric("fd00::1") and is_numeric("1.2.3.4") and not is_numeric("n1")


def test_p27_a_resolver_that_does_not_know_the_name():
    assert look_up("no-such-node.invalid", 10.0) == ()


def test_p27_a_resolver_that_stalls_is_left_behind(monkeypatch):
    """As with a DNS server that cannot be reached: the C library waits for many seconds."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: time.sleep(1.0) or [])
    start = time.monotonic()
    assert look_up("n2", 0.2) == ()
    assert time.monotonic() - start < 0.9
    time.sleep(1.2)  # the stalled call ends by itself


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    """Slurm's own tool, with a prepared answer."""

    def answers(text):
        (tmp_path / "scontrol").write_text(f"#!/bin/sh\necho '{text}'\n")
        (tmp_path / "scontrol").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return answers


@pytest.mark.parametrize(
    ("told", "ips"),
    [
        ("NodeName=n2 Arch=x86_64 NodeAddr=10.9.8.7 NodeHostName=n2", ("10.9.8.7",)),
        ("NodeName=n2 Arch=x86_64 NodeAddr=fd00::7 NodeHostName=n2", ("fd00::7",)),
        ("NodeName=n2 Arch=x86_64 NodeAddr=n2 NodeHostName=n2", ()),
        ("NodeName=n2 Arch=x86_64 NodeAddr=127.0.0.1 NodeHostName=n2", ()),
        ("slurm_load_node error", ()),
    ],
)
def test_p27_slurm_knows_its_nodes_without_dns(scontrol, told, ips):
    scontrol(told)
    assert by_slurm("n2") == ips


def test_p85_without_slurms_tools_there_is_no_answer(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resolve.resolve("no-such-node.invalid") == ()
