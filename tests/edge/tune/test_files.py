"""How a trial's setting reaches its program, and the program's metric slaunch."""

import json
import subprocess
import sys
from pathlib import Path

from .searches import SIZES, history, tune


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
