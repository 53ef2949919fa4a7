"""Counts per node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recorded import vectors

from slaunch.allocation.counts import compress, expand
from slaunch.allocation.slurm_task import check_step
from slaunch.errors import AllocationError

CASES = vectors("counts_per_node")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["in"] or "empty")
def test_p06_compressed_counts(case):
    wanted = [16] * 1000 if case["out"] == "16 x 1000" else case["out"]
    hosts = tuple(f"n{i}" for i in range(case["nodes"]))
    env = {"SLURM_STEP_TASKS_PER_NODE": case["in"]}
    if isinstance(wanted, list):
        counts = expand(case["in"])
        assert list(counts) == wanted
        check_step(env, sum(wanted), hosts, counts)
    else:
        with pytest.raises(AllocationError, match="SLURM_STEP_TASKS_PER_NODE"):
            check_step(env, 12, hosts, expand(case["in"], "SLURM_STEP_TASKS_PER_NODE"))


@pytest.mark.parametrize("text", ["4(x0)", "4(x-1)", "-4", "4(2)", "4 2", "4(x9999999)", "four", "4(x2", "²"])
def test_malformed_counts_are_refused_with_their_text(text):
    with pytest.raises(AllocationError) as error:
        expand(f"1,{text}", "SLURM_TASKS_PER_NODE")
    assert text in error.value.seen
    assert "SLURM_TASKS_PER_NODE" in error.value.seen


@given(st.lists(st.integers(0, 200), min_size=1, max_size=60))
def test_counts_come_back_from_slurms_notation(counts):
    assert expand(compress(tuple(counts))) == tuple(counts)


def test_equal_neighbours_are_counted_together():
    assert compress((2, 2, 2, 1)) == "2(x3),1"
