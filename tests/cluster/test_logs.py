"""Logs, console and status of a job on four nodes, as they are seen from the login node while it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess

from support.cluster import Cluster
from support.jobs import folder_in

WORKER = """
import os, sys, time
rank, place = os.environ["RANK"], os.environ["PLACE"]
print(f"hello from {rank} on {os.uname().nodename}", flush=True)
print(f"trouble of {rank}", file=sys.stderr, flush=True)
if rank == "5":
    for i in range(100_000): print("noise", i)
    sys.stdout.flush()
while not os.path.exists(f"{place}/go"): time.sleep(0.05)
print(f"goodbye from {rank}")
"""
NODES, EACH = 4, 2
SCRIPT = """#!/bin/bash
cd "$PLACE"
slaunch --nproc-per-node 2 --tee all --tee-limit 400 --status-interval 0.5 --log-timestamps yes x.py
"""


def test_f319_w47_tee_over_all_nodes_and_status_from_the_login_node(cluster: Cluster) -> None:
    place = folder_in(cluster.scratch)
    with open(f"{place}/x.py", "w") as file:
        file.write(WORKER)
    with open(f"{place}/job.sh", "w") as file:
        file.write(SCRIPT)
    env = {"PLACE": place, "SLAUNCH_STATE_DIR": f"{place}/state"}
    submitted = cluster.run(["sbatch", "--parsable", f"-N{NODES}", "-c2", "-o", f"{place}/out", f"{place}/job.sh"], env=env)
    job = submitted.stdout.strip()
    assert job.isdigit(), submitted.stderr

    def status(*words: str) -> subprocess.CompletedProcess[str]:
        return cluster.run(["slaunch", "status", *words, job], env={"SLAUNCH_STATE_DIR": f"{place}/state"}, cwd="/tmp")

    def workers() -> list[dict[str, object]]:
        done = status("--json")
        state = json.loads(done.stdout)["status"] if done.returncode == 0 else None
        return [worker for node in (state or {"nodes": ()})["nodes"] for worker in node["workers"] if worker["last"]]

    try:
        cluster.wait_until(lambda: len(workers()) == NODES * EACH, 90, lambda: f"{status().stdout}\n{read(f'{place}/out')}")
        text = status().stdout
        assert re.search(rf"^job {job}\.0: running for ", text)
        assert f"8 workers on 4 nodes; logs in {place}/slaunch-logs/{job}.0" in text
        for node in cluster.nodes:
            assert len(re.findall(rf"^{node} +\d  running .*(hello|trouble|noise)", text, re.MULTILINE)) == EACH, text
        console = f"{place}/out"
        cluster.wait_until(lambda: read(console).count("hello from") == NODES * EACH, 30, lambda: read(console))
    finally:
        with open(f"{place}/go", "w"):
            pass
    cluster.wait_until(lambda: cluster.job(job)["JobState"] == "COMPLETED", 60, lambda: f"{cluster.job(job)}")
    shown = read(f"{place}/out")
    stamp = r"\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4}"
    for rank in range(NODES * EACH):
        assert re.search(rf"^\[{rank}\] {stamp} hello from {rank} on n{rank // EACH + 1}$", shown, re.MULTILINE), shown[-2000:]
    for rank in set(range(NODES * EACH)) - {4, 5}:  # the node of rank 5 has used up its share
        assert re.search(rf"^\[{rank}\] {stamp} goodbye from {rank}$", shown, re.MULTILINE), shown[-2000:]
    assert re.search(r"^\[5\] ---- slaunch: [\d,]+ lines were left out here; the whole output is in ", shown, re.MULTILINE)
    logs = f"{place}/slaunch-logs/{job}.0"
    assert read(f"{logs}/workerlog.5").count("noise") == 100_000
    assert status().stdout.startswith(f"job {job}.0: ended well at ")
    phases = [json.loads(line) for line in read(f"{logs}/agent.2.jsonl").splitlines() if '"phase"' in line]
    assert [phase["name"] for phase in phases][:3] == ["step", "interpreter", "allocation"]
    assert phases[-1]["name"] == "first output"
    (card,) = os.listdir(f"{place}/state/jobs")
    assert card.startswith(f"{job}.0")


def read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as file:
        return file.read()


def test_each_task_of_an_array_is_found_by_its_own_id(cluster: Cluster) -> None:
    place = folder_in(cluster.scratch)
    env = {"SLAUNCH_STATE_DIR": f"{place}/state"}
    script = f"#!/bin/bash\ncd {place}\nslaunch --nproc-per-node 1 -c 'import os; print(os.environ[\"RANK\"])'\n"
    job = cluster.sbatch(script, "--array=3,7", "-N1", "-c1", env=env, cwd=place)
    reports = [f"{place}/slaunch-logs/{job.id}_{task}.0/report.json" for task in (3, 7)]
    cluster.wait_until(lambda: all(map(os.path.exists, reports)), 60, lambda: f"{[*map(os.path.exists, reports)]}")
    one = cluster.run(["slaunch", "status", f"{job.id}_3"], env=env, cwd="/tmp").stdout
    assert one.startswith(f"job {job.id}_3.0: ended well at ")
    both = cluster.run(["slaunch", "status", job.id], env=env, cwd="/tmp").stdout
    assert {f"{job.id}_3.0", f"{job.id}_7.0"} == set(re.findall(rf"{job.id}_\d\.0", both.replace(f"{place}", "")))
