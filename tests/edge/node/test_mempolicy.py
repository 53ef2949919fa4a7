"""Memory policies through the real system calls."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from slaunch.node import mempolicy

NODES = mempolicy.read_memory().nodes
IN_CHILD = """
import os, sys
from slaunch.node import mempolicy
mempolicy.set_policy(sys.argv[1], tuple(map(int, sys.argv[2].split(","))))
os.execv(sys.executable, [sys.executable, "-c", "import sys; print('there', flush=True); sys.stdin.read()"])
"""


def in_child(policy, nodes):
    """The policy of a program that was executed with it; and what it said if it could not be."""
    argv = [sys.executable, "-c", IN_CHILD, policy, ",".join(map(str, nodes))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        found = mempolicy.policy_of(child.pid) if child.stdout.readline() else ""
        said = child.communicate(timeout=30)[1].decode()
    return found, said


def test_this_machine_tells_its_memory():
    assert NODES
    assert set(NODES) <= {int(name[4:]) for name in os.listdir("/sys/devices/system/node") if name[4:].isdecimal()}


@pytest.mark.parametrize("policy", ["preferred", "bind"])
def test_p43_a_program_keeps_the_policy_that_it_is_started_with(policy):
    assert in_child(policy, NODES[:1]) == (mempolicy.told(policy, NODES[:1]), "")


@pytest.mark.parametrize("node", [NODES[-1] + 1, 70])
def test_a_preference_for_a_node_that_is_not_there_does_no_harm(node):
    assert in_child("preferred", (node,)) == ("default", "")


def test_memory_that_is_not_there_cannot_be_bound_to():
    found, said = in_child("bind", (NODES[-1] + 1,))
    assert found == ""
    assert "set_mempolicy: Invalid argument" in said


def test_the_own_policy():
    assert mempolicy.own_policy() in mempolicy.WORDS


def test_a_process_that_has_ended_has_no_policy(tmp_path):
    assert mempolicy.policy_of(1, str(tmp_path)) == ""


def test_nodes_are_those_that_the_cgroup_allows(tmp_path):
    (tmp_path / "sys/devices/system/node").mkdir(parents=True)
    (tmp_path / "sys/devices/system/node/has_memory").write_text("0-3\n")
    assert mempolicy.read_memory(str(tmp_path)).nodes == (0, 1, 2, 3)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text("Name:\tx\nMems_allowed:\t0e\nMems_allowed_list:\t1-3\nThreads:\t1\n")
    found = mempolicy.read_memory(str(tmp_path))
    assert found == mempolicy.MemoryFacts((1, 2, 3), mempolicy.own_policy())
