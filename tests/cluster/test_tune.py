"""The tuner in a real Slurm job over four nodes: trials are job steps, one tuner decides, nothing is left.

A whole search with every fault on the way is in tests/framework/test_search.py.
"""

import csv
import json
import os
import re
from pathlib import Path
from typing import Any

from support.cluster import Cluster
from support.jobs import PROGRAMS, folder_in
from support.studies import raw

TUNED = os.path.join(PROGRAMS, "tuned.py")
SIZES = {"dp_degree": "auto", "mp_degree": [1, 2], "micro_batch_size": [1, 2, 4, 8], "assume_slower": False, "run_best": False}


def prepare(cluster: Cluster, keys: dict[str, Any]) -> str:
    """A folder with the configuration."""
    folder = folder_in(cluster.scratch)
    Path(folder, "tuner.json").write_text(json.dumps(raw(model={"global_batch_size": 64}, **keys)))
    return folder


def command(*args: str, workers: int = 2) -> list[str]:
    return ["slaunch", "tune", "tuner.json", "--nproc-per-node", str(workers), TUNED, *args]


def history(folder: str, name: str = "tuner_history.csv") -> list[dict[str, str]]:
    with open(os.path.join(folder, name), newline="") as file:
        return list(csv.DictReader(file))


def journal(folder: str, kind: str) -> list[dict[str, Any]]:
    lines = Path(folder, "tuner_journal.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_f312_w01_only_the_trials_step_is_ended(cluster: Cluster) -> None:
    """Another step of the same job, on the same nodes, lives through the end of a hanging trial."""
    folder = prepare(cluster, {**SIZES, "mp_degree": 2, "micro_batch_size": [1], "warmup_time": 2})
    live = "until [ -e over ]; do sleep 0.1; done; touch lived.$SLURM_PROCID"
    other = f"srun --overlap -N4 -n4 --mem=0 --job-name=other bash -c '{live}' &"
    words = command("--when", "mp_degree=2:hang")
    script = f"#!/bin/bash\n{other}\nsleep 1\n{' '.join(words)}; touch over; wait %1\n"
    job = cluster.sbatch(script, "-N4", "-n8", cwd=folder, timeout=120)
    assert history(folder)[0]["status"] == "timeout"
    assert len(list(Path(folder).glob("lived.*"))) == 4, job.output


def test_w30_a_trial_whose_nodes_are_held_is_the_machines_failure(cluster: Cluster) -> None:
    folder = prepare(
        cluster, {**SIZES, "mp_degree": 2, "micro_batch_size": [1, 2], "startup_time": 2, "retries": 1, "task_limit": 1}
    )
    held = "srun --exact -N4 -n4 --mem=0 sleep 20 &"
    script = f"#!/bin/bash\n{held}\nsleep 1\n{' '.join(command())}; echo code $?; kill %1; wait\n"
    job = cluster.sbatch(script, "-N4", "--ntasks-per-node=1", cwd=folder, timeout=120)
    assert "code 77" in job.output
    assert history(folder)[0]["status"] == "infrastructure"
    assert "no worker had started after 2 s" in history(folder)[0]["error_info"]
    assert len(journal(folder, "start")) == 2
    assert job.output.count("the machine failed") >= 1


def test_a_spare_node_comes_for_one_that_dies(cluster: Cluster) -> None:
    """The search counts on two of four nodes; the second dies in the first trial, which is tried again on the first and third."""
    folder = prepare(cluster, {**SIZES, "mp_degree": 2, "micro_batch_size": [1, 2], "nodes": 2})
    words = command("--when", "micro_batch_size=1:once")
    process = cluster.start(["salloc", "--quiet", "-N4", "--no-kill", "--ntasks-per-node=2", *words], cwd=folder)
    cluster.wait_until(lambda: len(list(Path(folder).glob("once.*"))) == 4, 60, lambda: str(os.listdir(folder)))
    cluster.fail("n2")
    cluster.root("ctl", "scontrol", "update", "nodename=n2", "state=down", "reason=broken")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "2 settings for 4 workers on 2 nodes" in said
    assert re.search(r"the machine failed: .*\n.*nodes from now on: n1, n3\n", said), said
    assert [event["status"] for event in journal(folder, "trial")] == ["ok", "ok"]
    assert len(journal(folder, "start")) == 3


def test_f274_f275_w29_w31_estimation_on_part_of_the_nodes(cluster: Cluster) -> None:
    algorithm = {"name": "dp_estimation", "estimated_num_gpus": 16, "conversion": {"step_time": "step_s"}}
    keys = {"dp_degree": "auto", "pp_degree": [2, 4], "mp_degree": [1, 2], "sharding_degree": "auto", "search_algo": algorithm}
    folder = prepare(cluster, {**keys, "enable_pp_prune": False})
    job = cluster.sbatch(f"#!/bin/bash\n{' '.join(command())}\n", "-N4", "--ntasks-per-node=2", cwd=folder, timeout=120)
    assert job.code == 0, job.output
    shapes = {(row["mp_degree"], row["pp_degree"]): (row["num_gpus"], row["nodes"]) for row in history(folder)}
    assert shapes == {("2", "4"): ("8", "4"), ("2", "2"): ("4", "2"), ("1", "4"): ("4", "2"), ("1", "2"): ("2", "1")}
    for row in history(folder):
        logs = list(Path(folder).glob(f"Job{row['job_id']}_*/workerlog.*"))
        assert len(logs) == int(row["num_gpus"])
        assert row["status"] == "ok"


def test_f326_the_tuner_inside_a_step_of_several_tasks_is_refused(cluster: Cluster) -> None:
    folder = prepare(cluster, SIZES)
    done = cluster.srun("-N2", "--ntasks-per-node=1", *command(), cwd=folder)
    assert done.returncode == 2
    assert done.stderr.count("start `slaunch tune` once") == 1


def test_p82_w52_a_cancelled_job_ends_its_tuner_and_leaves_the_best_so_far(cluster: Cluster) -> None:
    folder = prepare(cluster, {**SIZES, "mp_degree": 2})
    script = f"#!/bin/bash\ntrap '' TERM\nexec {' '.join(command('--when', 'micro_batch_size=4:hang'))}\n"
    Path(folder, "job.sh").write_text(script)
    submitted = cluster.run(["sbatch", "--parsable", "-N4", "--ntasks-per-node=2", "-o", "out", "job.sh"], cwd=folder)
    cluster.wait_until(lambda: len(list(Path(folder).glob("Job3_*/workerlog.*"))) == 8, 60, lambda: str(os.listdir(folder)))
    cluster.run(["scancel", "--signal=USR1", "--batch", submitted.stdout.strip()])
    cluster.wait_until(
        lambda: not cluster.run(["squeue", "--noheader"]).stdout.strip(), 60, lambda: Path(folder, "out").read_text()
    )
    said = Path(folder, "out").read_text()
    assert "asked to stop by SIGUSR1" in said
    assert "best so far: trial 2" in said
    assert [event["status"] for event in journal(folder, "trial")] == ["ok", "ok", "cancelled"]


def test_f193_w55_the_template_is_a_search_over_all_gpus_of_the_job(cluster: Cluster) -> None:
    from slaunch import templates

    folder = prepare(cluster, {**SIZES, "mp_degree": 2, "micro_batch_size": [4], "run_best": True})
    options = ["-N4", "--gpus-per-node=2", "-o", "out", "--time=10", templates.path("tune")]
    done = cluster.run(["sbatch", "--parsable", "--wait", *options, "tuner.json", TUNED], cwd=folder)
    said = Path(folder, "out").read_text()
    assert done.returncode == 0, said
    assert "1 settings for 8 workers on 4 nodes" in said
    assert "rank 0 of 8, stage best" in said


def test_w52_no_trial_starts_that_the_allocation_would_cut(cluster: Cluster) -> None:
    """The job has fifty seconds, of which the end needs most: some trials run, then the search ends in order."""
    folder = prepare(cluster, {**SIZES, "mp_degree": 2, "micro_batch_size": [1, 2, 4, 8]})
    shorter = "scontrol update JobId=$SLURM_JOB_ID EndTime=now+50seconds"
    job = cluster.sbatch(
        f"#!/bin/bash\n{shorter} || exit\n{' '.join(command('--seconds', '14'))}\n",
        "-N4",
        "--ntasks-per-node=2",
        "--time=1",
        cwd=folder,
        timeout=120,
    )
    assert job.code == 77, job.output
    assert job.state == "FAILED", "by its own exit code, not by Slurm's time limit"
    assert "the allocation's time is nearly over" in job.output
    assert "best so far: trial" in job.output
    assert 1 <= len(journal(folder, "trial")) <= 3
