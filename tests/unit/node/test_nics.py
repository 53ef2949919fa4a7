"""The choice and order of addresses."""

from __future__ import annotations

import pytest

from slaunch.errors import UsageError
from slaunch.node.netlink import RawAddress
from slaunch.node.nics import LOOPBACK, choose

SPEEDS = {"ib0": 200000, "eth0": 10000, "eno1": 10000}


def raw(ip, interface="eth0", prefix=24, kind="", wide=True):
    return RawAddress(ip, prefix, interface, kind, wide)


def ips(addresses, network=""):
    return [each.ip for each in choose(addresses, network, lambda interface: SPEEDS.get(interface, 0))]


def test_p19_loopback_link_local_and_bridges_are_left_out():
    machine = [
        raw("127.0.0.1", "lo", 8, wide=False),
        raw("169.254.3.4", "eth1", 16, wide=False),
        raw("172.17.0.1", "docker0", 16, "bridge"),
        raw("172.18.0.1", "br-0123456789ab", 16, "bridge"),
        raw("192.168.122.1", "virbr0", 24, "bridge"),
        raw("10.42.0.1", "cni0", 24, "bridge"),
        raw("10.42.0.0", "flannel.1", 32, "vxlan"),
        raw("10.0.0.1", "eth0"),
    ]
    assert ips(machine) == ["10.0.0.1"]


def test_p19_a_bridge_that_carries_the_host_s_own_network_stays():
    assert ips([raw("10.0.0.1", "br0", kind="bridge"), raw("10.0.1.1", "bond0", kind="bond")]) == ["10.0.1.1", "10.0.0.1"]


def test_faster_links_first_then_by_name_ipv4_before_ipv6():
    machine = [raw("fd00::1"), raw("10.0.0.1"), raw("10.1.0.1", "eno1"), raw("10.2.0.1", "ib0"), raw("10.3.0.1", "usb0")]
    assert ips(machine) == ["10.2.0.1", "10.1.0.1", "10.0.0.1", "fd00::1", "10.3.0.1"]


def test_p26_a_machine_with_ipv6_alone():
    machine = [raw("::1", "lo", 128, wide=False), raw("fd00::1", "eth0", 64), raw("fe80::1", "eth0", 64, wide=False)]
    assert ips(machine) == ["fd00::1"]


def test_nothing_but_loopback():
    assert choose([raw("127.0.0.1", "lo", 8, wide=False)], "", lambda interface: 0) == (LOOPBACK,)


@pytest.mark.parametrize(
    ("network", "chosen"),
    [
        ("eth0", ["10.0.0.1", "fd00::1"]),
        ("10.1.0.0/16", ["10.1.0.1"]),
        ("10.1.0.1", ["10.1.0.1"]),
        ("10.1.0.7/16", ["10.1.0.1"]),
        ("fd00::/64", ["fd00::1"]),
        ("docker0", ["172.17.0.1"]),
    ],
)
def test_p24_the_network_that_the_user_names(network, chosen):
    machine = [raw("10.0.0.1"), raw("fd00::1", "eth0", 64), raw("10.1.0.1", "ib0", 16), raw("172.17.0.1", "docker0", 16)]
    assert ips(machine, network) == chosen


@pytest.mark.parametrize("network", ["eth9", "^lo,docker", "10.9.0.0/16", "10.9.9.999", "eth", "lo"])
def test_p24_a_network_that_is_not_here_is_an_error_that_lists_what_is(network):
    with pytest.raises(UsageError) as told:
        ips([raw("10.0.0.1"), raw("127.0.0.1", "lo", 8, wide=False)], network)
    assert network in told.value.wanted
    assert "eth0 10.0.0.1/24" in told.value.seen
