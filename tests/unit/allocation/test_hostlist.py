"""Host lists: the vectors of Slurm, Flux, ClusterShell and others, and properties."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.allocation.hostlist import compress, expand
from slaunch.errors import AllocationError

VECTORS = json.loads((Path(__file__).parents[2] / "data/vectors/hostlists.json").read_text())["cases"]
MALFORMED = [case["in"] for case in VECTORS if case["expect"] == "error"]
LISTED = [case for case in VECTORS if isinstance(case["expect"], list)]
COUNTED = [case for case in VECTORS if isinstance(case["expect"], dict)]
ANY = [case["in"] for case in VECTORS if str(case["expect"]).startswith("any answer")]


def test_every_vector_is_of_a_known_kind():
    assert len(MALFORMED) + len(LISTED) + len(COUNTED) + len(ANY) == len(VECTORS) == 86


@pytest.mark.parametrize("case", LISTED, ids=lambda case: case["in"])
def test_hosts_and_their_order(case):
    assert list(expand(case["in"])) == case["expect"]


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case["in"])
def test_long_lists(case):
    hosts = expand(case["in"])
    assert (len(hosts), hosts[0], hosts[-1]) == tuple(case["expect"][key] for key in ("count", "first", "last"))


@pytest.mark.parametrize("text", MALFORMED)
def test_p05_malformed_lists_are_refused_with_their_text(text):
    with pytest.raises(AllocationError) as error:
        expand(text, "SLURM_STEP_NODELIST")
    assert "SLURM_STEP_NODELIST" in error.value.seen
    assert text in error.value.seen


@pytest.mark.parametrize("text", ANY)
def test_lists_that_no_scheduler_writes_do_not_crash(text):
    try:
        assert expand(text)
    except AllocationError as error:
        assert text in error.seen


@pytest.mark.parametrize("text", ["", " ", ",", "n[0-9]x[0-999]y[0-999]"])
def test_empty_and_endless_lists_are_refused(text):
    with pytest.raises(AllocationError):
        expand(text)


@pytest.mark.parametrize(
    ("text", "count", "first"),
    [("rack[0-1]node[00-11]", 24, "rack0node00"), ("x1000c0s[0-1]b[0-1]n0", 4, "x1000c0s0b0n0")],
)
def test_p01_two_bracket_groups(text, count, first):
    assert len(expand(text)) == count
    assert expand(text)[0] == first


def test_p02_text_after_the_bracket():
    assert expand("gpu-a[1-2]-ib0") == ("gpu-a1-ib0", "gpu-a2-ib0")
    assert expand("node[1-2].cluster.local") == ("node1.cluster.local", "node2.cluster.local")


def test_p03_dashes_and_letters_in_the_prefix():
    assert expand("gpu-compute-on-demand-dy-g4dnxlarge-[1-4]")[0] == "gpu-compute-on-demand-dy-g4dnxlarge-1"
    assert expand("c1009a-s17,c1010a-s11") == ("c1009a-s17", "c1010a-s11")
    assert expand("host-[001-002]") == ("host-001", "host-002")


def test_p04_brackets_without_range_or_late_in_the_list():
    assert expand("linux[1,2]") == ("linux1", "linux2")
    assert expand("nodeA,nodeB[001,003],nodeC") == ("nodeA", "nodeB001", "nodeB003", "nodeC")


def test_p05_zero_padding_and_growing_width():
    assert expand("node[001-003,010],gpu-a[1-2]") == ("node001", "node002", "node003", "node010", "gpu-a1", "gpu-a2")
    assert expand("n[9-11]") == ("n9", "n10", "n11")
    assert expand("n[099-101]") == ("n099", "n100", "n101")


def test_four_brackets_come_in_slurms_order():
    """Recorded: `scontrol show hostnames 'a[0-1]b[0-1]c[0-1]d[0-1]'`, Slurm 22.05.8."""
    recorded = """a0b0c0d0 a0b0c0d1 a1b0c0d0 a1b0c0d1 a0b1c0d0 a0b1c0d1 a1b1c0d0 a1b1c0d1
                  a0b0c1d0 a0b0c1d1 a1b0c1d0 a1b0c1d1 a0b1c1d0 a0b1c1d1 a1b1c1d0 a1b1c1d1"""
    assert expand("a[0-1]b[0-1]c[0-1]d[0-1]") == tuple(recorded.split())


hosts = st.builds(
    lambda prefix, number, width, suffix: f"{prefix}{number:0{width}d}{suffix}",
    st.sampled_from(["n", "gpu-a", "x1c", "rack7-"]),
    st.integers(0, 1200),
    st.integers(1, 4),
    st.sampled_from(["", "-ib0", ".local"]),
)


@given(st.lists(hosts, min_size=1, max_size=40, unique=True))
def test_compressed_lists_name_the_same_hosts(names):
    text = compress(names)
    assert sorted(expand(text)) == sorted(names)
    assert compress(expand(text)) == text


@given(st.lists(hosts, min_size=1, max_size=40))
def test_lists_without_brackets_are_taken_as_they_are(names):
    assert expand(",".join(names)) == tuple(names)


def test_ten_thousand_nodes():
    assert len(expand("n[00001-10000]")) == 10_000
    assert len(expand(",".join(f"r{i}n[1-2]" for i in range(5000)))) == 10_000
