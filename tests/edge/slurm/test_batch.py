"""slaunch as srun's parent in a batch script, with tools of Slurm that note how they are called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slaunch.slurm.requeue import Ledger, write

PATIENCE_S = 30
SRUN = """#!/bin/sh
trap 'echo usr1 >>{folder}/calls' USR1
trap 'echo term >>{folder}/calls; exit 143' TERM
echo "batch side $SLAUNCH_BATCH_SIDE" >>{folder}/calls
touch {folder}/up
until [ -e {folder}/go ]; do sleep 0.05; done
exit 85
"""
SCONTROL = """#!/bin/sh
echo "scontrol $*" >>{folder}/calls
[ "$1" = requeue ] || echo JobId=41 JobState={state}
"""
SCANCEL = """#!/bin/sh
echo "scancel $*" >>{folder}/calls
touch {folder}/go
"""
MAIN = """
import sys
from slaunch.allocation.values import StepCall
from slaunch.slurm.batch import run_step
sys.exit(run_step(StepCall(("srun", "-N2"), {env!r}), "41_7", 2, {ledger!r}))
"""


class Batch:
    """The process, beside its tools. `tools`: which there are."""

    def __init__(self, folder: Path, state: str = "RUNNING", tools: tuple[str, ...] = ("srun", "scontrol", "scancel")) -> None:
        texts = {"srun": SRUN, "scontrol": SCONTROL, "scancel": SCANCEL}
        self.folder, self.ledger = folder, f"{folder}/requeue.41_7.json"
        for name in tools:
            (folder / name).write_text(texts[name].format(folder=folder, state=state))
            (folder / name).chmod(0o755)
        env = {**os.environ, "PATH": f"{folder}:/usr/bin:/bin" if "scontrol" in tools else f"{folder}:{self._plain()}"}
        main = MAIN.format(env=env, ledger=self.ledger)
        self.process = subprocess.Popen([sys.executable, "-c", main], env=env, stderr=subprocess.PIPE, text=True)
        self.wait_for("up")

    def _plain(self) -> str:
        """A folder with what a shell needs, and no Slurm."""
        plain = self.folder / "plain"
        plain.mkdir()
        for name in ("sleep", "touch"):
            (plain / name).symlink_to(f"/usr/bin/{name}")
        return str(plain)

    def wait_for(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, name
            time.sleep(0.02)

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said


@pytest.mark.parametrize(("asked", "calls"), [(2, ["scontrol requeue 41_7"]), (1, []), (-1, [])])
def test_p84_p85_it_asks_slurm_if_the_ledger_says_so_of_this_run(tmp_path: Path, asked: int, calls: list[str]) -> None:
    batch = Batch(tmp_path)
    assert write(batch.ledger, Ledger("41_7", timeout=1, asked=asked)) == ""
    (tmp_path / "go").touch()
    assert batch.end() == (85, "")
    assert batch.calls() == ["batch side 1", *calls]


def test_p78_signals_reach_srun_and_sigterm_the_steps(tmp_path: Path) -> None:
    batch = Batch(tmp_path)
    batch.process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + PATIENCE_S
    while "usr1" not in batch.calls():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    batch.process.send_signal(signal.SIGTERM)
    assert batch.end() == (85, "")
    assert batch.calls()[2:] == ["scontrol --oneliner show job 41_7", "scancel --quiet --signal=TERM 41_7"]


def test_p88_sigterm_of_a_job_that_slurm_ends_is_not_passed_on(tmp_path: Path) -> None:
    batch = Batch(tmp_path, state="COMPLETING")
    batch.process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while len(batch.calls()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (tmp_path / "go").touch()
    assert batch.end() == (85, "")
    assert batch.calls() == ["batch side 1", "scontrol --oneliner show job 41_7"]


def test_p85_without_tools_srun_gets_the_signal_and_what_failed_is_said(tmp_path: Path) -> None:
    batch = Batch(tmp_path, tools=("srun",))
    assert write(batch.ledger, Ledger("41_7", timeout=1, asked=2)) == ""
    batch.process.send_signal(signal.SIGTERM)
    code, said = batch.end()
    assert code == 143
    three = "slaunch: cannot put the job back into the queue\n  seen: no program scontrol on PATH\n  do:   add it to PATH"
    assert said.startswith(three)
    assert batch.calls() == ["batch side 1", "term"]
