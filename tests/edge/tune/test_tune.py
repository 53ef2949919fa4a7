"""`slaunch tune` from the command line to the run of the best, on this machine, for every algorithm."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .searches import SIZES, TUNED, command, history, journal, tune


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
