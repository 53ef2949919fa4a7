"""Jobs at an etcd whose networks are cut: no two worlds of one name run at once, whichever part of a job reaches etcd."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from support.cluster import Cluster
from support.worlds import FAST, WORLD, up, worlds

from .test_supervision import worker

PATIENCE_S = 90


class Nodes:
    """Nodes that are started one by one, for jobs of one name."""

    def __init__(self, cluster: Cluster, nodes: str) -> None:
        self.cluster, self.name = cluster, f"cut{os.urandom(4).hex()}"
        self.place = f"{cluster.scratch}/{self.name}"
        os.mkdir(self.place)
        os.chmod(self.place, 0o777)
        self.slaunch = [cluster.python, worker(cluster, "fast", FAST), "--scheduler", "plain", "--master", "etcd://ctl:2379"]
        self.slaunch += ["--nnodes", nodes, "--nproc-per-node", "1", "--job-id", self.name, "--grace", "1"]
        self.slaunch.append(worker(cluster, "world", WORLD))

    def start(self, who: str, node: str, **env: str) -> subprocess.Popen[str]:
        env = {"PLACE": self.place, "WHO": who, "SLAUNCH_SECRET": "a secret of sixteen letters or more", "LAST_CALL": "1", **env}
        return self.cluster.start([*self.slaunch, "--log-dir", f"{self.place}/logs.{who}"], node, env=env)

    def up(self, who: str, attempt: int, world: int) -> None:
        said = lambda: f"{worlds(self.place)} {sorted(os.listdir(self.place))}"  # noqa: E731
        self.cluster.wait_until(lambda: up(self.place, who, attempt, world), PATIENCE_S, said)

    def kept(self, what: str = "reign") -> None:
        """Until the job's entry is at etcd, or that of its meeting: "port"."""
        key = ["etcdctl", "--endpoints", "http://ctl:2379", "get", f"/slaunch/by hand/{self.name}/server"]
        there = lambda: what in self.cluster.run(key, env={"ETCDCTL_API": "3"}).stdout  # noqa: E731
        self.cluster.wait_until(there, PATIENCE_S, lambda: "no entry")

    def done(self) -> None:
        with open(f"{self.place}/done", "w"):
            pass


def part(cluster: Cluster, node: str, others: Sequence[str], how: str) -> None:
    """Cut a node's ways to some others, or mend them: `add` or `del`."""
    for one, two in [(node, other) for other in others] + [(other, node) for other in others]:
        ip = cluster.run(["getent", "hosts", two]).stdout.split()[0]
        cluster.root(one, "ip", "route", how, "blackhole", ip)


def test_f110_f121_w20_a_hub_that_is_cut_off_from_etcd_ends_before_the_next_job_of_its_name_begins(cluster: Cluster) -> None:
    """The first job's node loses its network. Another one starts the job anew, which waits until nobody can run the first."""
    nodes = Nodes(cluster, "1:2")
    first = nodes.start("first", "n1")
    nodes.up("first", 0, 1)
    nodes.kept()
    cluster.cut("n1")
    second = nodes.start("second", "n2")
    nodes.up("second", 0, 1)
    ended = cluster.wait(first, PATIENCE_S)
    assert ended.returncode == 69, ended.stderr
    assert "has not renewed" in ended.stderr
    cluster.join("n1")
    nodes.done()
    ended = cluster.wait(second, PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    assert worlds(nodes.place) == ["first 0 begins", "second 0 begins"]


def test_f121_w20_of_a_job_that_is_parted_while_all_reach_etcd_one_part_goes_on_and_no_other_job_begins(cluster: Cluster) -> None:
    """The first node, which leads, is cut off from the two others, which go on. A fourth comes as soon as it has ended."""
    nodes = Nodes(cluster, "1:3")
    wish = {"LAST_CALL": "20", "PATIENT": "yes"}
    hub = nodes.start("job", "n1", **wish)
    nodes.kept("port")
    others = [nodes.start("job", node, **wish) for node in ("n2", "n3")]
    nodes.up("job", 0, 3)
    nodes.kept()
    try:
        part(cluster, "n1", ("n2", "n3"), "add")
        ended = cluster.wait(hub, PATIENCE_S)
        assert ended.returncode == 75, ended.stderr
        fourth = nodes.start("job", "n4", **wish)
        nodes.up("job", 1, 2)
        nodes.up("job", 2, 3)
    finally:
        part(cluster, "n1", ("n2", "n3"), "del")
    nodes.done()
    for node in (*others, fourth):
        ended = cluster.wait(node, PATIENCE_S)
        assert ended.returncode == 0, ended.stderr
    assert worlds(nodes.place) == ["job 0 begins", "job 1 begins", "job 2 begins"]
