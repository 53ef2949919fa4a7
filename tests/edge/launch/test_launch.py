"""Whole launches on this machine, as a user without a scheduler makes them."""

import os
import subprocess
import sys
from pathlib import Path

from support.cluster import Result
from support.jobs import WORLD, assert_world, logs, places

CLEAN = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def slaunch(cwd: Path, *args: str, **env: str) -> Result:
    command = [sys.executable, "-m", "slaunch", *args]
    return subprocess.run(command, cwd=cwd, env=CLEAN | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test_f116_two_workers_on_a_plain_machine(tmp_path: Path) -> None:
    done = slaunch(tmp_path, "--nproc_per_node", "2", "--log_dir", "logs", WORLD)
    assert done.returncode == 0, done.stderr
    assert_world(logs(str(tmp_path)), 2, [2])


def test_f21_the_jobs_name_is_the_folder_of_its_logs(tmp_path: Path) -> None:
    done = slaunch(tmp_path, "--job-id", "my-run", "--nproc_per_node", "1", WORLD)
    assert done.returncode == 0, done.stderr
    assert len(places(logs(str(tmp_path / "slaunch-logs" / "my-run")))) == 1


def test_f144_own_lines_are_on_stderr_and_marked_the_workers_on_stdout(tmp_path: Path) -> None:
    done = slaunch(tmp_path, "--nproc_per_node", "2", "--log_dir", "logs", WORLD)
    assert [line.startswith("world ") for line in done.stdout.splitlines()] == [True]
    assert all(line.startswith(("slaunch: ", "  ")) for line in done.stderr.splitlines()), done.stderr


def test_p32_workers_do_not_get_the_control_port_of_a_process_manager(tmp_path: Path) -> None:
    program = "import os; print('PMI_CONTROL_PORT' in os.environ, 'OTHER' in os.environ)"
    done = slaunch(tmp_path, "--nproc_per_node", "1", "-c", program, PMI_CONTROL_PORT="63000", OTHER="1")
    assert done.stdout == "False True\n", done.stderr


def test_p89_nothing_goes_into_the_temporary_folder(tmp_path: Path) -> None:
    done = slaunch(tmp_path, "--nproc_per_node", "2", "--log_dir", "logs", WORLD, TMPDIR="/nonexistent")
    assert done.returncode == 0, done.stderr


def test_help_into_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m slaunch --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=CLEAN, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() in ("0", "141")
    assert done.stderr == ""
