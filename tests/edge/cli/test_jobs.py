"""Whole jobs on this machine, by every kind of command line. No framework is loaded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.jobs import free_port

SLAUNCH = os.path.join(os.path.dirname(sys.executable), "slaunch")
SHOW = """
import os, sys
names = ("RANK", "PADDLE_TRAINER_ID", "TRAINING_ROLE", "PADDLE_AUTO_PARALLEL_STAGE", "ROLE_NAME", "INSIDE")
print("show", *(f"{name}={os.environ[name]}" for name in names if name in os.environ), *sys.argv[1:], flush=True)
"""
SERVE = """
import glob, time
if os.environ["TRAINING_ROLE"] == "PSERVER":
    open("served-" + os.environ["PADDLE_PORT"], "w").close()
    time.sleep(300)
while len(glob.glob("served-*")) < 2:
    time.sleep(0.02)
"""
"""Servers run on until they are ended; trainers end as soon as both servers are there."""
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "show.py").write_text(SHOW)
    (tmp_path / "serve.py").write_text(SHOW + SERVE)
    return tmp_path


def run(here: Path, *words: str, program: str = SLAUNCH, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run([program, *words], cwd=here, env={**ENV, **env}, capture_output=True, text=True, timeout=60)


def shown(text: str) -> list[str]:
    """What the workers showed, without who said it."""
    return sorted(re.findall(r"show (.*)$", text, re.MULTILINE))


def test_torchrun_changes_one_word(here: Path) -> None:
    done = run(here, "torchrun", "--standalone", "--nproc-per-node=2", "--monitor-interval=1", "show.py", "--nnodes", "a b")
    assert done.returncode == 0, done.stderr
    assert [line.split(" PADDLE")[0] for line in shown(done.stdout)] == ["RANK=0", "RANK=1"]
    assert all(line.endswith("ROLE_NAME=default --nnodes a b") for line in shown(done.stdout))
    assert done.stderr.count("note:") >= 1
    assert "--monitor-interval: no effect" in done.stderr


def test_called_by_a_link_of_that_name(here: Path) -> None:
    (here / "torchrun").symlink_to(SLAUNCH)
    done = run(here, "--nproc-per-node", "2", "--role", "actor", "-m", "show", program=str(here / "torchrun"))
    assert done.returncode == 0, done.stderr
    assert len(re.findall("ROLE_NAME=actor", done.stdout)) == 2


def test_f315_more_nodes_than_start_in_time(here: Path) -> None:
    done = run(here, "--rendezvous-timeout", "1", "torchrun", "--nnodes", "2", "show.py")
    assert done.returncode == 69
    assert "slaunch: cannot " in done.stderr and "nodes" in done.stderr
    assert shown(done.stdout) == []


@pytest.mark.parametrize(
    "words",
    [
        ["paddle"],
        ["fleetrun"],
        ["-m", "slaunch.paddle"],
    ],
    ids=lambda words: words[-1],
)
def test_f1_f2_paddles_entry_points(here: Path, words: list[str]) -> None:
    program = sys.executable if words[0] == "-m" else SLAUNCH
    done = run(here, *words, "--nproc_per_node", "2", "--job_id", "j", "show.py", "--log", "x", program=program)
    assert done.returncode == 0, done.stderr
    assert shown(done.stdout) == ["RANK=0 PADDLE_TRAINER_ID=0 ROLE_NAME=default --log x"]
    assert sorted(path.name for path in (here / "log").glob("workerlog.*")) == ["workerlog.0", "workerlog.1"]


def test_f3_from_python(here: Path) -> None:
    code = (
        "import slaunch, sys\n"
        "assert 'slaunch.launch' not in sys.modules\n"
        "sys.exit(slaunch.launch('show.py', '--x', nproc_per_node=2, tee=[0, 1], log_dir='logs', keep_env=['A', 'B']))\n"
    )
    done = run(here, "-c", code, program=sys.executable)
    assert done.returncode == 0, done.stderr
    assert len(shown(done.stdout)) == 2
    assert (here / "logs" / "workerlog.1").exists()


def test_f3_the_exit_code_of_a_failing_job_comes_back(here: Path) -> None:
    code = "import slaunch; print('code', slaunch.launch('raise SystemExit(7)', kind='code'))"
    assert "code 7" in run(here, "-c", code, program=sys.executable).stdout


def test_f3_programs_that_roles_name(here: Path) -> None:
    (here / "roles.toml").write_text('[[role]]\nname = "a"\nworkers = 2\nprogram = "show.py"\n')
    done = run(here, "-c", "import slaunch; slaunch.launch(roles='roles.toml', tee='all')", program=sys.executable)
    assert len(shown(done.stdout)) == 2, done.stderr


def test_worker_functions(here: Path) -> None:
    code = "from slaunch import worker as w; print('show', w.rank(), w.world_size(), w.local_rank(), w.node_rank(), w.attempt())"
    done = run(here, "--nproc-per-node", "2", "--tee", "all", "-c", code)
    assert shown(done.stdout) == ["0 2 0 0 0", "1 2 1 0 0"], done.stderr
    assert run(here, "-c", code, program=sys.executable).stdout == "show 0 1 0 0 0\n"


def test_f136_w41_servers_end_with_their_trainers(here: Path) -> None:
    done = run(here, "paddle", "--server_num", "2", "--trainer_num", "2", "--tee", "all", "serve.py")
    assert done.returncode == 0, done.stderr
    assert shown(done.stdout) == [
        "PADDLE_TRAINER_ID=0 TRAINING_ROLE=TRAINER",
        "PADDLE_TRAINER_ID=1 TRAINING_ROLE=TRAINER",
        "TRAINING_ROLE=PSERVER",
        "TRAINING_ROLE=PSERVER",
    ]
    assert {path.name for path in (here / "log").glob("*log.*")} == {"workerlog.0", "workerlog.1", "serverlog.0", "serverlog.1"}


CLOUD = {"PADDLE_TRAINERS": "127.0.0.1", "POD_IP": "127.0.0.1", "PADDLE_TRAINER_ID": "0", "TRAINER_PORTS_NUM": "1"}


def told(here: Path, words: str, program: str = "tell.py", **env: str) -> dict[str, str]:
    """What the first worker of a job of Paddle's command line finds in its environment."""
    (here / "tell.py").write_text("import json, os\nprint('told', json.dumps(dict(os.environ)), flush=True)\n")
    done = run(here, "paddle", *words.split(), program, **env)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(re.findall(r"told (.*)$", done.stdout, re.MULTILINE)[0])
    return found


@pytest.mark.parametrize(
    ("words", "env", "wanted"),
    [
        ("--host 127.0.0.1", {}, {"PADDLE_CURRENT_ENDPOINT": r"127\.0\.0\.1:\d+", "MASTER_ADDR": r"127\.0\.0\.1"}),
        ("", {"POD_IP": "127.0.0.1"}, {"PADDLE_CURRENT_ENDPOINT": r"127\.0\.0\.1:\d+"}),
        ("--auto_cluster_config true", {}, {"PADDLE_AUTO_CLUSTER": "1"}),
        ("", {"PADDLE_AUTO_CLUSTER": "False"}, {"PADDLE_AUTO_CLUSTER": "0"}),
        (
            "--server_num 1 --trainer_num 1 --with_gloo 2 --http_port 6799",
            {},
            {"PADDLE_WITH_GLOO": "2", "PADDLE_GLOO_HTTP_ENDPOINT": r".*:6799", "TRAINING_ROLE": "TRAINER"},
        ),
        (
            "--server_num 1 --worker_num 1 --coordinator_num 1",
            {},
            {"PADDLE_COORDINATOR_ENDPOINTS": r"[\d.]+:\d+", "PADDLE_TRAINER_ID": "0"},
        ),
        ("--backend gloo", {"CUDA_VISIBLE_DEVICES": "0,1"}, {"PADDLE_DISTRI_BACKEND": "gloo", "PADDLE_TRAINERS_NUM": "1"}),
        ("--backend flagcx", {"CUDA_VISIBLE_DEVICES": "3"}, {"PADDLE_DISTRI_BACKEND": "flagcx", "FLAGS_selected_gpus": "0"}),
        (
            "",
            {**CLOUD, "PADDLE_PORT": "PORT"},
            {"PADDLE_CURRENT_ENDPOINT": r"127\.0\.0\.1:PORT"},
        ),
        ("", {"FLAGS_FIXED_PORT": "PORT"}, {"PADDLE_CURRENT_ENDPOINT": ".*:PORT"}),
        ("--selected_gpus 7", {"CUDA_VISIBLE_DEVICES": "6,7"}, {"CUDA_VISIBLE_DEVICES": "7", "FLAGS_selected_gpus": "0"}),
        ("", {"PORT_RANGE": "46000:46500"}, {"PADDLE_CURRENT_ENDPOINT": r".*:46[0-4]\d\d"}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_f23_f27_f32_f37_f45_f46_f55_f81_f286_f289_f297_f298_what_options_do_to_workers(
    here: Path, words: str, env: dict[str, str], wanted: dict[str, str]
) -> None:
    port = str(free_port())
    found = told(here, words, **{name: value.replace("PORT", port) for name, value in env.items()})
    patterns = {name: pattern.replace("PORT", port) for name, pattern in wanted.items()}
    assert all(re.fullmatch(pattern, found.get(name, "")) for name, pattern in patterns.items()), found
    if "gloo" in words.split():
        assert "FLAGS_selected_gpus" not in found


def test_f25_fixed_ports_that_are_taken_are_named(here: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(here, "paddle", "--ips", "127.0.0.1", "--start_port", str(port), "show.py")
    assert done.returncode == 71
    assert f"{port} in use" in done.stderr


def test_w12_a_node_that_is_not_in_its_own_list(here: Path) -> None:
    done = run(here, "paddle", "--ips", "192.0.2.1", "show.py")
    assert done.returncode == 2
    assert "192.0.2.1" in done.stderr


@pytest.mark.parametrize(
    ("word", "stages"), [("tuner_only", ["tuner"]), ("run_only", ["run", "run"]), ("tuner_and_run", ["tuner", "run", "run"])]
)
def test_f84_f85_f96_the_tuning_step(here: Path, word: str, stages: list[str]) -> None:
    (here / "tune.json").write_text(json.dumps({"tuner_run_mode": word}))
    words = ("--auto_parallel_config", "tune.json", "--nproc_per_node", "2", "--tee", "all", "show.py")
    done = run(here, "paddle", *words)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"STAGE=(\w+)", done.stdout) == stages
    assert (here / "log" / "tuner.log").exists() == ("tuner" in stages)


def test_w25_f84_a_tuning_step_that_fails_ends_the_job_before_the_workers_start(here: Path) -> None:
    (here / "tune.json").write_text("{}")
    (here / "fail.py").write_text("import os\nos._exit(5 if os.environ['PADDLE_AUTO_PARALLEL_STAGE'] == 'tuner' else 0)\n")
    done = run(here, "paddle", "--auto_parallel_config", "tune.json", "--nproc_per_node", "2", "fail.py")
    assert done.returncode == 5, done.stderr
    assert [path.name for path in (here / "log").glob("*log*")] == ["tuner.log"]


def test_f33_f34_f120_f308_a_hook_runs_before_the_workers_and_before_those_of_a_restart(here: Path) -> None:
    code = "import os\nprint('show', os.environ['SLAUNCH_ATTEMPT'], flush=True)\nos._exit(os.environ['SLAUNCH_ATTEMPT'] == '0')\n"
    (here / "again.py").write_text(code)
    done = run(here, "paddle", "--elastic_level", "1", "--elastic_pre_hook", "echo hook $SLAUNCH_ATTEMPT", "again.py")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"(?:hook|show) \d", done.stdout) == ["hook 0", "show 0", "hook 1", "show 1"]
    failed = run(here, "--pre-hook", "sh -c 'exit 9'", "show.py")
    assert failed.returncode == 9
    assert "(pre-hook)" in failed.stderr and shown(failed.stdout) == []


def test_f290_f291_f292_f293_what_the_older_launcher_did(here: Path) -> None:
    code = "import os\nprint('show', os.environ['PADDLE_WORLD_DEVICE_IDS'], os.environ['CUDA_VISIBLE_DEVICES'])\n"
    (here / "ids.py").write_text(code)
    words = ("--legacy=true", "--nproc_per_node", "2", "--tee", "all", "ids.py")
    done = run(here, "paddle", *words, CUDA_VISIBLE_DEVICES="4,5,6,7", MY_API_KEY="secret1")
    assert done.returncode == 0, done.stderr
    assert shown(done.stdout) == ["0:1,2:3 4,5", "0:1,2:3 6,7"]
    title, first, second = (here / "log" / "endpoints.log").read_text().splitlines()
    assert title == "PADDLE_TRAINER_ENDPOINTS: "
    assert re.search(rf"\| PADDLE_TRAINER_ENDPOINTS +\| {re.escape(first)},{re.escape(second)} +\|", done.stderr), done.stderr
    assert "secret1" not in done.stderr


def test_f49_the_configuration_at_level_debug(here: Path) -> None:
    done = run(here, "paddle", "--log_level", "DEBUG", "--job_id", "j", "show.py", POD_IP="127.0.0.1")
    assert "slaunch: job_id = j (--job-id)" in done.stderr
    assert "slaunch: host = 127.0.0.1 (POD_IP)" in done.stderr
    assert re.search(r"\| RANK +\| 0 +\|", done.stderr)
    assert "-- configuration --" not in run(here, "paddle", "show.py").stderr


def test_f8_no_notes_at_level_warning(here: Path) -> None:
    assert "no effect" in run(here, "paddle", "--sort_ip", "1", "show.py").stderr
    assert "no effect" not in run(here, "paddle", "--log_level", "WARNING", "--sort_ip", "1", "show.py").stderr


def test_f321_explain_shows_every_values_origin(here: Path) -> None:
    (here / "slaunch.toml").write_text('grace = 5\n[profile.p]\nlog_dir = "mine"\n')
    done = run(here, "explain", "--json", "torchrun", "--profile", "p", "--nproc-per-node", "2", "show.py", SLAUNCH_JOB_ID="v")
    options = json.loads(done.stdout)["options"]
    origins = {name: options[name]["origin"] for name in ("grace_s", "log_dir", "nproc_per_node", "job_id", "bind", "tee")}
    assert origins == {
        "grace_s": "slaunch.toml",
        "log_dir": "slaunch.toml [profile.p]",
        "nproc_per_node": "--nproc-per-node",
        "job_id": "SLAUNCH_JOB_ID",
        "bind": "default",
        "tee": "torchrun's default",
    }


def test_roles_run_different_programs(here: Path) -> None:
    (here / "roles.toml").write_text(
        '[[role]]\nname = "learner"\nranks = "0"\nprogram = "show.py"\nargs = ["L"]\n'
        '[[role]]\nname = "actor"\ncommand = ["/bin/sh", "-c", "echo show $RANK $ROLE_NAME $X"]\nenv = {X = "y"}\n'
    )
    done = run(here, "--nproc-per-node", "3", "--tee", "all", "--roles", "roles.toml")
    assert done.returncode == 0, done.stderr
    assert shown(done.stdout) == ["1 actor y", "2 actor y", "RANK=0 PADDLE_TRAINER_ID=0 ROLE_NAME=learner L"]


def test_roles_of_components_are_tried_on_one_machine(here: Path) -> None:
    (here / "roles.toml").write_text(
        '[[role]]\nname = "server"\ncomponent = 1\nworkers = 2\ndevice = "cpu"\nargs = ["S"]\n'
        '[[role]]\nname = "trainer"\ncomponent = 0\ncores = 99\n'
    )
    done = run(here, "--mode", "ps", "--tee", "all", "--roles", "roles.toml", "serve.py", "x", CUDA_VISIBLE_DEVICES="7")
    assert done.returncode == 0, done.stderr
    assert shown(done.stdout) == ["PADDLE_TRAINER_ID=0 TRAINING_ROLE=TRAINER x", *["TRAINING_ROLE=PSERVER x S"] * 2]
    assert "share them evenly" in done.stderr
    told = run(here, "explain", "--mode", "ps", "--roles", "roles.toml", "serve.py", "x", CUDA_VISIBLE_DEVICES="7").stdout
    assert re.search(r"command of server \(ranks 1-2\): .* serve.py x S$", told, re.MULTILINE), told


def test_a_container_is_a_command_in_front(here: Path) -> None:
    done = run(here, "--nproc-per-node", "2", "--tee", "all", "--container", "env 'INSIDE=a b'", "show.py")
    assert done.returncode == 0, done.stderr
    assert all("INSIDE=a b" in line for line in shown(done.stdout))


def test_a_container_program_that_is_missing_is_named(here: Path) -> None:
    done = run(here, "--container", "apptainer-of-nowhere exec", "show.py")
    assert done.returncode == 127
    assert "apptainer-of-nowhere" in done.stderr


def test_f50_coverage_of_each_worker(here: Path) -> None:
    done = run(here, "explain", "--json", "paddle", "show.py", "a", WITH_COVERAGE="ON")
    assert json.loads(done.stdout)["plan"]["argv"][1:] == ["-u", "-m", "coverage", "run", "--branch", "-p", "show.py", "a"]
    covered = run(here, "paddle", "--nproc_per_node", "2", "--tee", "all", "show.py", "a", WITH_COVERAGE="ON")
    assert len(shown(covered.stdout)) == 2, covered.stderr
    assert len(list(here.glob(".coverage.*"))) == 2  # one for each worker


@pytest.mark.parametrize("dialect", ["torchrun", "paddle", "fleetrun"])
def test_help_of_each_command_line(here: Path, dialect: str) -> None:
    done = run(here, dialect, "--help")
    assert done.returncode == 0
    assert "--nproc-per-node" in done.stdout


def test_explain_shows_each_roles_command_and_the_step_before_the_workers(here: Path) -> None:
    (here / "roles.toml").write_text(
        '[[role]]\nname = "a"\nranks = "0"\nprogram = "show.py"\n[[role]]\nname = "b"\nmodule = "show"\n'
    )
    done = run(here, "explain", "--nproc-per-node", "2", "--roles", "roles.toml")
    assert re.search(r"command of a \(ranks 0\): .* show.py$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"command of b \(ranks of no other role\): .* -m show$", done.stdout, re.MULTILINE)
    (here / "tune.json").write_text("{}")
    assert "tuner.log" in run(here, "explain", "paddle", "--auto_parallel_config", "tune.json", "show.py").stdout
