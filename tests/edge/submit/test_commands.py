"""`slaunch submit` and its kin as commands, on a machine without Slurm."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from slaunch.agent.values import Ended, Failure, Lost, Peak, RunReport, Verdict
from slaunch.report.json import write_json
from slaunch.report.revive import read_report
from slaunch.submit.send import recall, remember
from slaunch.submit.values import Submitted

SLAUNCH = f"{os.path.dirname(sys.executable)}/slaunch"


def run(*args: str, cwd: Path, stdout: int = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[str]:
    base = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "TERM": "xterm-256color", "SLURM_CONF": "/nonexistent"}
    command = [SLAUNCH, *args]
    return subprocess.run(command, cwd=cwd, env=base | env, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


def without_slurm(folder: Path) -> str:
    """A PATH that has no Slurm."""
    (folder / "bin").mkdir()
    for name in ("bash", "env"):
        os.symlink(f"/usr/bin/{name}", folder / "bin" / name)
    return str(folder / "bin")


def test_a_dry_run_prints_a_script_that_bash_understands(tmp_path: Path) -> None:
    options = ("-N2", "--gpus-per-node=4", "--dry-run")
    done = run("submit", *options, "train.py", "--note", "two words", cwd=tmp_path, PATH=without_slurm(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "\033" not in done.stdout
    assert "#SBATCH --gpus-per-node=4\n" in done.stdout
    assert "not checked: no sbatch here" in done.stderr
    assert f"note: there is no train.py in {tmp_path}, seen from here\n" in done.stderr
    subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True, timeout=10)
    stand_in = "exec() { shift; printf '<%s>' \"$@\"; }\n"
    said = subprocess.run(["bash", "-s"], input=stand_in + done.stdout, text=True, capture_output=True, timeout=10, check=True)
    assert said.stdout == "<train.py><--note><two words>"


def test_a_dry_run_on_a_terminal_is_highlighted(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    try:
        done = run("submit", "-N2", "--dry-run", "train.py", cwd=tmp_path, stdout=slave, PATH=without_slurm(tmp_path))
        shown = os.read(master, 65536).decode()
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 0, done.stderr
    assert "\033[" in shown
    assert "SBATCH" in shown


def test_without_slurm_nothing_is_submitted(tmp_path: Path) -> None:
    done = run("submit", "train.py", cwd=tmp_path, PATH=without_slurm(tmp_path))
    assert done.returncode == 72
    assert "no program sbatch on PATH" in done.stderr


def test_templates_of_user_and_site_come_first(tmp_path: Path) -> None:
    site, own = tmp_path / "site", tmp_path / ".config" / "slaunch" / "templates"
    for folder in (site, own):
        folder.mkdir(parents=True)
        text = f"#!/bin/bash\n# of {folder.name}: {{{{ who }}}}\n{{{{ directives }}}}\nexec slaunch {{{{ arguments }}}}\n"
        (folder / "collective.sbatch").write_text(text)
    path = without_slurm(tmp_path)
    done = run("submit", "--set", "who=me", "--dry-run", "a.py", cwd=tmp_path, PATH=path)
    assert "# of templates: me\n#SBATCH --job-name=a\nexec slaunch a.py\n" in done.stdout
    done = run("submit", "--templates", str(site), "--set", "who=us", "--dry-run", "a.py", cwd=tmp_path, PATH=path)
    assert "# of site: us\n" in done.stdout
    done = run("submit", "--template", f"{site}/collective.sbatch", "--dry-run", "a.py", cwd=tmp_path, PATH=path)
    assert done.returncode == 2
    assert "'who' is undefined" in done.stderr
    done = run("submit", "--template", "colective", "--dry-run", "a.py", cwd=tmp_path, PATH=path)
    assert done.returncode == 72
    assert "elastic" in done.stderr


REPORT = RunReport(
    Verdict(
        *("failure", 7),
        Failure(5, 1, 2, "n3", 42, 7, 0, 101.5, detail="ValueError: no", tail=("a", "b")),
        lost=(Lost(1, "n2", "cut", 3.0),),
    ),
    *(7, True, "12.0", 1, 8, 4, ""),
    *(100.0, 103.0),
    ("a note",),
    peaks=(Peak(0, "n1", 1 << 30),),
    earlier=(Ended(0, Verdict("time", 124), 8, 4, 90.0, 99.0),),
)


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    report = RunReport(*[getattr(REPORT, name) if name != "log_dir" else str(tmp_path) for name in RunReport.__annotations__])
    assert write_json(report) == ""
    path = tmp_path / "report.json"
    assert read_report(str(path)) == report
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, "of_a_later_version": 1}))
    assert read_report(str(path)) == report


def test_report_and_logs_by_the_jobs_id(tmp_path: Path) -> None:
    folder = tmp_path / "slaunch-logs" / "12.0"
    folder.mkdir(parents=True)
    report = RunReport(*[getattr(REPORT, name) if name != "log_dir" else str(folder) for name in RunReport.__annotations__])
    done = run("report", "12", cwd=tmp_path)
    assert done.returncode == 65
    assert "report.json: not there" in done.stderr
    write_json(report)
    (folder / "workerlog.0").write_text("first\n")
    (folder / "workerlog.1").write_text("second\n")
    done = run("report", "12", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("slaunch: rank 5 on n3 failed with exit code 7\n")
    assert json.loads(run("report", "--json", "12.0", cwd=tmp_path).stdout)["code"] == 7
    path = without_slurm(tmp_path)
    assert run("logs", "12", cwd=tmp_path, PATH=path).stdout == "first\n"
    assert run("logs", "12", "--rank", "1", cwd=tmp_path, PATH=path).stdout == "second\n"
    assert run("logs", "--rank", "all", str(folder), cwd=tmp_path, PATH=path).stdout == "[0] first\n[1] second\n"
    (folder / "rank one").write_text("named by the user\n")
    started = {"time_s": 1.0, "kind": "started", "rank": 1, "pid": 7, "log": str(folder / "rank one"), "err_log": ""}
    (folder / "agent.0.jsonl").write_text(json.dumps(started, separators=(",", ":")) + '\n{"time_s":2.0,"kind":"started","ra')
    assert run("logs", "12", "--rank", "1", cwd=tmp_path, PATH=path).stdout == "named by the user\n"
    done = run("logs", "13", cwd=tmp_path, PATH=path)
    assert done.returncode == 65
    assert "cannot find the output of job 13" in done.stderr


def test_a_job_that_the_controller_has_forgotten_has_the_code_of_its_report(tmp_path: Path) -> None:
    folder = tmp_path / "slaunch-logs" / "12.0"
    folder.mkdir(parents=True)
    write_json(RunReport(*[getattr(REPORT, name) if name != "log_dir" else str(folder) for name in RunReport.__annotations__]))
    (folder / "workerlog.0").write_text("first\n")
    path = without_slurm(tmp_path)
    done = run("logs", "-f", "12", cwd=tmp_path, PATH=path)
    assert (done.returncode, done.stdout) == (7, "first\n")
    (folder / "report.json").unlink()
    done = run("logs", "-f", "12", cwd=tmp_path, PATH=path)
    assert done.returncode == 65
    assert "cannot tell how job 12 ended" in done.stderr


@pytest.mark.parametrize("command", ["submit", "logs", "cancel", "report"])
def test_every_command_tells_what_it_does(command: str, tmp_path: Path) -> None:
    done = run(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: slaunch {command} ")
    if command != "submit":
        done = run(command, cwd=tmp_path)
        assert done.returncode == 2
        assert f"name a job: slaunch {command} 4711" in done.stderr


def test_a_submitted_job_is_remembered_with_its_script(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    command = ("slaunch", "submit", "a.py")
    job = Submitted("12", "", "train", str(tmp_path), command, ("sbatch", "--parsable"), "#!/bin/bash\n", 5.0)
    made, problem = remember(job, env)
    assert problem == ""
    assert (tmp_path / "slaunch-logs" / "12.sbatch").read_text() == "#!/bin/bash\n"
    assert recall("12", env) == recall("12_3", env) == recall("12.0", env) == made
    assert recall("13", env) is None
