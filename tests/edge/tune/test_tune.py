"""`slaunch tune` from the command line to the run of the best, on this machine, for every algorithm."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.jobs import PROGRAMS
from support.studies import raw

TUNED = os.path.join(PROGRAMS, "tuned.py")
Done = subprocess.CompletedProcess[str]


def command(folder: Path, keys: dict[str, Any], args: list[str], workers: int) -> list[str]:
    """Write the configuration, and return the command that tunes by it."""
    config = folder / "tuner.json"
    config.write_text(json.dumps(raw(**keys)))
    return [sys.executable, "-m", "slaunch", "tune", str(config), "--nproc-per-node", str(workers), *args]


def tune(folder: Path, keys: dict[str, Any], *args: str, workers: int = 2, code: int = 0, **env: str) -> Done:
    words = command(folder, keys, list(args) or [TUNED], workers)
    done = subprocess.run(words, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, done.stderr
    return done


def history(folder: Path, name: str = "tuner_history.csv") -> list[dict[str, str]]:
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


def journal(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "tuner_journal.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


SIZES = {"dp_degree": "auto", "micro_batch_size": [1, 2, 4, 8], "assume_slower": False}


def test_f28_f155_f187_f253_f254_f258_f259_f260_f264_a_grid_search(tmp_path: Path) -> None:
    run_cmd = {
        "micro_batch_size": ["--mbs", ""],
        "search_stage": {"x": ["--trial", "1"]},
        "run_best_stage": {"x": ["--long", "1"]},
    }
    done = tune(tmp_path, {**SIZES, "run_cmd": run_cmd}, TUNED, "--when", "micro_batch_size=8:oom@1")
    rows = history(tmp_path)
    assert [(row["micro_batch_size"], row["status"]) for row in rows] == [("4", "ok"), ("2", "ok"), ("1", "ok"), ("8", "oom")]
    assert rows[0]["job_id"] == "3"
    assert rows[-1]["max_mem_usage"] == "OOM"
    assert float(rows[0]["exec_time"]) > 0
    assert float(rows[0]["max_peak_memory"]) == 2000
    folder = tmp_path / "Job3_GBS16_DP2_MP1_PP1_VPP1_Sharding1_Stage1_MBS4_Recompute_None_Granularity_None_AccStep2"
    assert "arguments ['--mbs', '4', '--trial', '1']" in (folder / "workerlog.0").read_text()
    assert "stage best, arguments ['--mbs', '4', '--long', '1']" in done.stdout
    assert "stage best" in (tmp_path / "best_cfg" / "workerlog.1").read_text()
    assert "at most" in done.stderr and "best so far: trial 3: tokens_per_sec 833.343" in done.stderr
    log = (tmp_path / "tuner_auto_tuner.log").read_text()
    assert re.search(r"^[\d: -]+ - auto_tuner - INFO - trial 1: DP2_MP1_", log, re.MULTILINE)
    assert json.loads((tmp_path / "tuner_best.json").read_text())["trial"]["micro_batch_size"] == 4


@pytest.mark.parametrize("option", [["--auto_tuner_json", "tuner.json"], ["--auto-tuner-json=tuner.json"]])
def test_f28_paddles_option(tmp_path: Path, option: list[str]) -> None:
    command(tmp_path, {**SIZES, "task_limit": 1}, [], 2)
    words = [sys.executable, "-m", "slaunch", "paddle", *option, "--nproc_per_node", "2", "--log_dir", "unused", TUNED]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
    assert "rank 0 of 2, stage best" in done.stdout
    assert (tmp_path / "best_cfg" / "report.json").exists()
    assert not (tmp_path / "unused").exists()


def test_f190_a_users_table_is_tried_to_its_end_and_the_search_ends_well(tmp_path: Path) -> None:
    head = "dp_degree,mp_degree,pp_degree,vpp_degree,micro_batch_size,sharding_degree,sharding_stage,"
    head += "use_recompute,recompute_granularity"
    (tmp_path / "rows.csv").write_text(f"{head}\n2,1,1,1,1,1,1,true,full\n1,2,1,1,4,1,1,False,\n1,2,1,1,4,1,1,False,\n")
    tune(tmp_path, {"search_algo": {"name": "customize"}, "configs_csv": str(tmp_path / "rows.csv"), "run_best": False})
    assert [(row["job_id"], row["use_recompute"]) for row in history(tmp_path)] == [("2", "False"), ("1", "True")]


def test_f186_errors_in_a_users_table_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("dp_degree,mp_degree,use_recompute\nx,1,maybe\n")
    keys = {"search_algo": {"name": "customize"}, "configs_csv": str(tmp_path / "rows.csv")}
    done = tune(tmp_path, keys, code=2)
    assert "line 2, dp_degree: 'x' is no whole number" in done.stderr
    assert "line 2, use_recompute: 'maybe' is neither true nor false" in done.stderr
    assert "line 2, pp_degree: ''" in done.stderr


def test_w57_a_random_search_is_repeatable(tmp_path: Path) -> None:
    orders = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        keys = {**SIZES, "search_algo": {"name": "random", "seed": 4}, "run_best": False, "task_limit": 3}
        tune(tmp_path / name, keys)
        orders.append([event["setting"]["micro_batch_size"] for event in journal(tmp_path / name, "trial")])
    assert orders[0] == orders[1] != [1, 2, 4]
    assert len(orders[0]) == 3


def test_f189_f282_w31_batches_grow_until_memory_is_lacking(tmp_path: Path) -> None:
    keys = {"dp_degree": "auto", "search_algo": {"name": "gbs"}, "model": {"global_batch_size": "auto"}}
    done = tune(tmp_path, keys, TUNED, "--when", "micro_batch_size=8:oom")
    rows = history(tmp_path)
    assert sorted(int(row["global_batch_size"]) for row in rows) == [2, 4, 8, 16]
    assert "stage best" in done.stdout
    assert sorted(path.name for path in tmp_path.glob("Job*_GBSSearch")) == [f"Job{i}_GBSSearch" for i in (1, 2, 3, 4)]


def test_f234_f282_a_search_without_a_batch_finds_it_first(tmp_path: Path) -> None:
    keys = {
        "dp_degree": "auto",
        "micro_batch_size": "auto",
        "model": {"global_batch_size": "auto"},
        "run_best": False,
        "task_limit": 20,
    }
    done = tune(tmp_path, {**keys, "run_cmd": {"global_batch_size": ["--gbs", ""]}}, TUNED, "--when", "micro_batch_size=8:oom")
    assert "global batch size 8: the largest that ran" in done.stderr
    assert {row["global_batch_size"] for row in history(tmp_path)} == {"8"}
    last = (tmp_path / journal(tmp_path, "trial")[-1]["folder"] / "workerlog.0").read_text()
    assert "arguments ['--gbs', '8']" in last


def test_f188_f192_f240_f255_f265_f277_f278_f280_w31_w35_estimation(tmp_path: Path) -> None:
    algorithm = {
        "name": "dp_estimation",
        "estimated_num_gpus": 8,
        "sharding_overlap": {"sharding_mp": ["--overlap", "1"]},
        "conversion": {"step_time": "step_s", "model_size_b": 1, "comm_bw": [100, 50]},
    }
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\n"
        "speed = 100 * int(os.environ['WORLD_SIZE']) * (1.1 if '--overlap' in sys.argv else 1)\n"
        "print(f'step_s: 0.04 tokens_per_sec: {speed}', flush=True)\n"
    )
    keys = {
        "dp_degree": "auto",
        "mp_degree": [2],
        "sharding_degree": "auto",
        "search_algo": algorithm,
        "model": {"global_batch_size": 32},
    }
    done = tune(tmp_path, keys, str(script), workers=4)
    rows = {row["job_id"]: row for row in history(tmp_path)}
    assert [rows[job]["sharding_overlap"] for job in "123"] == ["", "False", "True"]
    assert [(rows[job]["num_gpus"], rows[job]["sharding_degree"]) for job in "123"] == [("2", "1"), ("4", "2"), ("4", "2")]
    first = rows["1"]
    assert first["estimated_dp_degree"] == "4"
    assert (first["bw_100_tokens_per_sec"], first["bw_50_tokens_per_sec"]) == ("100", "66.66667")
    assert (first["overlap_bw_100_tokens_per_sec"], first["overlap_bw_50_tokens_per_sec"]) == ("110", "73.33334")
    assert [row["job_id"] for row in history(tmp_path, "tuner_history_enhanced.csv")] == ["1"]
    assert not (tmp_path / "best_cfg").exists()
    assert "the search ended" in done.stderr


# -- what can go wrong --------------------------------------------------------------------------------------------------


def test_f178_f244_f246_f250_f269_every_end_has_its_status(tmp_path: Path) -> None:
    keys = {**SIZES, "micro_batch_size": [1, 2, 4, 8, 16], "max_time_per_task": 2, "warmup_time": 60, "run_best": False}
    whens = ["micro_batch_size=1:crash@1", "micro_batch_size=2:hang@1", "micro_batch_size=4:nan", "micro_batch_size=8:silent"]
    tune(tmp_path, {**keys, "dp_degree": 1, "mp_degree": [2]}, TUNED, *[word for when in whens for word in ("--when", when)])
    ends = {row["micro_batch_size"]: (row["status"], row["error_info"]) for row in history(tmp_path)}
    assert ends["1"] == ("error", "rank 1: exit code 1: RuntimeError: made to fail")
    assert ends["2"][0] == "timeout"
    assert ends["4"] == ("error", "the metric is no finite number")
    assert ends["8"] == ("error", "no rank told the metric")
    assert ends["16"] == ("ok", "")


def test_f263_nothing_has_a_result(tmp_path: Path) -> None:
    done = tune(tmp_path, SIZES, TUNED, "--when", "mp_degree=1:crash", code=77)
    assert "4 trials, none with a result: 4 error" in done.stderr


def test_a_program_that_is_not_there_ends_the_search_at_once(tmp_path: Path) -> None:
    done = tune(tmp_path, SIZES, "no-such.py", code=2)
    assert "every trial would end the same way" in done.stderr
    assert len(journal(tmp_path, "start")) == 1


def test_f155_a_wrong_configuration_starts_nothing(tmp_path: Path) -> None:
    done = tune(tmp_path, {"mp_degre": 1}, code=2)
    assert "did you mean mp_degree?" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tuner.json"]


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    done = tune(tmp_path, {"mp_degree": [3]}, code=2)
    assert "none of" in done.stderr
    assert "the degrees must multiply to the number of workers" in done.stderr


@pytest.mark.parametrize("words", [[], ["--nproc-per-node", "2"], ["tuner.json"]])
def test_incomplete_commands(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "slaunch", "tune", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "do:" in done.stderr


def test_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "slaunch", "tune", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("usage: slaunch tune CONFIG")


def test_f180_the_searchs_own_time_limit(tmp_path: Path) -> None:
    done = tune(tmp_path, {**SIZES, "max_search_time": 0.001, "run_best": False})
    assert "max_search_time" in done.stderr
    assert len(history(tmp_path)) == 1


def test_f267_the_pause_between_trials(tmp_path: Path) -> None:
    tune(tmp_path, {**SIZES, "task_limit": 2, "pause": 0.6, "run_best": False})
    first, second = journal(tmp_path, "trial")[0], journal(tmp_path, "start")[1]
    assert second["time"] - first["time"] >= 0.5


def test_f177_the_number_of_trials_is_limited(tmp_path: Path) -> None:
    done = tune(tmp_path, {**SIZES, "task_limit": 2, "run_best": False})
    assert "task_limit: 2 trials" in done.stderr
    assert len(history(tmp_path)) == 2


def test_f183_f221_f225_f265_reasons_are_kept(tmp_path: Path) -> None:
    keys = {"dp_degree": "auto", "micro_batch_size": "auto", "sharding_stage": "auto", "run_best": False}
    done = tune(tmp_path, keys)
    assert "dropped by rules (sharding" in done.stderr
    with open(tmp_path / "tuner_dropped.csv") as file:
        assert {row["rule"] for row in csv.DictReader(file)} == {"sharding"}
    for skip in journal(tmp_path, "skip"):
        assert (skip["status"], skip["rule"]) == ("pruned", "micro_batch")
        assert skip["reason"]
    assert len(journal(tmp_path, "skip")) + len(journal(tmp_path, "trial")) == 4
    assert not (tmp_path / "best_cfg").exists()


def test_f184_the_best_run_ends_with_its_programs_exit_code(tmp_path: Path) -> None:
    keys = {**SIZES, "micro_batch_size": [1], "best_cfg_dir": str(tmp_path / "run" / "best")}
    tune(tmp_path, keys, TUNED, "--when", "stage=best:crash", code=1)
    assert (tmp_path / "run" / "best" / "report.json").exists()


def test_w11_near_ties_are_repeated(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import json, os\nprint('tokens_per_sec:', 100 + json.loads(os.environ['SLAUNCH_TRIAL'])['micro_batch_size'])\n"
    )
    tune(tmp_path, {**SIZES, "repeats": 1, "near": 0.04, "run_best": False}, str(script))
    assert [event["repeat_of"] for event in journal(tmp_path, "trial")] == [0, 0, 0, 0, 4, 3]


# -- files --------------------------------------------------------------------------------------------------------------


def test_f228_f229_f230_f327_w54_files_are_edited_in_private_copies(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"d": {"mbs": 0}}')
    (tmp_path / "b.yaml").write_text("# kept\nd: {mbs: 0}\n")
    script = tmp_path / "train.py"
    script.write_text(
        "import json, sys\n"
        "print(open(sys.argv[2]).read())\n"
        "print('tokens_per_sec:', json.load(open(sys.argv[1].partition('=')[2]))['d']['mbs'], flush=True)\n"
    )
    run_cmd = {"micro_batch_size": ["a.json", "d.mbs"], "dp_degree": ["./b.yaml", "d.dp"]}
    tune(tmp_path, {**SIZES, "run_cmd": run_cmd}, str(script), "--config=a.json", "b.yaml")
    assert (tmp_path / "a.json").read_text() == '{"d": {"mbs": 0}}'
    assert (tmp_path / "b.yaml").read_text() == "# kept\nd: {mbs: 0}\n"
    assert [row["tokens_per_sec"] for row in history(tmp_path)] == ["8", "4", "2", "1"]
    best = tmp_path / "best_cfg"
    assert json.loads((best / "config" / "a.json").read_text()) == {"d": {"mbs": 8}}
    assert "# kept" in (best / "workerlog.0").read_text()


def test_w54_a_file_that_the_program_would_not_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    keys = {**SIZES, "run_cmd": {"micro_batch_size": ["a.json", "mbs"]}}
    done = tune(tmp_path, keys, code=2)
    assert "no argument of the program names it" in done.stderr
    run_cmd = {"micro_batch_size": ["a.json", "mbs"], "config_files": "environment"}
    script = tmp_path / "train.py"
    script.write_text(
        "import json, os\n"
        "print('tokens_per_sec:', json.load(open(json.loads(os.environ['SLAUNCH_TRIAL'])['files']['a.json']))['mbs'])\n"
    )
    tune(tmp_path, {**SIZES, "run_cmd": run_cmd, "run_best": False}, str(script))
    assert [row["tokens_per_sec"] for row in history(tmp_path)] == ["8", "4", "2", "1"]


def test_a_metric_file_and_environment_variables(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import json, os\n"
        "with open(os.environ['SLAUNCH_METRIC_FILE'] + '.' + os.environ['RANK'], 'a') as file:\n"
        "    for step in range(3):\n"
        "        print(json.dumps({'step': step, 'tokens_per_sec': int(os.environ['MBS'])}), file=file)\n"
        "print('tokens_per_sec: 77')\n"
    )
    tune(tmp_path, {**SIZES, "run_cmd": {"micro_batch_size": {"env": "MBS"}}, "run_best": False}, str(script))
    assert [row["tokens_per_sec"] for row in history(tmp_path)] == ["8", "4", "2", "1"]


def test_the_python_interface_of_workers(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from slaunch import worker\n"
        "for step in range(3):\n"
        "    worker.report(tokens_per_sec=worker.trial()['micro_batch_size'] + worker.rank(), max_memory_allocated=7.5)\n"
    )
    tune(tmp_path, {**SIZES, "run_best": False}, str(script))
    assert [(row["tokens_per_sec"], row["max_peak_memory"]) for row in history(tmp_path)] == [
        (str(size + 0.5), "7.5") for size in (8, 4, 2, 1)
    ]
    alone = [sys.executable, "-c", "from slaunch import worker; worker.report(x=1); print(worker.trial())"]
    assert subprocess.run(alone, capture_output=True, text=True, timeout=60, check=True).stdout == "{}\n"


# -- again --------------------------------------------------------------------------------------------------------------


def test_f185_f256_f257_f328_w53_a_search_goes_on_where_it_was(tmp_path: Path) -> None:
    keys = {**SIZES, "task_limit": 2, "run_best": False}
    tune(tmp_path, keys)
    done = tune(tmp_path, {**keys, "task_limit": 4})
    assert done.stderr.count("from journal") == 2
    assert [event["number"] for event in journal(tmp_path, "start")] == [1, 2, 3, 4]
    again = tune(tmp_path, {**keys, "task_limit": 4}, TUNED, "--steps", "5")
    assert "from journal" not in again.stderr
    assert [event["number"] for event in journal(tmp_path, "start")][4:] == [5, 6, 7, 8]
    fresh = tune(tmp_path, {**keys, "task_limit": 4, "resume": "never"})
    assert "from journal" not in fresh.stderr
    (tmp_path / "other").mkdir()
    warm = tune(tmp_path / "other", {**keys, "task_limit": 4, "resume_csv_file_path": str(tmp_path / "tuner_history.csv")})
    assert warm.stderr.count(f"from {tmp_path}/tuner_history.csv") == 4
    assert journal(tmp_path / "other", "start") == []
    assert (tmp_path / "other" / "tuner_history_copy.csv").read_text() == (tmp_path / "tuner_history.csv").read_text()


def test_f326_a_search_that_is_asked_to_stop_keeps_what_it_has(tmp_path: Path) -> None:
    words = command(tmp_path, SIZES, [TUNED, "--when", "micro_batch_size=4:hang"], 2)
    tuner = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("Job3_*/workerlog.0")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        tuner.send_signal(signal.SIGTERM)
        _, said = tuner.communicate(timeout=60)
    finally:
        tuner.kill()
        tuner.wait()
    assert tuner.returncode == 128 + signal.SIGTERM, said
    assert "asked to stop by SIGTERM" in said
    assert [event["status"] for event in journal(tmp_path, "trial")] == ["ok", "ok", "cancelled"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", ["study", "start1", "trial1", "start2", "trial2", "end"])
def test_w58_a_killed_search_loses_no_trial_and_runs_none_twice(tmp_path: Path, when: str, point: str) -> None:
    """Killed at any write of the journal and started again, it ends with every setting tried once."""
    keys = {**SIZES, "micro_batch_size": [1, 2], "run_best": False}
    tune(tmp_path, keys, code=-signal.SIGKILL, SLAUNCH_FAILPOINTS=f"tune.{when}.{point}=kill")
    done = tune(tmp_path, keys)
    assert [event["setting"]["micro_batch_size"] for event in journal(tmp_path, "trial")] == [1, 2]
    assert len(history(tmp_path)) == 2
    known = {"study": 0, "start1": 0, "trial1": int(when == "after"), "start2": 1, "trial2": 1 + int(when == "after"), "end": 2}
    assert done.stderr.count("from journal") == known[point]


def test_a_person_who_looks_on_gets_a_table(tmp_path: Path) -> None:
    words = command(tmp_path, {**SIZES, "run_best": False}, [TUNED, "--when", "micro_batch_size=8:oom"], 2)
    screen, terminal = os.openpty()
    try:
        tuner = subprocess.Popen(words, cwd=tmp_path, stderr=terminal, env={**os.environ, "COLUMNS": "200", "TERM": "xterm"})
        os.close(terminal)
        said = b""
        try:
            while part := os.read(screen, 65536):
                said += part
        except OSError:  # the terminal's other end is closed: the tuner has ended
            pass
        assert tuner.wait(timeout=60) == 0
    finally:
        os.close(screen)
    tables = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", said.decode()).split("the best of ")
    rows = [[re.sub(r"\s+", "", line).split("│")[1:3] for line in text.splitlines() if "│" in line] for text in tables]
    assert rows[-1] == [["3", "833.343"], ["2", "714.296"], ["1", "666.677"], ["4", "oom"]]
    assert [["2", "atwork"], ["1", "666.677"]] in rows, "it is renewed while the search goes on"
    assert "3/4 settings done" in said.decode()
