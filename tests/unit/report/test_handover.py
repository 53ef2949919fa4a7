"""Whether a job goes back into the queue, by how its run ended and what Slurm says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slaunch.agent.policy import COMPLETE
from slaunch.agent.values import Failure, RunReport, Stopped, Verdict
from slaunch.options import Options, Program
from slaunch.report.handover import Handover, decide
from slaunch.slurm.requeue import Ledger
from slaunch.slurm.why import Why

USR2 = Stopped(12, 0, "n1", "", 1.0)
SAVED = Verdict("success", 0, asked=USR2, progress=40)
TERM = Verdict("signal", 143, stopped=Stopped(15, 0, "n1", "", 1.0))
CRASH = Verdict("failure", 7, Failure(0, 0, 0, "n1", 1, 7, 0, 1.0))
NO_PROGRAM = Verdict("failure", 127, Failure(0, 0, 0, "n1", 1, 127, 0, 1.0, "start"))
WISHES = Options(Program("x.py"), requeue=(-1, -1, 2), no_restart_codes=(42,))
NOTHING = Why(left_s=100_000.0)
QUEUED = Why("preemption", "the job was preempted; Slurm has put it back into the queue", True)


def ended(verdict: Verdict) -> RunReport:
    return RunReport(verdict, verdict.code, True, "7", 0, 8, 4, "/logs", 0.0, 9.0)


@pytest.mark.parametrize(
    ("verdict", "why", "counts", "ask"),
    [
        (Verdict("success", 0), NOTHING, "", False),
        (SAVED, NOTHING, "timeout", True),
        (replace(SAVED, progress=COMPLETE), NOTHING, "", False),
        (SAVED, Why("preemption", left_s=500.0), "preempt", True),  # within its grace time
        (SAVED, Why("cancel"), "", False),
        (TERM, NOTHING, "", False),  # somebody's wish
        (TERM, Why(left_s=200.0), "timeout", True),  # --signal=TERM@300
        (TERM, Why("timeout"), "timeout", True),
        (TERM, Why("cancel"), "", False),
        (TERM, QUEUED, "preempt", False),  # Slurm does it
        (TERM, Why("requeue", "put back", True), "other", False),
        (TERM, Why("node", "a node failed", True), "other", False),
        (CRASH, NOTHING, "failure", True),
        (replace(CRASH, code=42), NOTHING, "", False),
        (replace(CRASH, code=85), NOTHING, "timeout", True),  # the program asks for it
        (NO_PROGRAM, NOTHING, "", False),
        (Verdict("lost", 75), NOTHING, "failure", True),
        (Verdict("hang", 76), NOTHING, "failure", True),
        (Verdict("time", 124), NOTHING, "", False),
        (Verdict("start", 73), NOTHING, "", False),
    ],
)
def test_p86_p87_ends_are_told_apart(verdict: Verdict, why: Why, counts: str, ask: bool) -> None:
    before = Ledger("7", preempt=3)
    hand = decide(ended(verdict), why, before, WISHES, 3)
    more = {kind: getattr(hand.ledger, kind) - getattr(before, kind) for kind in ("preempt", "timeout", "failure", "other")}
    assert {kind for kind, count in more.items() if count} == ({counts} if counts else set())
    assert hand.ask is ask
    assert hand.ledger.asked == (3 if ask else -1)
    assert bool(hand.text) is bool(counts)


@pytest.mark.parametrize("verdict", [Verdict("lost", 75, parted=True), replace(CRASH, parted=True)])
def test_p86_a_part_that_is_cut_off_does_not_take_the_job_from_the_others(verdict: Verdict) -> None:
    """Nobody goes on where all nodes are needed."""
    before = Ledger("7", preempt=3)
    some, all_nodes = replace(WISHES, nnodes=(3, 4)), replace(WISHES, nnodes=(4, 4))
    assert decide(ended(verdict), NOTHING, before, some, 3) == Handover(before)
    assert decide(ended(verdict), NOTHING, before, all_nodes, 3).ask
    assert decide(ended(replace(verdict, parted=False)), NOTHING, before, some, 3).ask


def test_p86_a_run_that_ended_early_is_no_success_though_nothing_follows() -> None:
    hand = decide(ended(SAVED), NOTHING, Ledger("7", timeout=1), replace(WISHES, requeue=(-1, 1, 0)), 1)
    assert (hand.ask, hand.unfinished, hand.text) == (False, True, "no requeue: all 1 at the time limit are used up")


def test_p87_runs_without_progress_end_it() -> None:
    ledger = Ledger("7", timeout=2, progress=40, idle=2)
    assert "no progress in 3 runs" in decide(ended(SAVED), NOTHING, ledger, WISHES, 2).text
    assert decide(ended(replace(SAVED, progress=41)), NOTHING, ledger, WISHES, 2).ask
