"""Nodes with several networks, some of which lead nowhere although their links are up."""

from __future__ import annotations

import re

import pytest
from support.cluster import Cluster, Result
from support.jobs import assert_three_parts, folder_in, logs
from support.networks import network

ALL = ("-N4", "--ntasks-per-node=1")
TELL = "import os; print('told', os.environ['MASTER_ADDR'], os.environ['GLOO_SOCKET_IFNAME'])"


def start(cluster: Cluster, *options: str, plugin: str = "none", **env: str) -> tuple[Result, set[tuple[str, str]]]:
    """A job of four workers, and what they were told: the master's address, and the interface."""
    folder = folder_in(cluster.scratch)
    slaunch = (cluster.python, "-m", "slaunch", "--nproc_per_node", "1", "--log_dir", folder, *options, "-c", TELL)
    done = cluster.srun(f"--mpi={plugin}", *ALL, *slaunch, timeout=90, env=env)
    found = re.findall(r"^(?:\[\d+\] )?told (\S+) (\S+)$", logs(folder), re.MULTILINE)
    assert len(found) == (0 if done.returncode else 4), done.stderr
    return done, set(found)


@pytest.mark.parametrize(
    ("way", "plugin", "env", "met"),
    [
        ("slurm", "none", {}, "met 4 tasks by slurm: "),
        ("mpi", "pmi2", {"UCX_NET_DEVICES": "eth0"}, "met 4 tasks by mpi: "),
        ("auto", "pmi2", {}, "met 4 tasks by slurm: mpi does not work: "),  # MPI tries the dead network itself
    ],
)
def test_p19_p25_a_network_that_leads_nowhere_on_one_node_is_not_used(
    cluster: Cluster, way: str, plugin: str, env: dict[str, str], met: str
) -> None:
    with network(cluster, "aux0", "10.199.1", dead="n3"):
        done, told = start(cluster, "--rendezvous", way, plugin=plugin, **env)
    assert [interface for _, interface in told] == ["eth0"], done.stderr
    assert not any(master.startswith("10.199.") for master, _ in told)
    assert f"slaunch: {met}" in done.stderr
    assert "slaunch: note: a network is not used: n" in done.stderr
    assert "n3 cannot reach n4 at 10.199.1.4 (aux0): " in done.stderr
    assert "n2 cannot reach n3 at 10.199.1.3 (aux0): " in done.stderr


def test_p19_p25_the_first_of_several_networks_is_used_where_it_joins_all(cluster: Cluster) -> None:
    """So in the test above it is the proof that makes the difference."""
    with network(cluster, "aux0", "10.199.1"):
        done, told = start(cluster)
    assert told == {("10.199.1.1", "aux0")}, done.stderr
    assert "a network is not used" not in done.stderr


def test_p19_a_bridge_of_one_address_on_all_nodes_is_not_used(cluster: Cluster) -> None:
    """As a container engine makes it, under a name that does not tell."""
    made = []
    try:
        for node in cluster.nodes:
            cluster.root(node, "ip", "link", "add", "abr0", "type", "veth", "peer", "name", "abr1")
            made.append(node)
            cluster.root(node, "ip", "addr", "add", "10.199.9.1/24", "dev", "abr0")
            for interface in ("abr0", "abr1"):
                cluster.root(node, "ip", "link", "set", interface, "up")
        done, told = start(cluster)
    finally:
        for node in made:
            cluster.root(node, "ip", "link", "del", "abr0")
    assert [interface for _, interface in told] == ["eth0"], done.stderr


def test_p19_where_no_network_joins_all_the_pairs_are_named(cluster: Cluster) -> None:
    with network(cluster, "aux0", "10.199.1", dead="n3"), network(cluster, "aux1", "10.199.2", dead="n4"):
        done, _ = start(cluster, "--network", "10.199.0.0/16")
    assert_three_parts(done, 69, "slaunch: cannot find a network that joins all nodes")
    assert "n2 cannot reach n3 at 10.199.1.3 (aux0): " in done.stderr
    assert "n3 cannot reach n4 at 10.199.2.4 (aux1): " in done.stderr
