"""The testbed itself: what the other tests lean on."""

import subprocess
import sys

import pytest
from support.cluster import Cluster, Job


def test_steps_run_on_all_nodes_as_an_ordinary_user(cluster: Cluster) -> None:
    done = cluster.srun(
        "-N4", "--ntasks-per-node=2", "--gres=gpu:4", "bash", "-c", "echo $(id -un) $(hostname) $SLURM_GPUS_ON_NODE"
    )
    assert sorted(done.stdout.split("\n")[:-1]) == [f"hpc {node} 4" for node in cluster.nodes for _ in "12"], done.stderr


def test_the_interpreter_works_on_the_nodes(cluster: Cluster) -> None:
    done = cluster.srun("-N4", "python", "-c", "import slaunch, sys; print(sys.executable)")
    assert done.stdout.split() == [sys.executable] * 4, done.stderr


def test_a_batch_job_ends_with_its_code_and_output(cluster: Cluster) -> None:
    job = cluster.sbatch("#!/bin/sh\necho $X; exit 5\n", "-N2", env={"X": "hello"})
    assert job == Job(job.id, "FAILED", 5, "hello\n")


def test_a_failed_node_comes_back(cluster: Cluster) -> None:
    cluster.fail("n4")
    assert cluster.run(["true"], node="n3").returncode == 0
    cluster.heal("n4")
    cluster.wait_until(lambda: cluster.srun("-w", "n4", "hostname").stdout == "n4\n", 30, lambda: "n4 is not back")


def test_processes_are_found_by_a_mark_in_their_environment(cluster: Cluster) -> None:
    process = cluster.start(["srun", "-N2", "sleep", "60"], env={"MARK": "m42"})

    def sleepers() -> set[str]:
        return {process.node for process in cluster.processes("MARK=m42") if process.argv[0].endswith("sleep")}

    cluster.wait_until(lambda: sleepers() == {"n1", "n2"}, 20, lambda: f"only on {sleepers()}")
    cluster.stop(process)


def test_a_command_that_does_not_end_fails_the_test_and_leaves_nothing(cluster: Cluster) -> None:
    with pytest.raises(AssertionError, match="was not done after 1 s"):
        cluster.srun("-N2", "sleep", "61", timeout=1)
    cluster.wait_until(lambda: not cluster.processes(), 20, lambda: str(cluster.processes()))


def test_a_second_cluster_lives_beside_the_first(cluster: Cluster) -> None:
    with Cluster(nodes=1).running() as other:
        assert other.srun("hostname", "-i").stdout != cluster.srun("hostname", "-i").stdout
    assert cluster.srun("-N4", "true").returncode == 0


def test_leftovers_are_named_and_removed(cluster: Cluster) -> None:
    cluster.run(["sh", "-c", "setsid --fork sleep 62 >/dev/null 2>&1"], node="n2")
    left = cluster.clean(patience=1)
    assert [line.split(": ")[1] for line in left] == ["sleep 62"]
    assert cluster.processes() == []


def test_a_cluster_ends_with_the_process_that_owns_it(cluster: Cluster) -> None:
    owner = subprocess.Popen(["sleep", "300"])
    other = Cluster(nodes=1)
    try:
        other.up(owner=owner.pid)
        owner.kill()
        owner.wait()
        cluster.wait_until(lambda: not other.is_up(), 30, lambda: "it is still up")
    finally:
        other.down()
