"""Real jobs that are cut short in every way that Slurm knows: they save, go back into the queue, and go on from their step.

All of them run side by side in one fixture; each test looks at one. Slurm holds a requeued job back for two minutes, which is
not waited for, and enforces time limits within half a minute.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass, field

import pytest
from support.cluster import ENDED, Cluster
from support.jobs import PROGRAMS, folder_in

TRAINING = f"{PROGRAMS}/saving.py"
PATIENCE_S = 240
LATE_S = 4.0
"""Word of the end of a job's first run must not reach Slurm when the second one runs: that is what it holds jobs back for."""
pytestmark = pytest.mark.timeout(PATIENCE_S + 60)
REST = "--ntasks-per-node=1", "-c1", "--mem-per-cpu=100", "--open-mode=append"
NEAR = "-xn3,n4"  # the other two nodes are for the job that is preempted


@dataclass
class Run:
    """One job of the batch, and what has become of it."""

    cluster: Cluster
    name: str
    script: str
    options: tuple[str, ...]
    args: tuple[str, ...] = ()
    folder: str = ""
    job: str = ""
    states: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    since: float = 0.0

    def submit(self) -> None:
        self.folder = folder_in(self.cluster.scratch)
        with open(f"{self.folder}/job.sh", "w") as file:
            words = {"training": " ".join((TRAINING, self.folder, *self.args)), "folder": self.folder}
            file.write(f"#!/bin/bash\n{self.script.format(**words)}\n")
        output = f"{self.folder}/out"
        command = ["sbatch", "--parsable", "-o", output, "-J", self.name, *REST, *self.options, f"{self.folder}/job.sh"]
        done = self.cluster.run(command)
        assert done.returncode == 0, done.stderr
        self.job = done.stdout.strip()

    def read(self, name: str) -> str:
        path = f"{self.folder}/{name}"
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def numbers(self, name: str) -> list[list[str]]:
        return [line.split() for line in self.read(name).splitlines()]

    def going(self) -> bool:
        """Its workers have done some steps."""
        return len(self.numbers("steps.0")) > 3

    def follow(self, id: str) -> None:
        """Note its state; let it start again soon."""
        self.facts = self.cluster.job(id)
        state = self.facts.get("JobState", "?")
        if self.states[-1:] != [state]:
            self.states.append(state)
            self.since = time.monotonic()
        if state == "PENDING" and self.facts.get("Reason") == "BeginTime" and time.monotonic() > self.since + LATE_S:
            self.cluster.run(["scontrol", "update", f"jobid={id}", "StartTime=now"])

    def ledger(self, id: str = "") -> dict[str, int]:
        with open(f"{self.folder}/logs/requeue.{id or self.job}.json") as file:
            found: dict[str, int] = json.load(file)
        return {name: count for name, count in found.items() if name in ("preempt", "timeout", "failure", "other") and count}

    def exactly_once(self, world: int) -> None:
        """Every worker has done each step once, over all runs, and all the same ones."""
        for rank in range(world):
            done = [int(words[0]) for words in self.numbers(f"steps.{rank}")]
            assert done == list(range(1, len(done) + 1)), f"{self.name}, rank {rank}: {done}\n{self.read('out')}"
        assert len({self.read(f"steps.{rank}") for rank in range(world)}) == 1
        assert [words[0] for words in self.numbers("done.0")] == [str(len(self.numbers("runs.0")) - 1)], self.read("out")
        assert sum(map(int, self.read("steps.0").split())) == sum(range(int(self.numbers("done.0")[0][1]) + 1))


SLAUNCH = "slaunch {more} --nproc-per-node {workers} --requeue {wish} --grace 3 --log-dir {{folder}}/logs {{training}}"


def batch(wish: str = "yes", more: str = "", workers: int = 1) -> str:
    return "exec " + SLAUNCH.format(wish=wish, more=more, workers=workers)


def step(wish: str = "yes", more: str = "") -> str:
    return "srun " + SLAUNCH.format(wish=wish, more=more, workers=1)


OTHER_TASK = """[ $SLURM_ARRAY_TASK_ID -eq 5 ] || {{
    echo started >>{folder}/other
    until [ -e {folder}/done.0 ]; do sleep 0.2; done
    exit 0
}}
"""
"""Of an array's tasks the last one has the number of the whole array: it alone must go back."""


def all_of(cluster: Cluster) -> dict[str, Run]:
    near = "-N2", NEAR
    runs = [
        Run(cluster, "usr2", batch(), (*near, "--time=1", "--signal=USR2@20")),
        Run(cluster, "b_usr1", batch(), (*near, "--time=1", "--signal=B:USR1@20")),
        Run(cluster, "warned", step(more="--warn-before-end 50 --warn-signal none"), (*near, "--time=1")),
        Run(cluster, "limit", step(), (*near, "--time=10")),
        Run(cluster, "final", "slaunch --nproc-per-node 1 --log-dir {folder}/logs {training}", (*near, "--time=10")),
        Run(cluster, "requeued", batch(), (*near, "--time=10")),
        Run(cluster, "cancelled", batch(), ("-N1", NEAR, "--time=10")),
        Run(cluster, "b_term", batch(), ("-N1", NEAR, "--time=30")),
        Run(cluster, "crashes", step("failure=1"), ("-N1", NEAR, "--time=10"), ("20", "7")),
        Run(cluster, "refused", batch("failure=1"), ("-N1", NEAR, "--time=10", "--no-requeue"), ("20", "7")),
        Run(cluster, "unasked", step("failure=1"), ("-N1", NEAR, "--time=10", "--no-requeue"), ("20", "7")),
        Run(cluster, "array", OTHER_TASK + step(), (*near, "--time=10", "--array=3,5")),
        Run(cluster, "het", batch(), ("-N1", NEAR, "--time=10", ":", *REST[:-1], "-N1", NEAR)),
        Run(cluster, "preempted", batch(workers=2), ("-N1", "-wn3", "-c4", "--time=10")),
        Run(cluster, "graced", batch(workers=2), ("-N1", "-wn3", "-c4", "--time=10", "-pgrace")),
        Run(cluster, "node", batch(workers=2), ("-N1", "-wn4", "--exclusive", "--time=10")),
    ]
    return {run.name: run for run in runs}


@pytest.fixture(scope="module")
def runs(_cluster: Cluster) -> dict[str, Run]:
    """Everything at once; at the end all jobs have ended."""
    grace = "PartitionName=grace", "Nodes=ALL", "PriorityTier=1", "PreemptMode=CANCEL", "GraceTime=60", "DefMemPerCPU=100"
    assert _cluster.root("ctl", "scontrol", "create", *grace).returncode == 0
    runs = all_of(_cluster)
    for run in runs.values():
        run.submit()
    act(_cluster, runs)
    _cluster.wait_until(lambda: ended(runs) or runs["node"].states[-1] != "RUNNING", PATIENCE_S, lambda: told(runs))
    _cluster.heal("n4")
    _cluster.wait_until(lambda: ended(runs), PATIENCE_S, lambda: told(runs))
    _cluster.root("ctl", "scontrol", "delete", "PartitionName=grace")
    left = _cluster.clean()
    assert not left, "left on the cluster:\n" + "\n".join(left)
    return runs


def act(cluster: Cluster, runs: dict[str, Run]) -> None:
    """Do to each what it is about, once it runs."""
    deeds = {
        "limit": ["scontrol", "update", "jobid={}", "EndTime=now+2seconds"],
        "final": ["scontrol", "update", "jobid={}", "EndTime=now+2seconds"],
        "requeued": ["scontrol", "requeue", "{}"],
        "cancelled": ["scancel", "{}"],
        "b_term": ["scancel", "--batch", "--signal=TERM", "{}"],
        "array": ["scancel", "--signal=USR2", "{}_5"],
        "het": ["scancel", "--signal=USR2", "{}"],
        "preempted": ["sbatch", "-purgent", "-N1", "-wn3", "--exclusive", "--time=1", "-o/dev/null", "--wrap=sleep 1"],
        "node": [],
    }
    deadline = time.monotonic() + PATIENCE_S
    while deeds:
        assert time.monotonic() < deadline, told(runs)
        for name in deeds:
            runs[name].follow(runs[name].job)
            assert runs[name].states[-1] not in ENDED, told(runs)
        for name in [name for name in deeds if runs[name].going() and (name != "preempted" or runs["graced"].going())]:
            command = [word.format(runs[name].job) for word in deeds.pop(name)]
            if name == "node":
                cluster.fail("n4")
            else:
                done = cluster.run(command)
                assert done.returncode == 0, done.stderr
        time.sleep(0.1)


def ended(runs: dict[str, Run]) -> bool:
    for run in runs.values():
        if run.states[-1:] == [] or run.states[-1] not in ENDED:
            run.follow(f"{run.job}_5" if run.name == "array" else run.job)
    return all(run.states[-1] in ENDED for run in runs.values())


def told(runs: dict[str, Run]) -> str:
    return "\n".join(f"{run.name}: {run.states} {run.numbers('runs.0')}\n{run.read('out')}" for run in runs.values())


@pytest.mark.parametrize("name", ["usr2", "b_usr1", "warned", "limit", "array", "het"])
def test_p78_p82_p84_p85_a_job_whose_time_runs_out_goes_on_from_its_step(runs: dict[str, Run], name: str) -> None:
    """By Slurm's signal to the steps or to the batch script, by slaunch's own warning, by the limit itself, or by hand."""
    run = runs[name]
    run.exactly_once(2)
    assert run.states[-1] == "COMPLETED", run.read("out")
    assert run.ledger(f"{run.job}_5" if name == "array" else "") == {"timeout": len(run.numbers("runs.0")) - 1}
    saved = run.numbers("saved.0")
    reasons = {"usr2": "SIGUSR2", "b_usr1": "SIGUSR1", "warned": "time", "limit": "stop"}
    assert saved[0][2] == reasons.get(name, "SIGUSR2")
    assert "queue:  the job goes back into the queue (1. time at the time limit)" in run.read("out")
    if name in ("usr2", "warned"):
        assert 0 < float(saved[0][3]) < 60, "the time left is known"
    if name == "array":
        assert run.read("other") == "started\n", "the other task was not put back"
    if name == "limit":
        assert "reason: the job reached its time limit of" in run.read("out")


def test_p86_p88_a_preempted_job_and_a_requeued_one_go_on_from_their_step(runs: dict[str, Run]) -> None:
    for name, counts, words in (
        ("preempted", {"preempt": 1}, "the job was preempted; Slurm has put it back into the queue"),
        ("requeued", {"other": 1}, "the job was put back into the queue"),
    ):
        run = runs[name]
        run.exactly_once(2)
        assert run.states[-1] == "COMPLETED", run.read("out")
        assert len(run.numbers("runs.0")) == 2
        assert run.ledger() == counts
        assert f"queue:  {words}" in run.read("out")
        assert "Traceback" not in run.read("out")


def test_p86_a_job_that_slurm_would_cancel_after_a_grace_time_is_put_back(runs: dict[str, Run]) -> None:
    """PreemptMode=CANCEL: without slaunch it would be gone."""
    run = runs["graced"]
    run.exactly_once(2)
    assert run.states[-1] == "COMPLETED", run.read("out")
    assert run.ledger() == {"preempt": 1}
    assert "reason: the job is preempted" in run.read("out")
    assert "queue:  the job goes back into the queue (1. time after a preemption)" in run.read("out")


def test_a_job_whose_node_dies_is_put_back_by_slurm_and_that_is_counted(runs: dict[str, Run]) -> None:
    """Nobody was left to save: it begins at its last checkpoint, here at the start."""
    run = runs["node"]
    assert run.states[-1] == "COMPLETED", run.read("out")
    assert run.numbers("runs.0") == [["0", "0"], ["1", "0"]]
    assert run.ledger() == {"other": 1}


def test_p82_scancel_is_final_and_workers_can_save(runs: dict[str, Run]) -> None:
    run = runs["cancelled"]
    assert run.states[-1] == "CANCELLED"
    assert run.numbers("saved.0")[0][2] == "stop"
    assert "reason: the job was cancelled" in run.read("out")
    assert run.ledger() == {}


def test_p82_a_job_that_reaches_its_time_limit_says_so(runs: dict[str, Run]) -> None:
    run = runs["final"]
    assert run.states[-1] == "TIMEOUT"
    assert "stopped by SIGTERM" in run.read("out")
    assert "reason: the job reached its time limit of" in run.read("out")


def test_p78_p83_a_sigterm_to_the_batch_script_ends_the_job_in_good_order(runs: dict[str, Run]) -> None:
    """With srun in the script's place it would kill the workers at once. Nothing follows: it may have been anybody's wish."""
    run = runs["b_term"]
    assert run.states[-1] == "FAILED"
    assert run.numbers("saved.0")[0][2] == "stop"
    assert "stopped by SIGTERM (exit code 143)" in run.read("out")
    assert run.ledger() == {}


def test_p85_what_slurm_says_of_a_job_that_it_does_not_take_back_is_an_error(runs: dict[str, Run]) -> None:
    """Whether slaunch in the batch script has asked, or the agent."""
    for run in (runs["refused"], runs["unasked"]):
        said = run.read("out")
        assert run.states[-1] == "FAILED"
        assert "slaunch: cannot put the job back into the queue\n  seen: `scontrol requeue" in said
        assert f" {run.job}`: Requested operation is presently disabled" in said
        assert "\n  do:   submit it by `sbatch --requeue`" in said


def test_p87_a_program_that_fails_goes_back_as_often_as_asked_for(runs: dict[str, Run]) -> None:
    run = runs["crashes"]
    assert run.states[-1] == "FAILED"
    assert run.facts["ExitCode"] == "7:0"
    assert len(run.numbers("runs.0")) == 2
    assert run.ledger() == {"failure": 1}
    assert "queue:  no requeue: all 1 after a failure are used up" in run.read("out")


def test_p80_a_request_to_save_that_comes_while_the_nodes_meet_waits_for_the_workers(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    late = f"if [ $SLURM_PROCID = 1 ]; then until [ -e {folder}/go ]; do sleep 0.1; done; fi; exec "
    slaunch = f"slaunch --nproc-per-node 1 --rendezvous slurm --log-dir {folder}/logs {TRAINING} {folder}"
    process = cluster.start(["srun", "-N2", "--ntasks-per-node=1", "bash", "-c", late + slaunch], env={"PLACE": folder})

    def meets() -> list[int]:
        """The first agent, once it holds such signals back."""
        here = [p.pid for p in cluster.processes(f"PLACE={folder}") if p.node == "n1" and "--rendezvous" in p.argv]
        return [pid for pid in here if blocks(pid, signal.SIGUSR2)]

    cluster.wait_until(meets, 60, lambda: str(cluster.processes()))
    os.kill(meets()[0], signal.SIGUSR2)
    with open(f"{folder}/go", "w"):
        pass
    done = cluster.wait(process, 60)
    assert done.returncode == 0, done.stderr
    assert "asked:  to save by SIGUSR2, which arrived on n1" in done.stderr
    assert [os.path.exists(f"{folder}/saved.{rank}") for rank in range(2)] == [True, True]


def blocks(pid: int, number: int) -> bool:
    with open(f"/proc/{pid}/status") as file:
        masks = dict(line.split(":", 1) for line in file)
    return bool(int(masks["SigBlk"], 16) >> (number - 1) & 1)
