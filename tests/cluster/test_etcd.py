"""A job at an etcd loses its way to it: it ends before another one of its name begins, and never do two worlds run at once."""

from __future__ import annotations

import os
import subprocess

from support.cluster import Cluster
from support.worlds import FAST, WORLD, up, worlds

from .test_supervision import worker

PATIENCE_S = 90


def test_f110_f121_w20_a_hub_that_is_cut_off_from_etcd_ends_before_the_next_job_of_its_name_begins(cluster: Cluster) -> None:
    """The first job's node loses its network. Another one starts the job anew, which waits until nobody can run the first."""
    place = f"{cluster.scratch}/{os.urandom(4).hex()}"
    os.mkdir(place)
    os.chmod(place, 0o777)
    slaunch = [cluster.python, worker(cluster, "fast", FAST), "--scheduler", "plain", "--master", "etcd://ctl:2379"]
    slaunch += ["--nnodes", "1:2", "--nproc-per-node", "1", "--job-id", f"cut{os.getpid()}", "--grace", "1"]
    slaunch.append(worker(cluster, "world", WORLD))

    def start(who: str, node: str) -> subprocess.Popen[str]:
        env = {"PLACE": place, "WHO": who, "SLAUNCH_SECRET": "a secret of sixteen letters or more"}
        return cluster.start([*slaunch, "--log-dir", f"{place}/logs.{who}"], node, env=env)

    said = lambda: f"{worlds(place)} {sorted(os.listdir(place))}"  # noqa: E731
    first = start("first", "n1")
    cluster.wait_until(lambda: up(place, "first", 0, 1), PATIENCE_S, said)
    key = ["etcdctl", "--endpoints", "http://ctl:2379", "get", f"/slaunch/by hand/cut{os.getpid()}/server"]
    kept = lambda: "reign" in cluster.run(key, env={"ETCDCTL_API": "3"}).stdout  # noqa: E731
    cluster.wait_until(kept, PATIENCE_S, said)
    cluster.cut("n1")
    second = start("second", "n2")
    cluster.wait_until(lambda: up(place, "second", 0, 1), PATIENCE_S, said)
    ended = cluster.wait(first, PATIENCE_S)
    assert ended.returncode == 69, ended.stderr
    assert "has not renewed" in ended.stderr
    cluster.join("n1")
    with open(f"{place}/done", "w"):
        pass
    ended = cluster.wait(second, PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    assert worlds(place) == ["first 0 begins", "second 0 begins"]
