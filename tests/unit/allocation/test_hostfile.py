"""Host files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recorded import files, vectors

from slaunch.allocation.hostfile import parse, parse_list
from slaunch.allocation.select import read
from slaunch.allocation.values import Shell
from slaunch.errors import AllocationError

CASES = [case for case in vectors("hostfiles") if "pool" not in case]
"""Without DeepSpeed's include and exclude filters, which slaunch does not have."""


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case["out"], dict)], ids=lambda case: str(case["out"]))
def test_hosts_and_slots(case):
    slots = parse(case["hostfile"]) if "hostfile" in case else parse_list(case["hosts"])
    assert slots == case["out"]
    assert list(slots) == list(case["out"])


@pytest.mark.parametrize("case", [case for case in CASES if str(case["out"]).startswith("error:")], ids=lambda case: case["out"])
def test_malformed_files(case):
    with pytest.raises(AllocationError):
        parse(case["hostfile"])


@pytest.mark.parametrize("case", [case for case in CASES if case["out"] == "error"], ids=lambda case: case["hostfile"][:20])
def test_a_malformed_line_is_shown_with_its_number(case):
    with pytest.raises(AllocationError, match=r"hosts\.txt, line [0-9]+: '(this is bad slots=1|invalid line)'"):
        parse(case["hostfile"], "hosts.txt")


def test_a_host_alone_is_one_slot():
    assert parse("missingslots\n") == {"missingslots": 1}


@pytest.mark.parametrize("line", ["n1 slots=0", "n1 slots=x", "n1:2 slots=2", "n1;id", "n 1", "n1 slots=-1"])
def test_nonsense_lines(line):
    with pytest.raises(AllocationError):
        parse(line)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True), st.integers(1, 99), min_size=1))
def test_both_forms_say_the_same(slots):
    lines = "\n".join(f"{host} slots={count}" for host, count in slots.items())
    assert parse(lines) == parse_list(",".join(f"{host}:{count}" for host, count in slots.items())) == slots


def test_a_host_file_makes_a_shell():
    shell = read({"SLAUNCH_HOSTFILE": "h"}, read_text=files({"h": "n2 slots=8\nn1 slots=8\n"}))
    assert isinstance(shell, Shell)
    assert (shell.allocation.launcher, shell.allocation.nodes, shell.shape.nodes) == ("hostfile", ("n2", "n1"), 2)


def test_a_host_file_that_is_not_there_is_named():
    with pytest.raises(AllocationError, match="SLAUNCH_HOSTFILE='h': No such file"):
        read({"SLAUNCH_HOSTFILE": "h"}, read_text=files({}))
