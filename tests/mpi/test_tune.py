"""The tuner in an allocation without Slurm: each trial is an mpirun over the hosts of a host file."""

import csv
import json
import os
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.jobs import PROGRAMS, folder_in
from support.studies import raw

TUNED = os.path.join(PROGRAMS, "tuned.py")
RSH = """#!/bin/bash
# A remote shell, as ssh would be one: what it starts knows nothing of Slurm.
while [[ $1 == -* ]]; do shift; done
host=$1; shift
clear='for name in ${!SLURM@} ${!SRUN@} ${!PMI@}; do unset $name; done'
read -r SLURM_JOB_ID SLURM_CONF <"$(dirname "$0")/job"
export SLURM_CONF
exec srun --jobid=$SLURM_JOB_ID --overlap --quiet -N1 -n1 -w "$host" --mem=0 --mpi=none bash -c "$clear; $*"
"""
KEYS = {"dp_degree": "auto", "micro_batch_size": [2, 4, 8], "assume_slower": False, "max_time_per_task": 60, "warmup_time": 5}


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_f326_trials_by_mpirun_over_the_hosts_of_a_file(cluster: Cluster, kind: str) -> None:
    """The first setting hangs on the last rank, another one lacks memory there; the best is run."""
    folder = folder_in(cluster.scratch)
    Path(folder, "tuner.json").write_text(json.dumps(raw(model={"global_batch_size": 48}, **KEYS)))
    Path(folder, "hosts").write_text("n2\nn1\nn4\n")
    tools = Path(folder, "bin")
    tools.mkdir()
    tools.chmod(0o777)
    for name, text in (("mpirun", f'#!/bin/sh\nexec /usr/bin/mpirun.{kind} "$@"\n'), ("rsh", RSH)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    env = {"PATH": f"{tools}:{cluster.path}", "HOME": folder, "USER": "hpc", "SLAUNCH_HOSTFILE": "hosts"}
    env |= {"OMPI_MCA_plm_rsh_agent": f"{tools}/rsh", "HYDRA_LAUNCHER_EXEC": f"{tools}/rsh", "HYDRA_LAUNCHER": "ssh"}
    words = ["env", "-i", *(f"{name}={value}" for name, value in env.items())]
    words += ["slaunch", "tune", "tuner.json", "--nproc-per-node", "2", TUNED]
    words += ["--when", "micro_batch_size=8:oom@5", "--when", "micro_batch_size=2:hang@5"]
    script = f"echo $SLURM_JOB_ID $SLURM_CONF >{tools}/job; exec {' '.join(words)}"
    done = cluster.run(["salloc", "-Q", "-N4", "bash", "-c", script], cwd=folder, timeout=150)
    assert done.returncode == 0, done.stderr
    with open(f"{folder}/tuner_history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["micro_batch_size"], row["status"]) for row in rows] == [
        ("4", "ok"),
        ("2", "timeout"),
        ("8", "oom"),
    ]
    assert "3 settings for 6 workers on 3 nodes" in done.stderr
    assert "rank 0 of 6, stage best" in done.stdout
    report = json.loads(Path(folder, "best_cfg", "report.json").read_text())
    assert report["verdict"]["outcome"] == "success"
    assert len(list(Path(folder, "best_cfg").glob("workerlog.*"))) == 6
