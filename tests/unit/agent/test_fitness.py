"""Which nodes take part in an attempt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slaunch.agent.fitness import CLOCK_S, Choice, Shown, choose, odd_clocks, too_few
from slaunch.badnodes import FIRST_S, FOR_GOOD

NODES = [Shown(node) for node in range(4)]


def but(*odd: Shown) -> list[Shown]:
    by_node = {each.node: each for each in odd}
    return [by_node.get(each.node, each) for each in NODES]


def test_all_that_are_healthy_take_part() -> None:
    assert choose(NODES, (), 2, 0.0) == Choice((0, 1, 2, 3))
    assert choose(NODES, (), 0, 0.0) == Choice((0, 1, 2, 3))


def test_a_node_with_a_fault_is_left_out_where_the_user_allows() -> None:
    assert choose(but(Shown(2, ("no disk",))), (), 3, 0.0) == Choice((0, 1, 3), ((2, "no disk"),))
    assert choose(but(Shown(2, ("no disk",))), (), 4, 0.0) == Choice((), ((2, "no disk"),))
    assert choose(but(Shown(0, ("no disk",))), (), 0, 0.0) == Choice((), ((0, "no disk"),))


def test_a_node_with_a_doubt_is_used_where_it_is_needed() -> None:
    odd = but(Shown(1, (), ("3 uncorrectable ECC errors",)), Shown(3, (), ("late",)))
    assert choose(odd, (), 2, 0.0).members == (0, 2)
    assert choose(odd, (), 3, 0.0).members == (0, 1, 2)
    assert choose(odd, (), 4, 0.0) == Choice((0, 1, 2, 3))
    assert choose(odd, (), 0, 0.0) == Choice((0, 1, 2, 3))


def test_a_node_that_has_shown_faults_cools_down_and_is_out_for_good_after_the_fifth() -> None:
    once = ((2, 100.0),)
    assert choose(NODES, once, 3, 100.0 + FIRST_S - 1).members == (0, 1, 3)
    assert choose(NODES, once, 3, 100.0 + FIRST_S + 1).members == (0, 1, 2, 3)
    twice = (*once, (2, 1000.0))
    assert choose(NODES, twice, 3, 1000.0 + 2 * FIRST_S - 1).members == (0, 1, 3)
    assert choose(NODES, twice, 3, 1000.0 + 2 * FIRST_S + 1).members == (0, 1, 2, 3)
    often = tuple((2, 1000.0 * n) for n in range(FOR_GOOD))
    assert choose(NODES, often, 3, 400_000.0).left_out == ((2, "it has shown faults before"),)
    assert choose(NODES, often, 4, 400_000.0).members == (0, 1, 2, 3), "where it is needed, and healthy, it is used"


def test_a_clock_far_from_most_others_is_a_doubt() -> None:
    wrong = but(Shown(0, offset_s=-2 * CLOCK_S))
    assert choose(wrong, (), 3, 0.0) == Choice((1, 2, 3), ((0, "its clock is -60 s from the others'"),))
    assert choose(wrong, (), 4, 0.0).members == (0, 1, 2, 3)


def test_where_no_clock_has_a_majority_none_is_wrong() -> None:
    assert odd_clocks([Shown(0), Shown(1, offset_s=3600.0)]) == {}
    assert odd_clocks([Shown(n, offset_s=100.0 * n) for n in range(5)]) == {}


def test_the_error_names_each_node_and_its_fault() -> None:
    problem = too_few(choose(but(Shown(2, ("no disk",))), (), 4, 0.0), 4, 4, ("a", "b", "c", "d"))
    assert "node 2 (c): no disk (3 are fit, and at least 4 are wanted)" in problem.seen


SHOWN = st.builds(
    lambda faults, doubts, offset: (faults, doubts, offset),
    st.sampled_from([(), (), ("broken",)]),
    st.sampled_from([(), (), ("odd",)]),
    st.sampled_from([0.0, 0.0, 1.0, 90.0, -3600.0]),
)


@given(st.lists(SHOWN, min_size=1, max_size=12), st.integers(0, 12), st.lists(st.tuples(st.integers(0, 11), st.floats(0, 1e6))))
def test_no_node_with_a_fault_takes_part_and_no_more_are_left_out_than_may_be(
    drawn: list[tuple[tuple[str, ...], tuple[str, ...], float]], least: int, past: list[tuple[int, float]]
) -> None:
    shown = [Shown(node, *each) for node, each in enumerate(drawn)]
    choice = choose(shown, past, least, 1e6)
    fit = [each.node for each in shown if not each.faults]
    wanted = least or len(shown)
    assert set(choice.members) <= set(fit)
    assert bool(choice.members) == (len(fit) >= wanted)
    if choice.members:
        assert len(choice.members) >= wanted
        assert list(choice.members) == sorted(choice.members)
        assert sorted([*choice.members, *(node for node, _ in choice.left_out)]) == [each.node for each in shown]
