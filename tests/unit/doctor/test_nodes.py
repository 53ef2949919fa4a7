"""What is found by comparing nodes: odd ones, clocks, and who reaches whom how fast."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.allocation.values import Allocation, Shell, StepShape
from slaunch.doctor import clocks, reach, send, visit
from slaunch.doctor.clocks import Reading
from slaunch.doctor.reach import everybody
from slaunch.doctor.values import ERROR, WARNING, Check, Request, Trait
from slaunch.doctor.vote import compare, majority
from slaunch.node.values import Address

DRIVER = Check(
    "gpus", lambda request, env: {}, traits=lambda facts: [Trait("driver", facts["driver"])], differs=("slow", "update")
)


def seen(*drivers: str) -> dict[str, Any]:
    return {f"n{number}": {"driver": driver} for number, driver in enumerate(drivers, 1)}


def test_the_odd_node_is_named_with_its_value() -> None:
    (finding,) = compare(DRIVER, seen("550", "535", "550", "550"))
    assert finding.seen == "driver: 535 on n2; 550 on n[1,3-4]"
    assert (finding.nodes, finding.severity, finding.means, finding.todo) == (("n2",), WARNING, "slow", "update")


def test_nodes_that_agree() -> None:
    assert compare(DRIVER, seen("550", "550")) == [] == compare(DRIVER, seen("550")) == compare(DRIVER, {})


def test_without_a_majority_all_are_named() -> None:
    (finding,) = compare(DRIVER, seen("550", "535"))
    assert finding.nodes == ("n1", "n2") and finding.seen == "driver: 550 on n1, 535 on n2; no value is in the majority"


def test_many_values_are_not_all_told() -> None:
    (finding,) = compare(DRIVER, seen(*map(str, range(9))))
    assert "and 5 other values" in finding.seen


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20))
def test_those_who_are_not_odd_agree_and_are_more_than_half_or_none(values: list[str]) -> None:
    nodes = {f"n{number}": value for number, value in enumerate(values)}
    usual, odd = majority(nodes)
    rest = {nodes[node] for node in nodes if node not in odd}
    assert rest in ({usual}, set()) and (not rest or 2 * (len(nodes) - len(odd)) > len(nodes))
    assert all(nodes[node] != usual for node in odd)


# -- clocks ----------------------------------------------------------------------------------------------------------


def test_reading_of_a_clock() -> None:
    assert clocks.reading(100.0, 190.1, 100.2) == Reading(90.0, pytest.approx(0.1))


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ({"n1": 0.0, "n2": 0.01, "n3": 0.0}, {}),
        ({"n1": 0.0, "n2": 3.0, "n3": 0.0}, {"n2": WARNING}),
        ({"n1": 0.0, "n2": -400.0, "n3": 0.0}, {"n2": ERROR}),
        ({"n1": 50.0, "n2": 50.0, "n3": 50.0}, {"login": WARNING}),
    ],
)
def test_clocks(offsets: dict[str, float], expected: dict[str, str]) -> None:
    found = clocks.judge({node: Reading(offset, 0.01) for node, offset in offsets.items()}, "login")
    assert {each.nodes[0]: each.severity for each in found} == expected


def test_a_slow_answer_is_no_wrong_clock() -> None:
    assert clocks.judge({"n1": Reading(0.0, 0.01), "n2": Reading(3.0, 2.9), "n3": Reading(0.0, 0.01)}, "n1") == []


def test_the_better_reading_counts() -> None:
    assert clocks.better(None, Reading(1, 1)) == Reading(1, 1)
    assert clocks.better(Reading(1, 0.5), Reading(2, 0.6)) == Reading(1, 0.5)
    assert clocks.better(Reading(1, 0.5), Reading(2, 0.4)) == Reading(2, 0.4)


def test_no_clocks() -> None:
    assert clocks.judge({}, "login") == []


# -- who reaches whom ------------------------------------------------------------------------------------------------


def rows(nodes: int, nets: int = 1) -> list[list[Any]]:
    addresses = [[[f"10.{net}.0.{node + 1}", f"eth{net}", 24, 0] for net in range(nets)] for node in range(nodes)]
    return [[f"n{node}:7", 4000 + node, addresses[node]] for node in range(nodes)]


@given(st.integers(1, 12), st.integers(1, 3))
def test_every_node_calls_all_others_on_all_networks(count: int, nets: int) -> None:
    nodes = everybody(rows(count, nets))
    calls = {(own, to, address.interface) for own in range(count) for to, address in reach.calls_of(own, nodes)}
    assert calls == {
        (one, other, f"eth{net}") for one in range(count) for other in range(count) if one != other for net in range(nets)
    }


def test_in_a_large_job_all_are_called_by_somebody() -> None:
    count, most = 60, 25
    others = [reach.spread([(own + step) % count for step in range(1, count)], most) for own in range(count)]
    assert {len(calls) for calls in others} == {most}
    assert {to for calls in others for to in calls} == set(range(count))


def test_networks_of_one_node_only_are_not_called() -> None:
    nodes = everybody(
        [["a:1", 1, [["10.0.0.1", "e0", 24, 0], ["10.9.0.1", "ib0", 24, 0]]], ["b:1", 2, [["10.0.0.2", "e0", 24, 0]]]]
    )
    assert list(reach.calls_of(0, nodes)) == [(1, Address("10.0.0.2", "e0", 24))]
    assert len(send.shared(nodes)) == 1


def failed(*pairs: str) -> dict[str, list[list[str]]]:
    told: dict[str, list[list[str]]] = {f"n{number}": [] for number in range(1, 5)}
    for pair in pairs:
        caller, called = pair.split(">")
        told[caller].append([called, f"10.1.0.{called[1:]}", "ib0", "does not answer"])
    return told


@pytest.mark.parametrize(
    ("pairs", "blamed"),
    [
        (("n1>n3", "n2>n3", "n4>n3", "n3>n1", "n3>n2", "n3>n4"), ("n3",)),
        (("n1>n3", "n2>n3", "n4>n3"), ("n3",)),  # a firewall
        (("n3>n1", "n3>n2", "n3>n4"), ("n3",)),  # cannot send
        (("n1>n3", "n2>n3", "n4>n3", "n1>n2", "n3>n2", "n4>n2"), ("n2", "n3")),
    ],
)
def test_p19_the_culprits_are_named(pairs: tuple[str, ...], blamed: tuple[str, ...]) -> None:
    (finding,) = reach.judge(failed(*pairs), shared=2)
    assert finding.nodes == blamed and finding.severity == WARNING
    assert "cannot reach n3 at 10.1.0.3 (ib0): does not answer" in finding.seen or "n3 cannot reach" in finding.seen


def test_failures_on_the_only_network_are_an_error() -> None:
    (finding,) = reach.judge(failed("n1>n2"), shared=1)
    assert finding.severity == ERROR and len(finding.nodes) == 1


def test_all_reach_all() -> None:
    assert reach.judge(failed(), shared=1) == []


# -- how fast --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "expected"), [(0, []), (1, []), (2, [1]), (4, [1, 2, 3]), (5, [1, 2, 3, 4]), (6, [1, 2, 4]), (100, [1, 2, 4, 8])]
)
def test_rounds(nodes: int, expected: list[int]) -> None:
    assert send.shifts(nodes) == expected


def rates(slow: dict[tuple[int, int], float], nodes: int = 4) -> list[send.Rate]:
    pairs = [(one, other) for one in range(nodes) for other in range(nodes) if one != other]
    return [(f"n{one}", f"n{other}", "ib0", slow.get((one, other), 10e9)) for one, other in pairs]


@pytest.mark.parametrize(
    ("slow", "nodes", "words"),
    [
        ({(1, 2): 1e9}, ("n1", "n2"), "n1 to n2 1.0 GB/s; most pairs 10.0 GB/s"),
        ({(1, 2): 1e9, (1, 3): 500e6, (0, 1): 1e9}, ("n1",), "n1 to n3 500 MB/s, "),
        ({(1, 2): 1e9, (0, 3): 1e9}, (), "n1 to n2 1.0 GB/s"),
    ],
)
def test_slow_pairs(slow: dict[tuple[int, int], float], nodes: tuple[str, ...], words: str) -> None:
    (finding,) = send.judge(rates(slow))
    assert finding.nodes == nodes and words in finding.seen and finding.severity == WARNING


def test_pairs_that_are_alike() -> None:
    assert send.judge(rates({(0, 1): 4e9})) == [] == send.judge([])


# -- jobs of several components --------------------------------------------------------------------------------------

NODES = ("n1", "n2", "n3")


def shell(het: bool) -> Shell:
    parts = (StepShape(1, gpu_args=("--gres=gpu:2",)), StepShape(2)) if het else ()
    return Shell(Allocation("slurm", "7", nodes=NODES), StepShape(3, het_groups=(0, 1) if het else (), parts=parts))


def test_p10_each_component_has_a_step_and_is_compared_by_itself() -> None:
    order = visit.Order(shell(het=True), {"PATH": "/bin"}, Request(), (), (22, 5, 8))
    first, second = visit.calls(order, (), "")
    assert "--het-group=0" in first.argv and "--nodes=1" in first.argv and "--gres=gpu:2" in first.argv
    assert "--het-group=1" in second.argv and "--nodes=2" in second.argv and ":" not in first.argv + second.argv
    assert visit.groups(order.shell) == (("n1",), ("n2", "n3")) and visit.count_of(order) == 3


def test_nodes_that_failed_are_left_out_of_the_next_start() -> None:
    order = visit.Order(shell(het=False), {}, Request(), ("--mpi=pmix",), (20, 2, 7))
    (call,) = visit.calls(order, ("n2",), "none")
    assert {"--nodes=2", "--ntasks=2", "--exclude=n2", "--mpi=none", "--mpi=pmix"} < set(call.argv)
    assert "--overlap" not in call.argv and call.argv.index("--mpi=none") < call.argv.index("--mpi=pmix")
    assert visit.groups(order.shell) == (NODES,) and visit.missing(order, ["n3"]) == ("n1", "n2")
