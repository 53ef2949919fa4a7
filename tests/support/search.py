"""A search over the GPT example's parallelism in one Slurm job, with everything that may go wrong on the way.

Trials lack memory, one hangs, one crashes. While others are at work the tuner is killed, the job is put back into the queue, and
a node dies. In the end the best setting has to be found and run.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.cluster import Cluster, Process
from support.jobs import EXAMPLES, PROGRAMS, folder_in

TRAIN = os.path.join(EXAMPLES, "gpt", "train.py")

NODES = 4
SETTINGS = 26
BEST = "1-4-1-2-0"
"""Four pipeline stages: the fastest, as all others are slowed down."""
HANGS, CRASHES = "4-1-1-2-1", "4-1-1-4-1"
KILLED, REQUEUED, LOST = "2-1-2-2-1", "2-2-1-2-0", "2-1-1-4-1"
"""Settings at whose first trial the tuner is killed, the job requeued, a node lost."""
BUDGET_MIB = 4.6
FINAL = ("ok", "oom", "error", "timeout")
SCRIPT = """#!/bin/bash
export MARK={folder}
until {command}; code=$?; [ $code != 137 ]; do echo "the tuner was killed: once more"; done
exit $code
"""


@dataclass
class Search:
    """One such search.

    Attributes:
        real: the settings that run the example; "all" of them, or some, and the rest are made-up figures.
        limits: keys of the configuration for the time of trials, in seconds.
        say: told what happens.
    """

    cluster: Cluster
    real: Sequence[str]
    limits: dict[str, float]
    say: Callable[[str], None] = lambda line: None
    folder: str = ""
    job: str = ""
    began: float = field(default_factory=time.monotonic)

    # -- the search, and what is done to it -----------------------------------------------------------------------------

    def run(self, timeout: float) -> None:
        """Submit it, let everything happen, and wait for its end."""
        self.folder = folder_in(self.cluster.scratch)
        Path(self.folder, "tuner.json").write_text(json.dumps(configuration() | self.limits, indent=2))
        Path(self.folder, "job.sh").write_text(SCRIPT.format(folder=self.folder, command=" ".join(self.command())))
        options = [f"-N{NODES}", "--ntasks-per-node=1", "--requeue", "--open-mode=append", "-o", "out"]
        submitted = self.cluster.run(["sbatch", "--parsable", *options, "job.sh"], cwd=self.folder)
        assert submitted.returncode == 0, submitted.stderr
        self.job = submitted.stdout.strip()
        try:
            self.at(KILLED, self.kill, timeout)
            self.at(REQUEUED, self.requeue, timeout)
            self.at(LOST, self.lose, timeout)
            self.wait_for(lambda: self.facts()["JobState"] in ("COMPLETED", "FAILED"), timeout)
        finally:
            self.cluster.run(["scancel", self.job])

    def command(self) -> list[str]:
        """How the search is started, the first time and every other."""
        chosen = [word for key in self.real for word in ("--real", key)]
        waits = [word for key in (KILLED, REQUEUED, LOST) for word in ("--wait", key)]
        faults = ["--best", BEST, "--hang", HANGS, "--crash", f"{CRASHES}@2"]
        program = os.path.join(PROGRAMS, "searched.py")
        example = ["--memory-budget", str(BUDGET_MIB), "--steps", "2"]
        return ["slaunch", "tune", "tuner.json", "--nproc-per-node", "1", program, *chosen, *waits, *faults, *example]

    def at(self, key: str, act: Callable[[], None], timeout: float) -> None:
        """Do something as soon as all ranks of a setting's first trial are at work."""
        self.wait_for(lambda: len(list(Path(self.folder).glob(f"waits.{key}.*"))) == NODES, timeout)
        act()

    def kill(self) -> None:
        """The tuner alone is killed; the job's script starts it again."""
        self.tell(f"kill -9 of the tuner while it tries {KILLED}")
        os.kill(tuner_of(self.cluster, self.folder).pid, signal.SIGKILL)

    def requeue(self) -> None:
        """The user puts the job back into the queue."""
        self.tell(f"scontrol requeue while it tries {REQUEUED}")
        assert self.cluster.run(["scontrol", "requeue", self.job]).returncode == 0
        self.again(1)

    def lose(self) -> None:
        """A node dies: Slurm finds out by itself (SlurmdTimeout), and requeues the job. The node comes back after its repair.

        To set it down by hand would be faster, but then Slurm now and then refuses steps on it after its return.
        """
        self.tell(f"node n3 dies while it tries {LOST}")
        self.cluster.fail("n3")
        self.wait_for(lambda: self.facts()["JobState"] == "PENDING", 120)
        self.cluster.heal("n3")
        self.again(2)

    def again(self, times: int) -> None:
        """Let the requeued job start soon: Slurm gives it a begin time two minutes from now.

        Not at once, as a node's late word on the end of its first run would be taken for that of the next.
        """
        waits_s = []

        def running() -> bool:
            facts = self.facts()
            if facts["JobState"] == "PENDING":
                waits_s.append(time.monotonic())
            if facts["JobState"] == "PENDING" and waits_s[-1] > waits_s[0] + 4:
                self.cluster.run(["scontrol", "update", f"JobId={self.job}", "StartTime=now"])
            return facts["JobState"] == "RUNNING" and facts["Restarts"] == str(times)

        self.wait_for(running, 90)

    def tell(self, line: str) -> None:
        self.say(f"{time.monotonic() - self.began:6.1f} s  {line}")

    # -- what it left ---------------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, str]:
        return self.cluster.job(self.job)

    def said(self) -> str:
        return Path(self.folder, "out").read_text(errors="replace")

    def wait_for(self, true: Callable[[], object], timeout: float) -> None:
        def otherwise() -> str:
            return f"job {self.job} is {self.facts()['JobState']}: {self.said()[-3000:]}"

        def done() -> bool:
            assert self.facts()["JobState"] != "FAILED", otherwise()
            return bool(true())

        self.cluster.wait_until(done, timeout, otherwise)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The journal's events of a kind, each with the key of its setting."""
        lines = map(json.loads, Path(self.folder, "tuner_journal.jsonl").read_text().splitlines())
        return [{**event, "key": key_of(event["setting"])} for event in lines if event["event"] == kind]

    def results(self) -> dict[str, dict[str, Any]]:
        """The one result of each setting that was tried to an end."""
        found = [event for event in self.events("trial") if event["status"] in FINAL]
        assert len({event["key"] for event in found}) == len(found), "a setting was tried twice to an end"
        return {event["key"]: event for event in found}

    def table(self) -> list[dict[str, str]]:
        with open(os.path.join(self.folder, "tuner_history.csv"), newline="") as file:
            return list(csv.DictReader(file))

    def losses(self) -> dict[str, float]:
        """The last loss of each setting that ran the example, and of the best run."""
        found = {}
        for path in Path(self.folder).glob("*/workerlog.*"):
            text = path.read_text(errors="replace")
            for loss in re.findall(r"final loss: ([\d.]+)", text):
                found[path.parent.name] = float(loss)
        return found

    def check(self) -> None:
        """Everything that has to be true in the end."""
        facts, said, results, table = self.facts(), self.said(), self.results(), self.table()
        assert (facts["JobState"], facts["ExitCode"], facts["Restarts"]) == ("COMPLETED", "0:0", "2"), said
        assert said.count("the tuner was killed: once more") == 1
        skipped = {event["key"] for event in self.events("skip")}
        assert len(results) + len(skipped - results.keys()) == SETTINGS
        self.check_faults(results)
        assert [row["tokens_per_sec"] for row in table] == sorted(
            (row["tokens_per_sec"] for row in table), key=lambda cell: -float(cell or "-inf")
        )
        assert {int(row["job_id"]): row["status"] for row in table} == {
            event["number"]: event["status"] for event in results.values()
        }
        self.check_best(results, table, said)

    def check_faults(self, results: dict[str, dict[str, Any]]) -> None:
        assert results[HANGS]["status"] == "timeout"
        assert (results[CRASHES]["status"], results[CRASHES]["detail"]) == (
            "error",
            "rank 2: exit code 1: RuntimeError: made to fail",
        )
        begun = self.events("start")
        assert all(event["step"].startswith("slaunch-tune-") and event["slurm_job"] == self.job for event in begun)
        starts = [key for _, key in {(event["number"], event["key"]) for event in begun}]
        for key in (KILLED, REQUEUED, LOST):
            assert starts.count(key) == 2, f"{key} was cut once, and tried once more"
            assert results[key]["status"] in ("ok", "oom")
        assert len(starts) == len(results) + 3, "what had a result was not tried again"
        lacking = [event for event in results.values() if event["status"] == "oom"]
        assert lacking
        for event in lacking:
            logs = "".join(path.read_text(errors="replace") for path in Path(event["folder"]).glob("workerlog.*"))
            assert "torch.OutOfMemoryError" in logs
        for event in results.values():
            assert Path(event["folder"], "report.json").exists() or event["status"] == "timeout"

    def check_best(self, results: dict[str, dict[str, Any]], table: list[dict[str, str]], said: str) -> None:
        assert int(table[0]["job_id"]) == results[BEST]["number"]
        assert self.events("best")[-1]["key"] == BEST
        best = json.loads(Path(self.folder, "tuner_best.json").read_text())
        assert key_of(best["trial"]) == BEST
        assert f"setting {BEST}, stage best" in said
        losses = self.losses()
        assert "best_cfg" in losses
        assert max(losses.values()) - min(losses.values()) < 0.001, "all settings train the same model"


def configuration() -> dict[str, Any]:
    """The example's configuration, for trials over nodes that are slow on purpose."""
    with open(os.path.join(os.path.dirname(TRAIN), "tuner.json")) as file:
        found: dict[str, Any] = json.load(file)
    found["run_cmd"].pop("run_best_stage")
    found["metric_cfg"]["warmup"] = 1
    return found | {"micro_batch_size": [2, 4], "enable_mp_prune": False, "assume_slower": False}


def key_of(setting: dict[str, Any]) -> str:
    """A setting as tests/programs/searched.py writes it."""
    degrees = (setting[name] for name in ("mp_degree", "pp_degree", "sharding_degree", "micro_batch_size"))
    return "-".join(map(str, (*degrees, int(setting["use_recompute"]))))


def tuner_of(cluster: Cluster, mark: str) -> Process:
    """The tuner itself: it is the oldest process with the mark."""
    found = [each for each in cluster.processes(f"MARK={mark}") if "tuner.json" in each.argv and "srun" not in each.argv[0]]
    python = [each for each in found if "salloc" not in each.argv[0] and each.argv[0] != "env"]
    return min(python, key=lambda process: process.pid)
