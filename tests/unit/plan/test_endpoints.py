"""Which address peers use, and how endpoints are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plans

from slaunch.errors import PlanError
from slaunch.node.values import Address
from slaunch.plan.endpoints import LOOPBACK, choose, join, subnet, without_proxy

ETH, IB = 1000, 200_000


def node(index, *addresses):
    return plans.facts(index, addresses=addresses)


def chosen(*nodes, network=""):
    return [address.ip for address in choose(nodes, network)]


def test_one_node_alone_uses_loopback_which_needs_no_network():
    assert choose([node(0, Address("192.168.1.5", "wlan0", 24))]) == (LOOPBACK,)
    assert choose([node(0)]) == (LOOPBACK,)


def test_one_node_alone_takes_the_network_that_the_user_names():
    assert chosen(node(0, Address("192.168.1.5", "wlan0", 24)), network="wlan0") == ["192.168.1.5"]


def test_the_fastest_common_subnet_wins():
    nodes = [node(i, Address(f"10.0.0.{i}", "eth0", 24, ETH), Address(f"10.1.0.{i}", "ib0", 24, IB)) for i in (1, 2)]
    assert chosen(*nodes) == ["10.1.0.1", "10.1.0.2"]


def test_a_slower_subnet_that_all_share_beats_a_faster_one_that_some_lack():
    both = [node(i, Address(f"10.1.0.{i}", "ib0", 24, IB), Address(f"10.0.0.{i}", "eth0", 24, ETH)) for i in (1, 2)]
    assert chosen(*both, node(3, Address("10.0.0.3", "eth0", 24, ETH))) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]


def test_a_subnet_is_as_fast_as_its_slowest_link():
    nodes = [
        node(1, Address("10.1.0.1", "ib0", 24, IB), Address("10.0.0.1", "eth0", 24, ETH)),
        node(2, Address("10.1.0.2", "ib0", 24, 10), Address("10.0.0.2", "eth0", 24, ETH)),
    ]
    assert chosen(*nodes) == ["10.0.0.1", "10.0.0.2"]


def test_p25_interface_names_may_differ_within_a_subnet():
    nodes = [node(1, Address("10.0.0.1", "eno1", 24)), node(2, Address("10.0.0.2", "enp0s31f6", 24))]
    assert [address.interface for address in choose(nodes)] == ["eno1", "enp0s31f6"]


def test_racks_with_a_subnet_each_give_their_best_routed_address():
    nodes = [node(rack, Address(f"10.{rack}.0.1", "eth0", 24, ETH)) for rack in (1, 2, 3)]
    assert chosen(*nodes) == ["10.1.0.1", "10.2.0.1", "10.3.0.1"]


def test_p19_p23_a_node_of_several_with_loopback_only_is_named():
    with pytest.raises(PlanError) as caught:
        choose([node(0, Address("10.0.0.1", "eth0", 24)), node(1, Address("127.0.0.1", "lo", 8))])
    assert "node n2" in caught.value.wanted
    assert "lo 127.0.0.1" in caught.value.seen


def test_p21_no_address_at_all_is_named_too():
    with pytest.raises(PlanError, match="no address at all"):
        choose([node(0, Address("10.0.0.1", "eth0", 24)), node(1)])


def test_p26_ipv6_only_nodes_meet_and_endpoints_have_brackets():
    made = plans.plan(node(i, Address(f"fd00::{i + 1}", "eth0", 64)) for i in (0, 1))
    env = plans.env_of(made, 2)
    assert env["PADDLE_CURRENT_ENDPOINT"] == "[fd00::2]:20000"
    assert env["PADDLE_TRAINER_ENDPOINTS"].split(",")[0] == "[fd00::1]:20000"
    assert env["MASTER_ADDR"] == "fd00::1"
    assert join("10.0.0.1", 6070) == "10.0.0.1:6070"


def test_p26_a_node_without_the_common_family_is_named():
    with pytest.raises(PlanError, match="n3"):
        choose(
            [
                node(0, Address("10.0.0.1", "eth0", 24)),
                node(1, Address("10.0.0.2", "eth0", 24)),
                node(2, Address("fd00::3", "eth0", 64)),
            ]
        )


@given(st.ip_addresses(v=4), st.integers(1, 32))
def test_subnets_are_those_of_the_standard_library(ip, prefix):
    import ipaddress

    network = ipaddress.ip_network((int(ip), prefix), strict=False)
    assert subnet(str(ip), prefix)[2] == int(network.network_address) >> (32 - prefix)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=9))
def test_all_nodes_that_share_the_chosen_subnet_are_on_it(nets):
    nodes = [node(i, Address(f"10.{net}.0.{i + 1}", "eth0", 24, ETH), Address(f"172.16.0.{i + 1}", "eth1", 16, 10))
             for i, net in enumerate(nets)]
    addresses = chosen(*nodes)
    same = len(set(nets)) == 1
    assert all(ip.startswith("10." if same else "172.16.") for ip in addresses)


def test_w64_grpc_gets_no_proxy_for_peers_and_keeps_the_user_s_list():
    assert without_proxy({}, ["10.0.0.1"]) == {}
    env = {"http_proxy": "http://proxy:3128", "no_proxy": "localhost,.cluster"}
    assert without_proxy(env, ["10.0.0.1"]) == {"no_grpc_proxy": "localhost,.cluster,10.0.0.1"}
    assert without_proxy({"https_proxy": "x"}, ["10.0.0.1", "10.0.0.2"]) == {"no_grpc_proxy": "10.0.0.1,10.0.0.2"}
