"""The GPT example under slaunch and under its tuner: real tensor, pipeline and sharded parallelism on two CPUs."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.jobs import EXAMPLES

TRAIN = os.path.join(EXAMPLES, "gpt", "train.py")


def slaunch(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "slaunch", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.timeout(600)
def test_every_kind_of_parallelism_trains_the_same_model(tmp_path: Path) -> None:
    settings = ["--micro-batch 4", "--tensor 2", "--pipeline 2 --recompute", "--shards 2 --micro-batch 2"]
    losses = []
    for setting in settings:
        done = slaunch(
            tmp_path, "--nproc-per-node", "2", "--tee", "all", "--log-dir", str(tmp_path / "logs"), TRAIN, *setting.split()
        )
        losses += re.findall(r"final loss: ([\d.]+)", done.stdout)
    assert len(losses) == 4
    assert {round(float(loss), 3) for loss in losses} == {round(float(losses[0]), 3)}
    assert float(losses[0]) < 5.0  # random guessing is ln 256 = 5.5


@pytest.mark.timeout(600)
def test_f246_f248_tuning_finds_the_fastest_that_fits(tmp_path: Path) -> None:
    with open(os.path.join(EXAMPLES, "gpt", "tuner.json")) as file:
        config: dict[str, Any] = json.load(file)
    config |= {
        "pp_degree": 1,
        "sharding_degree": [2],
        "dp_degree": 1,
        "mp_degree": 1,
        "micro_batch_size": [2, 4],
        "run_best": False,
    }
    (tmp_path / "tuner.json").write_text(json.dumps(config))
    words = ["--nproc-per-node", "2", TRAIN, "--memory-budget", "4.5"]
    done = slaunch(tmp_path, "tune", "tuner.json", *words)
    with open(tmp_path / "tuner_history.csv") as file:
        rows = {(row["micro_batch_size"], row["use_recompute"]): row for row in csv.DictReader(file)}
    assert rows["4", "False"]["status"] == "oom"
    assert rows["4", "True"]["status"] == rows["2", "False"]["status"] == "ok"
    assert float(rows["4", "True"]["max_mem_usage"]) < float(rows["2", "False"]["max_mem_usage"]) < 4.5
    assert "best so far" in done.stderr
