"""Numbers of nodes that were started by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.errors import RendezvousError
from slaunch.rendezvous.seats import Wish, assign


def wishes(*ranks, ips=(), serves=-1):
    ips = ips or [f"10.0.0.{i + 1}" for i in range(len(ranks))]
    return {i: Wish(rank, ips[i], f"n{i}", i == serves) for i, rank in enumerate(ranks)}


def test_f104_explicit_numbers_are_kept():
    assert assign(wishes(2, 0, 1), 3) == {0: 2, 1: 0, 2: 1}


def test_f105_the_serving_node_comes_first():
    assert assign(wishes(-1, -1, -1, serves=2), 3) == {2: 0, 0: 1, 1: 2}


def test_f106_the_others_come_by_address_not_by_its_text():
    assert assign(wishes(-1, -1, -1, ips=["10.0.0.10", "10.0.0.9", "fd00::1"]), 3) == {1: 0, 0: 1, 2: 2}


def test_w18_explicit_and_automatic_numbers_may_be_mixed():
    assert assign(wishes(-1, 0, -1, serves=0), 3) == {1: 0, 0: 1, 2: 2}


def test_w18_one_number_for_two_is_an_error_with_both_names():
    with pytest.raises(RendezvousError, match="n0 and n2 both ask for --node-rank 1"):
        assign(wishes(1, -1, 1), 3)


@pytest.mark.parametrize(("ranks", "size"), [((0, 3), 4), ((5, -1), 2)])
def test_numbers_beyond_those_who_came_are_errors(ranks, size):
    with pytest.raises(RendezvousError, match="but there are 2 nodes"):
        assign(wishes(*ranks), size)


@given(st.lists(st.integers(-1, 5), min_size=1, max_size=6), st.integers(0, 5))
def test_seats_are_a_permutation_or_an_error(ranks, serves):
    try:
        seats = assign(wishes(*ranks, serves=serves), len(ranks))
    except RendezvousError:
        explicit = [rank for rank in ranks if rank >= 0]
        assert len(set(explicit)) < len(explicit) or max(explicit) >= len(ranks)
        return
    assert sorted(seats.values()) == list(range(len(ranks)))
    assert all(seats[i] == rank for i, rank in enumerate(ranks) if rank >= 0)
