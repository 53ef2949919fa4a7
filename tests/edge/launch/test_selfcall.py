"""slaunch starts itself safely wherever it stands."""

import os
import subprocess
import sys

import pytest

from slaunch.selfcall import module_command, own_command


@pytest.fixture
def trap(tmp_path):
    """A working directory with files that are called as modules of the standard library are."""
    for name in ("json", "socket", "selectors", "struct", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file in the working directory was imported')\n")
    return tmp_path


def test_files_in_the_working_directory_are_not_in_the_way(trap):
    command = [*module_command("slaunch.cli.main"), "--nproc-per-node", "1", "--log-dir", "logs", "/bin/true"]
    done = subprocess.run(command, cwd=trap, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_working_directory_is_still_looked_at_last(tmp_path):
    (tmp_path / "only_here.py").write_text("def main():\n    return 7\n")
    done = subprocess.run(module_command("only_here"), cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 7


def test_the_console_script_is_called_again_as_it_is(tmp_path):
    script = tmp_path / "slaunch"
    script.write_text("")
    assert own_command(str(script)) == (sys.executable, str(script))
    assert own_command(os.path.join(tmp_path, "nosuch", "slaunch")) == module_command("slaunch.cli.main")
    assert own_command("-c") == module_command("slaunch.cli.main")
