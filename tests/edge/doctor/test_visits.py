"""Steps that do not start as they should. The agents are real; srun's part is played by a program that fails as told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.recorded import processes

SRUN = """#!{python}
import os, subprocess, sys

args = sys.argv[1:]
if args == ["--version"]:
    sys.exit(print("slurm 24.11.5"))
if args == ["--mpi=list"]:
    sys.exit(print("MPI plugin types are...\\n\\tnone\\n\\tpmi2"))
with open("{folder}/calls", "a") as file:
    print(*args, file=file)
away = [word.partition("=")[2] for word in args if word.startswith("--exclude=")]
nodes = [node for node in ("n1", "n2") if node not in ",".join(away).split(",")]
{fault}
inner = args[args.index(sys.executable):]
def start(node):
    env = {{**os.environ, "SLURMD_NODENAME": node, "SLURM_STEP_ID": "0"}}
    return subprocess.Popen(inner, env=env, stdin=subprocess.PIPE, text=True, bufsize=1)

agents = [start(node) for node in nodes]
for line in sys.stdin:
    for agent in agents:
        agent.stdin.write(line)
for agent in agents:
    agent.stdin.close()
sys.exit(max(agent.wait() for agent in agents))
"""
"""In the shell of a job on n1 and n2 of which `fault` is told."""


def doctor(folder: Path, fault: str, *options: str) -> tuple[dict[str, Any], list[str]]:
    """What the doctor tells, and the calls of srun for a step."""
    srun = folder / "srun"
    srun.write_text(SRUN.format(python=sys.executable, folder=folder, fault=fault))
    srun.chmod(0o755)
    (shell,) = processes("slurm_salloc")
    env = {name: value for name, value in shell.env.items() if name.startswith("SLURM_")}
    done = subprocess.run(
        [sys.executable, "-m", "slaunch", "doctor", "--json", "--quick", *options],
        env={**env, "PATH": f"{folder}:{os.environ['PATH']}"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode in (1, 78), done.stderr
    return json.loads(done.stdout), (folder / "calls").read_text().splitlines()


def step_findings(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in told["findings"] if each["check"] == "step"]


def test_a_default_plugin_with_which_nothing_starts(tmp_path: Path) -> None:
    told, calls = doctor(tmp_path, 'if "--mpi=none" not in args: sys.exit("srun: error: mpi/pmix: cannot load plugin")')
    (finding,) = step_findings(told)
    assert "srun's default for --mpi did not start; srun said: mpi/pmix: cannot load plugin" in finding["seen"]
    assert list(told["nodes"]) == ["n1", "n2"] and told["absent"] == [] and len(calls) == 2


def test_the_user_s_plugin_is_not_changed(tmp_path: Path) -> None:
    told, calls = doctor(tmp_path, "sys.exit(\"srun: error: Invalid MPI type 'nonsense'\")", "--step-args", "--mpi=nonsense")
    (finding,) = step_findings(told)
    assert finding["nodes"] == told["absent"] == ["n1", "n2"] and "Invalid MPI type" in finding["seen"]
    assert told["exit_code"] == 78 and told["nodes"] == {} and len(calls) == 1


def test_nodes_that_fail_one_after_the_other(tmp_path: Path) -> None:
    fault = 'if len(nodes) > 1: sys.exit("srun: error: Task launch for StepId=7.0 failed on node n2: Unspecified error")'
    told, calls = doctor(tmp_path, fault)
    (finding,) = step_findings(told)
    assert finding["nodes"] == ["n2"] and list(told["nodes"]) == ["n1"]
    assert len(calls) == 2 and "--exclude=n2" in calls[1] and "--nodes=1" in calls[1] and "--mpi=none" not in calls[1]
