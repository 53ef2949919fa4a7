"""The program and the log directory, looked at before the start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from slaunch.node.program import check_log_dir, check_program, digest
from slaunch.options import Program


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def codes(program, env=None):
    return [problem.code for problem in check_program(program, env or {"PATH": os.environ["PATH"]})]


def test_f51_a_python_script_need_not_be_executable(here):
    (here / "train.py").write_text("")
    assert codes(Program("train.py")) == []


def test_f51_a_program_is_executed(here):
    (here / "train.sh").write_text("")
    assert codes(Program("./train.sh")) == [126]
    (here / "train.sh").chmod(0o755)
    assert codes(Program("./train.sh")) == []


def test_a_missing_script_is_127_with_the_place(here):
    problem = check_program(Program("nowhere/train.py"), {})[0]
    assert problem.code == 127
    assert str(here) in problem.seen


def test_a_bare_name_is_looked_for_on_path(here):
    assert codes(Program("sh")) == []
    assert codes(Program("no-such-program-xyz")) == [127]
    assert codes(Program("sh"), {"PATH": str(here)}) == [127]


def test_a_folder_runs_if_it_has_a_main(here):
    (here / "app").mkdir()
    assert codes(Program("app")) == [126]
    (here / "app/__main__.py").write_text("")
    assert codes(Program("app")) == []


@pytest.mark.parametrize("name", ["json.tool", "timeit", "sys", "local_module", "package.inner"])
def test_a_module_that_is_there(here, name):
    (here / "local_module.py").write_text("raise SystemExit('imported')")
    (here / "package").mkdir()
    (here / "package/__init__.py").write_text("raise SystemExit('imported')")
    assert codes(Program(name, kind="module")) == []


def test_a_module_on_pythonpath(here):
    (here / "lib").mkdir()
    (here / "lib/mine.py").write_text("")
    assert codes(Program("mine", kind="module")) == [127]
    assert codes(Program("mine", kind="module"), {"PYTHONPATH": str(here / "lib")}) == []


def test_code_is_not_looked_at():
    assert codes(Program("print(1)", kind="code")) == []


def test_the_log_directory_is_made_and_left_empty(here):
    assert check_log_dir("a/b") == ()
    assert os.listdir("a/b") == []


def test_a_log_directory_under_a_file_is_told(here):
    (here / "file").write_text("")
    problem = check_log_dir("file/logs")[0]
    assert problem.code == 73
    assert "ENOTDIR" in problem.seen


@pytest.mark.parametrize(
    ("size", "then", "name"),
    [("size=4k", "", "ENOSPC"), ("size=1m", "mount -o remount,ro tmpfs {0} &&", "EROFS")],
    ids=["full", "read-only"],
)
def test_a_log_directory_that_takes_no_file_is_told_with_the_cause(tmp_path, size, then, name):
    """On a real file system that is full, or read-only."""
    ask = "import sys; from slaunch.node.program import check_log_dir as c; p = c(sys.argv[1]); print(p[0].code, p[0].seen)"
    fill = f"mount -t tmpfs -o {size} tmpfs {tmp_path} && cat /dev/zero 2>/dev/null | head -c 4096 > {tmp_path}/fill;"
    script = f'{fill} {then.format(tmp_path)} exec "$0" -c "$1" {tmp_path}'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, sys.executable, ask]
    told = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout.startswith("73 "), told.stderr
    assert name in told.stdout


def test_the_digest_tells_contents_arguments_and_options_apart(here):
    (here / "train.py").write_text("a")
    first = digest(Program("train.py"), {}, "")
    assert first == digest(Program("train.py"), {}, "")
    assert first != digest(Program("train.py", ("x",)), {}, "")
    assert first != digest(Program("train.py"), {}, "other options")
    (here / "train.py").write_text("b")
    assert first != digest(Program("train.py"), {}, "")
    assert len(first) == 16
