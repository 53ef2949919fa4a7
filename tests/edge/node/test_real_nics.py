"""Interfaces of real network namespaces, asked of the kernel."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ASK = """
import json, sys
from slaunch.node.nics import read_addresses
print(json.dumps([[each.ip, each.interface, each.prefix, each.speed_mbps] for each in read_addresses(*sys.argv[1:])]))
"""


def inside(*commands, network=""):
    """Addresses in a new network namespace after these `ip` commands."""
    steps = ("mount -t sysfs sysfs /sys", "ip link set lo up", *(f"ip {command}" for command in commands), 'exec "$@"')
    own = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", " && ".join(steps), "sh")
    told = subprocess.run([*own, sys.executable, "-c", ASK, network], capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_only_loopback():
    assert inside() == [["127.0.0.1", "lo", 8, 0]]


def test_p19_up_down_and_container_bridge():
    found = inside(
        "link add eth0 type veth peer name far0",
        "link set eth0 up",
        "link set far0 up",
        "addr add 10.7.0.1/24 dev eth0",
        "addr add 10.7.1.1/16 dev eth0",
        "addr add 169.254.9.9/16 scope link dev eth0",
        "link add eth1 type veth peer name far1",
        "addr add 10.8.0.1/24 dev eth1",
        "link add docker0 type bridge",
        "link set docker0 up",
        "link set far0 master docker0",
        "addr add 172.17.0.1/16 dev docker0",
    )
    assert [row[:3] for row in found] == [["10.7.0.1", "eth0", 24], ["10.7.1.1", "eth0", 16]]
    assert all(row[3] == 10000 for row in found)


def test_p19_no_carrier_is_no_network():
    assert inside(
        "link add eth0 type veth peer name far0", "link set eth0 up", "addr add 10.7.0.1/24 dev eth0"
    ) == [["127.0.0.1", "lo", 8, 0]]


def test_p26_ipv6_alone():
    found = inside(
        "link add eth0 type veth peer name far0",
        "link set eth0 up",
        "link set far0 up",
        "addr add fd00::5/64 dev eth0 nodad",
    )
    assert found == [["fd00::5", "eth0", 64, 10000]]


@pytest.mark.parametrize("network", ["eth1", "10.8.0.0/24", "10.8.0.1"])
def test_the_users_network(network):
    found = inside(
        *(f"link add eth{number} type veth peer name far{number}" for number in (0, 1)),
        *(f"link set {name} up" for name in ("eth0", "far0", "eth1", "far1")),
        "addr add 10.7.0.1/24 dev eth0",
        "addr add 10.8.0.1/24 dev eth1",
        network=network,
    )
    assert [row[1] for row in found] == ["eth1"]


def test_many_interfaces_do_not_fit_one_answer():
    pairs = [f"link add eth{number} type veth peer name far{number}" for number in range(60)]
    found = inside(*pairs, "link set eth59 up", "link set far59 up", "addr add 10.9.0.1/24 dev eth59")
    assert [row[:2] for row in found] == [["10.9.0.1", "eth59"]]
