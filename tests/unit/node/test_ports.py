"""Ports: where they lie, that they are held, that nobody inherits them."""

from __future__ import annotations

import socket

import pytest

from slaunch.errors import PlanError, UsageError
from slaunch.node.ports import port_range, reserve


@pytest.mark.parametrize(
    ("ephemeral", "expected"),
    [
        ("32768\t60999\n", (15000, 32767)),
        ("9000 40000", (40001, 65535)),
        ("1024 65535", (15000, 65535)),
        ("15500 65000", (15000, 65535)),
        ("", (15000, 32767)),
    ],
)
def test_p28_p29_the_range_avoids_ports_of_outgoing_connections(ephemeral, expected, tmp_path):
    path = tmp_path / "range"
    path.write_text(ephemeral)
    assert port_range({}, str(path)) == expected


def test_f45_port_range():
    assert port_range({"PORT_RANGE": "35100:64000"}) == (35100, 64000)
    with reserve(3, {"PORT_RANGE": "41000:41999"}) as held:
        assert all(41000 <= port <= 41999 for port in held.ports)


@pytest.mark.parametrize("text", ["", "35100", "64000:35100", "a:b", "1:70000", "0:10", "35100-64000", "-1:5"])
def test_f45_a_range_that_is_none_is_an_error(text):
    with pytest.raises(UsageError) as told:
        reserve(1, {"PORT_RANGE": text})
    assert repr(text) in told.value.seen


def test_f45_a_range_that_is_too_small_is_an_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(PlanError) as told:
            reserve(2, {"PORT_RANGE": f"{port}:{port}"})
    assert "only 0" in told.value.seen


def test_p30_ports_are_held_until_released():
    held = reserve(4, {})
    assert len(set(held.ports)) == 4
    for port in held.ports:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    held.release()
    for port in held.ports:
        with socket.socket() as worker:
            worker.bind(("127.0.0.1", port))
    held.release()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_p30_ports_that_others_have_on_any_address_are_passed_over(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as other:
        other.bind((address, 0))
        port = other.getsockname()[1]
        with reserve(1, {"PORT_RANGE": f"{port}:{port + 20}"}) as held:
            assert port not in held.ports


def test_p28_two_launches_at_once_never_share_a_port():
    with reserve(50, {"PORT_RANGE": "42000:42999"}) as first, reserve(50, {"PORT_RANGE": "42000:42999"}) as second:
        assert not set(first.ports) & set(second.ports)


def test_held_sockets_are_not_inherited():
    with reserve(2, {}) as held:
        assert not any(each.get_inheritable() for each in held.sockets)
