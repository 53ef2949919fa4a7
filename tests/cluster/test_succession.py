"""The first node of a real Slurm step goes away, with it the agent that leads: the job goes on, or ends and says why.

srun runs on the login node here. Where a batch script starts the step, srun runs on the first node of the job and dies with it.
"""

from __future__ import annotations

import os
import signal

import pytest
from support.cluster import Cluster
from support.elastic import DDP, Fault, Training

from .test_restarts import journal, notes, report_of, train
from .test_supervision import PATIENCE_S, STAY, WORKERS, Launch, worker

SURVIVES = ("--no-kill", "--kill-on-bad-exit=0")


@pytest.mark.timeout(400)
def test_f124_p98_the_first_node_dies_and_a_spare_takes_its_place_in_a_torch_training(cluster: Cluster) -> None:
    """The losses and the result are those of a training that nothing disturbed, and the step ends with code 0."""
    training = Training(cluster, worker(cluster, "elastic", DDP), spares=1)
    training.inflict(Fault("node", "n1"))
    training.end()
    assert training.faults() == [], training.said()
    done = training.ended[0]
    assert done.returncode == 0, done.stderr
    assert "a node waits to take the place of a lost one: n4" in done.stderr
    assert "lost node 0 (n1); attempt 1 starts" in done.stderr
    assert training.ranks(1) == [("0", "None"), ("1", "1"), ("2", "2")], "the others keep theirs, the spare had none"
    report = report_of(training.place)
    assert [lost["host"] for lost in report["earlier"][0]["verdict"]["lost"]] == ["n1"]


def test_the_first_node_is_cut_off_and_its_workers_end_before_the_others_go_on(cluster: Cluster) -> None:
    """The nodes' clocks are one clock here."""
    launch = train(cluster, "--nnodes", "1:4", "--grace", "60", args=("2000",))
    begun = lambda: os.path.exists(f"{launch.place}/checkpoint")  # noqa: E731
    cluster.wait_until(begun, PATIENCE_S, lambda: str(os.listdir(launch.place)))
    cluster.cut("n1")
    again = lambda: [line for line in notes(launch.place, 6) if line[:2] == ["start", "1"]]  # noqa: E731
    cluster.wait_until(lambda: len(again()) == 6, PATIENCE_S, lambda: str(notes(launch.place, 6)))
    entries = [entry for node in (1, 2, 3) for entry in journal(launch.place, node)]
    started = min(e["time_s"] for e in entries if e["kind"] == "begin" and e["attempt"] == 1)
    ended = [e["time_s"] for e in journal(launch.place, 0) if e.get("what") == "WorkerExited"]
    assert len(ended) == WORKERS
    assert max(ended) < started
    cluster.join("n1")
    assert {line[6] for line in again()} == {"n2", "n3", "n4"}, "one world, though a single node would be enough"
    cluster.run(["scancel", launch.step()])
    launch.process.communicate(timeout=PATIENCE_S)


def test_where_all_nodes_are_needed_the_next_agent_ends_the_job_and_tells(cluster: Cluster) -> None:
    launch = Launch(cluster, worker(cluster, "stay", STAY), srun=SURVIVES)
    launch.up()
    os.kill(launch.agent("n1"), signal.SIGKILL)
    done = launch.result()
    assert done.returncode in (75, 128 + signal.SIGKILL), "srun takes the highest code of all tasks"
    assert done.stderr.count("slaunch: lost the agent on node 0 (n1)") == 1, done.stderr
    assert report_of(launch.place)["verdict"]["code"] == 75
