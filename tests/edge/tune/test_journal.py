"""The journal on disk, and what is taken from it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.studies import ONE_NODE, make, setting

from slaunch.errors import OutputError, UsageError
from slaunch.options import Options, Program
from slaunch.tune.history.fingerprint import fingerprint, versions
from slaunch.tune.history.journal import Journal, read_record
from slaunch.tune.session import files_for, known_results, last_number
from slaunch.tune.trial.leftovers import unfinished
from slaunch.tune.trial.values import Record


def record(number: int, status: str = "ok", print_: str = "f", **fields: object) -> dict[str, object]:
    from slaunch.frozen import asdict

    given = {"setting": setting(micro_batch_size=number), "metric": 1.5 if status == "ok" else None, **fields}
    return asdict(Record(number, "j", "/t", status=status, fingerprint=print_, **given))  # type: ignore[arg-type]


def test_w58_events_are_read_back_in_order(tmp_path: Path) -> None:
    path = str(tmp_path / "j.jsonl")
    with Journal(path) as journal:
        assert journal.events == []
        journal.append("study", config="ü")
        journal.append("trial", **record(1))
    with Journal(path) as journal:
        assert [event["event"] for event in journal.events] == ["study", "trial"]
        assert read_record(journal.events[1]) == Record(**record(1))  # type: ignore[arg-type]
        journal.append("end")
    with Journal(path) as journal:
        assert [event["event"] for event in journal.events] == ["study", "trial", "end"]


@pytest.mark.parametrize("cut", range(1, 40))
def test_w58_a_torn_last_line_is_cut_off_at_any_place(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(str(path)) as journal:
        journal.append("study", config="x")
        journal.append("trial", **record(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Journal(str(path)) as journal:
        assert [event["event"] for event in journal.events] == ["study"]
        assert journal.torn == len(whole.splitlines()[1]) + 1 - cut
        journal.append("trial", **record(1))
    with Journal(str(path)) as journal:
        assert [event["event"] for event in journal.events] == ["study", "trial"]


def test_a_file_that_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text('{"a": 1}\n{"event": "x"}\n')
    with pytest.raises(UsageError, match="line 1"):
        Journal(str(path))
    with pytest.raises(OutputError):
        Journal(str(tmp_path / "none" / "j.jsonl"))


def test_two_tuners_do_not_share_a_journal(tmp_path: Path) -> None:
    path = str(tmp_path / "j.jsonl")
    code = f"from slaunch.tune.history.journal import Journal\nJournal({path!r})"
    with Journal(path):
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        waiting = subprocess.Popen([sys.executable, "-c", code.replace(")", ", 60)")])
        assert waiting.poll() is None
    assert "another tuner is using" in other.stderr
    assert waiting.wait(timeout=60) == 0, "it waits, and gets it when the first one has ended"


@pytest.mark.parametrize("point", ["tune.before.trial1", "tune.after.trial1"])
def test_w58_an_event_is_there_whole_or_not_at_all_when_the_tuner_is_killed(tmp_path: Path, point: str) -> None:
    path = str(tmp_path / "j.jsonl")
    appends = "\n".join(f"j.append('trial', number={number})" for number in (1, 2))
    code = f"from slaunch.tune.history.journal import Journal\nj = Journal({path!r})\n{appends}"
    env = {**os.environ, "SLAUNCH_FAILPOINTS": f"{point}=kill"}
    subprocess.run([sys.executable, "-c", code], env=env, timeout=60, check=False)
    with Journal(path) as journal:
        assert [event["number"] for event in journal.events] == ([] if point == "tune.before.trial1" else [1])


# -- what is known ------------------------------------------------------------------------------------------------------


def events(*given: dict[str, object]) -> list[dict[str, object]]:
    return [json.loads(json.dumps({"event": "trial", "time": 1, **each})) for each in given]


def test_f328_w53_results_of_the_same_program_are_known() -> None:
    found = known_results(events(record(1), record(2, print_="other"), record(1, "oom")), "f")
    assert [[(each.number, each.status) for each in group] for group in found.values()] == [[(1, "ok"), (1, "oom")]]


@pytest.mark.parametrize("status", ["infrastructure", "cancelled"])
def test_w53_failures_that_say_nothing_of_the_setting_are_tried_again(status: str) -> None:
    assert known_results(events(record(1, status)), "f") == {}


def test_numbers_go_on(tmp_path: Path) -> None:
    assert last_number([], str(tmp_path)) == 0
    (tmp_path / "Job7_GBS1").mkdir()
    assert last_number(events(record(3)), str(tmp_path)) == 7
    assert last_number(events(record(12)), str(tmp_path)) == 12
    assert files_for("/a/b.c.json").path("history.csv") == "/a/b_history.csv"


def test_the_trial_that_was_begun_and_not_ended() -> None:
    begun = {"event": "start", "number": 2}
    assert unfinished([*events(record(1)), begun]) == begun
    assert unfinished([begun, *events(record(2))]) is None
    assert unfinished([]) is None


# -- fingerprints -------------------------------------------------------------------------------------------------------


def test_f328_w53_what_a_result_depends_on(tmp_path: Path) -> None:
    script, config = tmp_path / "train.py", tmp_path / "model.yaml"
    script.write_text("1")
    config.write_text("a: 1")
    study = make(run_cmd={"mp_degree": [str(config), "a"]})

    def print_of(
        keys: object = study, args: tuple[str, ...] = ("--lr", "1"), cluster: object = ONE_NODE, **options: object
    ) -> str:
        return fingerprint(keys, cluster, Options(Program(str(script), args), **options))  # type: ignore[arg-type]

    first = print_of()
    assert first == print_of()
    others = {
        print_of(args=("--lr", "2")),
        print_of(keys=make(run_cmd={"mp_degree": [str(config), "a"]}, model={"num_layers": 4})),
        print_of(keys=make()),
        print_of(cluster=type(ONE_NODE)(1, 8, "H100")),
        print_of(nproc_per_node=3),
    }
    assert len(others) == 5
    assert first not in others
    script.write_text("2")
    second = print_of()
    config.write_text("a: 2")
    assert len({first, second, print_of()}) == 3
    assert print_of(keys=make(run_cmd={"mp_degree": [str(config), "a"]}, task_limit=3, mp_degree="auto")) == print_of()


def test_w53_versions_are_part_of_it() -> None:
    assert versions(("pytest", "no-such-package")) == {"pytest": pytest.__version__}
