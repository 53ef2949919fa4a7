"""Reading and step building on a real Slurm: what slaunch says of a step, and the steps that it starts itself."""

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from support.cluster import Cluster

WHERE = str(Path(__file__).parents[1] / "programs" / "where.py")


def said(text: str) -> list[dict]:
    """What the tasks said, in the order of their ranks."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return sorted(lines, key=lambda line: line["place"])


def batch(cluster: Cluster, *options: str, before: str = "", args: str = "") -> list[dict]:
    job = cluster.sbatch(f"#!/bin/bash\n{before}\nexec {cluster.python} {WHERE} {args}\n", *options)
    assert job.code == 0, job.output
    return said(job.output)


def one_agent_on_each(found: list[dict], nodes: int) -> None:
    assert [line["place"] for line in found] == [[rank, nodes, 0, rank] for rank in range(nodes)]
    assert [line["host"] for line in found] == found[0]["nodes"]
    assert {line["root"] for line in found} == {found[0]["host"]}
    assert {line["launcher"] for line in found} == {"slurm"}


FORMS = {
    "": (["1", "1"], [0, 0]),
    "-n5": (["4", "1"], [0, 0]),
    "--ntasks-per-node=2 -c2": (["4", "4"], [0, 0]),
    "--ntasks-per-node=2 -c2 --mem=500": (["4", "4"], [0, 0]),
    "--mem-per-cpu=200 -c2": (["2", "2"], [0, 0]),
    "--exclusive": (["8", "8"], [0, 0]),
    "--exclusive -c3 --gres=gpu:4": (["8", "8"], [4, 4]),
    "--gres=gpu:2": (["1", "1"], [2, 2]),
    "--gpus-per-node=2": (["1", "1"], [2, 2]),
    "-n4 --gpus=4": (["3", "1"], [3, 1]),
    "--ntasks-per-node=2 --gpus-per-task=2": (["2", "2"], [4, 4]),
    "-n5 --gpus-per-task=1": (["4", "1"], [4, 1]),
    "-n2 --gpus-per-task=1 --cpus-per-gpu=3": (["3", "3"], [1, 1]),
    "--hint=nomultithread -c3": (["3", "3"], [0, 0]),
    "--overcommit -n9": (["1", "1"], [0, 0]),
}
"""CPUs and GPUs of the agent on each of two nodes, by what was asked of sbatch."""


@pytest.mark.parametrize("form", FORMS)
def test_p34_p52_the_step_has_the_jobs_whole_share(cluster: Cluster, form: str) -> None:
    found = batch(cluster, "-N2", *form.split())
    one_agent_on_each(found, 2)
    cpus, gpus = FORMS[form]
    assert ([line["cpus"] for line in found], [line["gpus"] for line in found]) == (cpus, gpus)


def test_p37_the_agent_is_not_bound(cluster: Cluster) -> None:
    found = batch(cluster, "-N1", "--exclusive")
    assert found[0]["bound"] == min(8, os.cpu_count() or 1)


def test_p72_export_none(cluster: Cluster) -> None:
    found = batch(cluster, "-N2", "--export=NONE", before="export PATH=$PATH:/mine")
    one_agent_on_each(found, 2)
    assert all(line["path"].endswith(":/mine") for line in found)


def test_p10_a_heterogeneous_job_runs_on_all_components(cluster: Cluster) -> None:
    found = batch(cluster, "-N1", "-c2", ":", "-N2", "--gpus-per-node=1")
    one_agent_on_each(found, 3)
    assert [(line["cpus"], line["gpus"]) for line in found] == [("2", 0), ("1", 1), ("1", 1)]


def test_p12_salloc_from_the_login_node(cluster: Cluster) -> None:
    done = cluster.run(["salloc", "-N3", "-c2", "--gres=gpu:1", cluster.python, WHERE])
    one_agent_on_each(said(done.stdout), 3)
    assert [line["gpus"] for line in said(done.stdout)] == [1, 1, 1]


def test_p36_p38_from_an_interactive_step(cluster: Cluster) -> None:
    """The shell of salloc with use_interactive_step: bound to one CPU, with variables of a step that is none."""
    interactive = ["salloc", "-N2", "-n4", "-c2", "srun", "--interactive", "--preserve-env", "-n1", "-N1", cluster.python, WHERE]
    done = cluster.run(interactive, env={"SLURM_TRES_PER_TASK": "cpu:8"})
    one_agent_on_each(said(done.stdout), 2)


def test_p35_a_job_submitted_from_inside_a_step(cluster: Cluster) -> None:
    out = f"{cluster.scratch}/inner.out"
    wrap = f"{cluster.python} {WHERE}"
    done = cluster.run(["srun", "-n1", "sbatch", "-W", "-N2", "-n4", "-o", out, "--wrap", wrap], timeout=90)
    assert done.returncode == 0, done.stderr
    one_agent_on_each(said(Path(out).read_text()), 2)


def test_p70_nodes_held_by_another_step_are_an_error_in_time(cluster: Cluster) -> None:
    start = time.monotonic()
    before = "srun -n2 -c1 sleep 60 & sleep 1"
    job = cluster.sbatch(f"#!/bin/bash\n{before}\n{cluster.python} {WHERE} --immediate=2\ncode=$?\nkill %1\nexit $code\n", "-N2")
    assert job.code != 0
    assert "busy" in job.output
    assert time.monotonic() - start < 50


def test_p77_requests_of_the_batch_script_do_not_change_the_step(cluster: Cluster) -> None:
    found = batch(
        cluster, "-N2", "-n8", before="export SLURM_DISTRIBUTION=arbitrary SLURM_HOSTFILE=/nonexistent SLURM_CPUS_PER_TASK=7"
    )
    one_agent_on_each(found, 2)


def test_arguments_for_srun_win(cluster: Cluster) -> None:
    found = batch(cluster, "-N3", args="--nodes=2 --ntasks=2")
    one_agent_on_each(found, 2)


@pytest.mark.parametrize(
    "options",
    [
        "-N3 -n5",
        "-w n3,n1,n2 -n3",
        "-N2 --ntasks-per-node=3 -m cyclic",
        "-N2 -n6 -m plane=2",
        "-N2 --ntasks-per-node=4 --gpus-per-task=1 --mpi=pmi2",
        "-N1 -n1 -w n4 python WHERE : -N2 -n4 -w n1,n2",
    ],
)
def test_p06_p09_steps_of_any_shape(cluster: Cluster, options: str) -> None:
    words = [cluster.python if word == "python" else WHERE if word == "WHERE" else word for word in options.split()]
    done = cluster.srun(*words, cluster.python, WHERE)
    found = said(done.stdout)
    assert found, done.stderr
    assert [line["place"][0] for line in found] == list(range(len(found)))
    assert {line["place"][1] for line in found} == {len(found)}
    assert all(line["nodes"][line["place"][3]] == line["host"] for line in found)
    assert {line["root"] for line in found} == {found[0]["host"]} == {found[0]["nodes"][0]}


def test_the_users_own_order_puts_rank_0_on_any_node(cluster: Cluster) -> None:
    hosts = f"{cluster.scratch}/order"
    Path(hosts).write_text("n3\nn1\nn3\nn2\n")
    inner = ["srun", "-n4", "-m", "arbitrary", cluster.python, WHERE]
    done = cluster.run(["salloc", "-N3", "-n4", "env", f"SLURM_HOSTFILE={hosts}", *inner])
    found = said(done.stdout)
    assert [line["host"] for line in found] == ["n3", "n1", "n3", "n2"]
    assert {line["root"] for line in found} == {"n3"}
    assert all(line["nodes"][line["place"][3]] == line["host"] for line in found)


@pytest.mark.parametrize(("program", "kind"), [("mpirun.openmpi", "openmpi"), ("mpirun.mpich", "hydra")])
def test_p45_mpirun_starts_one_unbound_agent_on_each_host(cluster: Cluster, program: str, kind: str) -> None:
    env = {"MPIRUN": program, "MPIRUN_KIND": kind, "MINE": "x"}
    done = cluster.run(["salloc", "-N3", "--exclusive", cluster.python, WHERE], env=env)
    found = said(done.stdout)
    assert [line["place"][:3] for line in found] == [[0, 3, 0], [1, 3, 0], [2, 3, 0]], done.stderr
    assert Counter(line["host"] for line in found) == Counter(["n1", "n2", "n3"])
    assert {line["launcher"] for line in found} == {kind}
    assert {line["bound"] for line in found} == {min(8, os.cpu_count() or 1)}


ASK = "from slaunch.slurm.client import *; print(node_address('n2'), node_address('n99') == '', version(), time_left_s({job!r}))"


def test_slurms_own_answers(cluster: Cluster) -> None:
    job = cluster.run(["sbatch", "--parsable", "-N1", "-t", "10", "--wrap", "sleep 60"]).stdout.strip()
    try:
        cluster.wait_until(lambda: cluster.job(job)["JobState"] == "RUNNING", 30, lambda: "the job does not run")
        done = cluster.run([cluster.python, "-c", ASK.format(job=job)])
    finally:
        cluster.run(["scancel", job])
    address, unknown, *version, left = done.stdout.split()
    assert (address, unknown) == ("n2", "True"), done.stderr
    assert 400 < float(left) <= 600
    assert len(version) == 3
