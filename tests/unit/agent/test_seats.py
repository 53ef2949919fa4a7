"""Who takes part in an attempt, in which order, and who waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.agent.policy import Policy, active_of, is_elastic, policy_of
from slaunch.agent.seats import number_of, seated
from slaunch.options import Options, Program


def options(nnodes: tuple[int, int] = (0, 0), spares: int = 0) -> Options:
    return Options(Program("x"), nnodes=nnodes, spares=spares)


@pytest.mark.parametrize(
    ("nnodes", "spares", "there", "active"),
    [
        ((0, 0), 0, 4, 4),
        ((0, 0), 1, 4, 3),
        ((0, 0), 9, 4, 1),
        ((3, 3), 1, 4, 3),
        ((3, 3), 1, 3, 3),
        ((2, 3), 0, 5, 3),
        ((2, 4), 1, 4, 3),
        ((3, 4), 2, 4, 3),
        ((1, 8), 0, 2, 2),
    ],
)
def test_how_many_take_part_at_first(nnodes: tuple[int, int], spares: int, there: int, active: int) -> None:
    assert active_of(there, options(nnodes, spares)) == active


def test_with_spares_a_job_goes_on_as_long_as_the_places_are_taken() -> None:
    assert is_elastic(options(spares=1))
    assert policy_of(options(spares=1), 3).least == 3
    assert policy_of(options((2, 4), 1), 3).least == 2


def test_a_spare_takes_the_place_of_the_lost_one() -> None:
    policy = Policy(most=3, spares=2, goal=3)
    assert seated((0, 1, 2), (0, 2, 3, 4), policy) == (0, 3, 2)
    assert seated((0, 3, 2), (2, 3, 4), policy) == (4, 3, 2)
    assert seated((4, 3, 2), (2, 3), policy) == (3, 2)


def test_a_failure_leaves_the_spares_where_they_are() -> None:
    assert seated((0, 1, 2), range(5), Policy(spares=2, goal=3)) == (0, 1, 2)


def test_f307_nodes_that_come_take_free_places_up_to_the_most() -> None:
    assert seated((0, 2), (0, 2, 4, 5), Policy(most=3, goal=3)) == (0, 2, 4)
    assert seated((0, 2), (0, 2, 4, 5), Policy(most=4, spares=1, goal=3)) == (0, 2, 4)


@given(st.permutations(range(6)), st.integers(1, 6), st.sets(st.integers(0, 9), min_size=1), st.integers(0, 3), st.integers(0, 8))
def test_f307_places_are_kept_and_nobody_has_two(order: list[int], size: int, fit: set[int], spares: int, most: int) -> None:
    before, policy = tuple(order[:size]), Policy(most=most, spares=spares, goal=size)
    seats = seated(before, fit, policy)
    assert len(set(seats)) == len(seats) == number_of(len(fit), policy)
    assert set(seats) <= fit
    kept = [node for node in before if node in seats]
    assert [node for node in seats if node in before] == kept, "order is kept"
    if len(seats) >= size:
        assert all(seats[before.index(node)] == node for node in kept), "and so is every place, if all are taken"
