"""Task maps."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recorded import processes, vectors

from slaunch.allocation.taskmap import format_pmi, parse_pmi, ranks_of_nodes
from slaunch.errors import AllocationError

CASES = vectors("rank_maps")


def blocks(text):
    return tuple(tuple(block) for block in json.loads(text))


def ranks(text):
    """The ranks of a list like "0,2-4"."""
    ends = [part.split("-") for part in text.split(",")]
    return tuple(rank for end in ends for rank in range(int(end[0]), int(end[-1]) + 1))


@pytest.mark.parametrize("case", [case for case in CASES if "ranks_of_each_node" in case], ids=lambda case: case["map"])
def test_ranks_of_each_node(case):
    assert ranks_of_nodes(blocks(case["map"])) == tuple(map(ranks, case["ranks_of_each_node"]))


@pytest.mark.parametrize("case", [case for case in CASES if "pmi" in case and "map" in case], ids=lambda case: case["pmi"])
def test_pmis_notation(case):
    assert parse_pmi(case["pmi"]) == blocks(case["map"])
    assert parse_pmi(format_pmi(blocks(case["map"]))) == blocks(case["map"])


@pytest.mark.parametrize("case", [case for case in CASES if "error" in case], ids=lambda case: case["pmi"])
def test_malformed_maps_are_refused_with_their_text(case):
    with pytest.raises(AllocationError) as error:
        parse_pmi(case["pmi"])
    assert case["pmi"] in error.value.seen


def place(nodes, per_node, order):
    """Ranks of each node by the meaning of the order: whole nodes, one by one, or groups of some."""
    group = {"block": per_node, "cyclic": 1}.get(order) or int(order.split("plane ")[1].rstrip(")"))
    placed = [[] for _ in range(nodes)]
    rank = 0
    while rank < nodes * per_node:
        for ranks in placed:
            some = min(group, per_node - len(ranks))
            ranks.extend(range(rank, rank + some))
            rank += some
    return tuple(map(tuple, placed))


@pytest.mark.parametrize("case", [case for case in CASES if "order" in case], ids=lambda case: case["order"])
def test_slurms_distributions(case):
    assert ranks_of_nodes(blocks(case["map"])) == place(case["nodes"], case["per_node"], case["order"])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)), max_size=6))
def test_every_rank_is_somewhere_and_only_once(drawn):
    placed = sorted(rank for ranks in ranks_of_nodes(drawn) for rank in ranks)
    assert placed == list(range(len(placed)))
    assert ranks_of_nodes(parse_pmi(format_pmi(drawn))) == ranks_of_nodes(drawn)


@pytest.mark.parametrize("name", ["slurm_step_pmix", "slurm_step_arbitrary_pmix", "srun_pmix_in_openmpi4"])
def test_slurms_own_map_says_where_each_task_ran(name):
    for process in processes(name):
        placed = ranks_of_nodes(parse_pmi(process.env["SLURM_PMIX_MAPPING_SERV"]))
        assert int(process.env["SLURM_PROCID"]) in placed[int(process.env["SLURM_NODEID"])]
