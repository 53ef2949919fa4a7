"""How often a job may go back into the queue, and what is remembered of it."""

from __future__ import annotations

from pathlib import Path

from slaunch.slurm.requeue import ANY, Ledger, at_start, counted, path_of, read, refusal, with_run, write

YES = (ANY, ANY, 0)


def test_p87_each_kind_has_its_own_budget() -> None:
    used = Ledger("7", preempt=90, timeout=2, failure=1)
    assert refusal("preempt", used, (ANY, 2, 2), 0) == ""
    assert refusal("timeout", used, (ANY, 2, 2), 0) == "no requeue: all 2 at the time limit are used up"
    assert refusal("failure", used, (ANY, 2, 2), 0) == ""
    assert refusal("failure", used, YES, 0) == "no requeue: none after a failure is asked for"


def test_p87_no_requeue_without_progress() -> None:
    ledger = Ledger("7")
    for step in (10, 20, 20, 20, 20):
        assert refusal("timeout", ledger, YES, 0) == ""
        ledger = with_run(ledger, "timeout", step)
    assert ledger.progress == 20 and refusal("timeout", ledger, YES, 0) == "no requeue: no progress in 3 runs"
    assert refusal("preempt", ledger, YES, 0) == ""  # that was nobody's fault
    assert refusal("timeout", ledger, YES, 4) == ""
    assert refusal("timeout", with_run(ledger, "timeout", 21), YES, 0) == ""


def test_a_program_that_tells_no_progress_is_stopped_only_if_the_user_wants_that() -> None:
    ledger = Ledger("7", idle=9)
    assert refusal("timeout", ledger, YES, 0) == ""
    assert refusal("timeout", ledger, YES, 9) == "no requeue: no progress in 9 runs"


def test_preemptions_do_not_count_as_runs_without_progress() -> None:
    assert with_run(Ledger("7", progress=5), "preempt", 5).idle == 0


def test_p87_what_slurm_did_by_itself_is_counted_and_a_lost_file_counts_as_failures() -> None:
    assert at_start(Ledger("7", preempt=1, timeout=1, asked=1), "7", 5) == Ledger("7", preempt=1, timeout=1, other=3)
    assert at_start(None, "7", 4) == Ledger("7", failure=4)
    assert at_start(Ledger("7", timeout=3, progress=9), "7", 0) == Ledger("7")  # another job of the same number, long ago


def test_p84_an_array_s_tasks_have_files_of_their_own(tmp_path: Path) -> None:
    paths = [path_of(f"{tmp_path}/new", job) for job in ("41", "41_7", "41_8")]
    for path, job in zip(paths, ("41", "41_7", "41_8"), strict=True):
        assert write(path, counted(Ledger(job), "timeout", 0)) == ""
        assert read(path, job) == Ledger(job, timeout=1, asked=0)
    assert len(set(paths)) == 3
    assert read(paths[0], "42") is None


def test_a_file_that_cannot_be_written_or_read_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{")
    assert "was not written: File exists" in write(f"{tmp_path}/file/requeue.7.json", Ledger("7"))
    assert read(f"{tmp_path}/file", "7") is None
    (tmp_path / "file").write_text('{"job": "7", "strange": 1}')
    assert read(f"{tmp_path}/file", "7") is None
