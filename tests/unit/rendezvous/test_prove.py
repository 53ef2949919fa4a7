"""Which networks are worth a proof, and what is left of the facts after it."""

import pytest
from support.facts import facts

from slaunch.frozen import replace
from slaunch.node.subnets import subnet
from slaunch.node.values import Address
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.meet import proven
from slaunch.rendezvous.prove import calls_of, common, failure_text, first_tasks, way_of, without

ETH, IB = subnet("10.0.0.1", 24), subnet("10.1.0.1", 24)


class Unheard:
    """A gatherer of which nothing must be wanted."""

    rank, size, secret, lasts = 0, 2, b"", True

    def allgather(self, payload, deadline):
        raise AssertionError(f"a round that nobody needs: {payload!r}")


def node(number, *addresses):
    found = tuple(Address(ip, interface, 24) for ip, interface in addresses)
    return replace(facts(number), machine=f"m{number}", addresses=found)


@pytest.fixture
def two():
    return tuple(node(i, (f"10.0.0.{i + 1}", f"eth{i}"), (f"10.1.0.{i + 1}", "ib0")) for i in range(2))


def test_the_networks_that_all_nodes_are_on(two):
    third = node(2, ("10.1.0.3", "ib0"), ("10.7.0.3", "eth0"))
    assert common([way_of(each) for each in two]) == [ETH, IB]
    assert common([way_of(each) for each in (*two, third)]) == [IB]


def test_one_task_speaks_for_a_machine(two):
    assert first_tasks([two[0], two[0], two[1], two[0], two[1]]) == [0, 2]


@pytest.mark.parametrize(
    "addresses",
    [
        [[("10.0.0.1", "eth0")], [("10.0.0.2", "eth0")]],
        [[("10.0.0.1", "eth0"), ("10.1.0.1", "ib0")], [("10.0.0.2", "eth0"), ("10.2.0.2", "ib0")]],
        [[("10.0.0.1", "eth0"), ("10.1.0.1", "ib0")]] * 2,  # two nodes of a job that share a machine
    ],
)
def test_without_a_choice_there_is_no_round(addresses):
    everybody = tuple(node(number, *each) for number, each in enumerate(addresses))
    ground = Ground(None, everybody[0], None, {}, print)
    assert proven(everybody, ground, Unheard(), 0.0) == everybody


def test_each_node_calls_the_next_and_the_first(two):
    ways = [way_of(each) for each in (*two, *two)]
    ports = {place: 100 + place for place in range(4)}
    assert [[call.to for call in calls_of(place, ways, [IB], ports)] for place in range(4)] == [[1], [0, 2], [0, 3], [0]]
    assert [call.target for call in calls_of(1, ways[:2], [ETH, IB], ports)] == [("10.0.0.1", 100), ("10.1.0.1", 100)]


def test_in_a_large_job_only_the_next_node_calls(two):
    ways = [way_of(two[0])] * 1001
    assert [call.to for call in calls_of(7, ways, [IB], dict.fromkeys(range(1001), 1))] == [8]


def test_p25_who_could_not_reach_whom_by_the_interface_of_the_called(two):
    text = failure_text(ETH, [(0, 1, "does not answer")], [way_of(each) for each in two], ["n1", "n3"])
    assert text == "n1 cannot reach n3 at 10.0.0.2 (eth1): does not answer"


def test_the_facts_lose_the_addresses_of_a_network_that_failed(two):
    assert [[each.interface for each in made.addresses] for made in without(two, {ETH})] == [["ib0"], ["ib0"]]
    assert without(two, set()) == two
