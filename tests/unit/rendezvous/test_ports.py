"""Ports at which tasks look for each other."""

from hypothesis import given
from hypothesis import strategies as st

from slaunch.allocation.values import Allocation
from slaunch.rendezvous.ports import CANDIDATES, HIGHEST, LOWEST, candidate_ports
from slaunch.rendezvous.slurm import meeting_identity


def identity(job="1", step="0", restarts=0, attempt=0, cluster="c"):
    return meeting_identity(Allocation("slurm", job, step, restarts=restarts), {"SLURM_CLUSTER_NAME": cluster}, attempt)


@given(st.text(max_size=40))
def test_ports_are_distinct_and_in_range(name):
    ports = candidate_ports(name)
    assert len(set(ports)) == len(ports) == CANDIDATES
    assert all(LOWEST <= port <= HIGHEST for port in ports)
    assert ports == candidate_ports(name)


def test_p28_steps_restarts_attempts_and_clusters_differ():
    base = candidate_ports(identity())
    for other in (identity(step="1"), identity(restarts=1), identity(attempt=1), identity(cluster="d"), identity(job="2")):
        assert candidate_ports(other)[0] != base[0]


def test_p28_jobs_whose_numbers_are_alike_modulo_anything_do_not_follow_each_other():
    """Jobs 1234 and 11234, 1000000 and 1004096: the same port by other launchers' rules, for ever."""
    for first, second in (("1234", "11234"), ("1000000", "1004096"), ("1", "4537")):
        assert candidate_ports(identity(first)) != candidate_ports(identity(second))


def test_p28_concurrent_jobs_on_a_node_seldom_want_one_port():
    firsts = [candidate_ports(identity(str(job)))[0] for job in range(1000, 1050)]
    assert len(set(firsts)) >= 48


def test_p28_none_is_in_the_kernels_usual_range_for_outgoing_connections():
    assert HIGHEST < 32768


def test_p29_there_is_no_default_port():
    assert not any(29500 in candidate_ports(identity(str(job)))[:1] for job in range(3))


def test_identity_names_all_that_distinguishes():
    assert identity() == "c/1/0/0/0"
    assert meeting_identity(Allocation("plain"), {}) == "///0/0"
