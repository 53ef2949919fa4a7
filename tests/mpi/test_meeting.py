"""Meeting by MPI under the mpiexec of the tests' own MPICH: what works, and what ends in an error instead of a hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

BIN = os.path.dirname(sys.executable)
MPIEXEC = os.path.join(BIN, "mpiexec")
TASK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs", "meet.py")


def run(tasks: int, *args: str, launcher: tuple[str, ...] = (MPIEXEC, "-n"), timeout: float = 90, **env: str):
    """Start tasks that meet; each prints one line of JSON."""
    argv = [*launcher, str(tasks), sys.executable, TASK, *args]
    return subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, timeout=timeout, check=False)


def told(done):
    """What the tasks printed; mpiexec may put several on one line."""
    decoder, text, found = json.JSONDecoder(), done.stdout, []
    at = text.find("{")
    while at >= 0:
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = text.find("{", end)
    return found


@pytest.mark.parametrize("tasks", [2, 5])
def test_p57_tasks_meet_without_becoming_mpi_processes(tasks):
    """The allgather is in a child, which is gone when the meeting ends; the agents' star stands; Hydra sees a clean end."""
    done = run(tasks)
    assert done.returncode == 0, done.stderr
    found = told(done)
    assert sorted(each["rank"] for each in found) == list(range(tasks))
    assert {(each["way"], each["facts"], each["mpi4py"], each["children"], each["star"]) for each in found} == {
        ("mpi", tasks, False, 0, "ok")
    }
    assert len({each["secret"] for each in found}) == 1
    assert f"met {tasks} tasks by mpi: mpi4py's MPICH" in done.stderr


def test_p58_many_rounds_need_one_mpi_init():
    """MPI cannot be initialised twice: agreement goes through the same child, and the agents' channel serves for the rest."""
    done = run(3, "--rounds", "20")
    assert done.returncode == 0, done.stderr
    assert [each["star"] for each in told(done)] == ["ok"] * 3


def test_p54_singletons_are_not_a_world():
    """The library cannot reach the process manager: each process would be alone. MPI is not used, and slaunch says so."""
    done = run(2, "--way", "mpi", "--without", "PMI_FD,PMI_RANK,PMI_SIZE,PMI_PORT,PMI_ID")
    assert {each["error"] for each in told(done)} == {"RendezvousError"}
    for each in told(done):
        assert "its world has 1 process, but 2 tasks were started (MPICH" in each["seen"]


def test_p53_a_process_manager_that_does_not_answer_is_passed_by_under_auto():
    done = run(2, "--nodes", "localhost", "--without", "PMI_FD,PMI_RANK,PMI_SIZE,PMI_ID", "--broken-pmi")
    assert done.returncode == 0, done.stderr
    assert {each["way"] for each in told(done)} == {"slurm"}
    assert "met 2 tasks by slurm: mpi does not work: " in done.stderr


def test_p69_a_hang_in_mpi_init_ends_at_the_deadline_and_leaves_no_process():
    """One task never calls MPI_Init: the other's would wait for ever."""
    start = time.monotonic()
    done = run(2, "--way", "mpi", "--timeout", "4", "--asleep", "1")
    assert time.monotonic() - start < 60
    found = {each["rank"]: each for each in told(done)}
    assert found[0]["error"] == "RendezvousError"
    assert "MPI did not answer in time" in found[0]["seen"]
    assert found[0]["children"] == 0


def test_p69_a_hang_in_mpi_init_is_followed_by_the_other_way():
    """The sleeper wakes up late, when the first task has given MPI up; both meet at the first node's port."""
    done = run(2, "--nodes", "localhost", "--timeout", "18", "--late", "1:8")
    assert done.returncode == 0, done.stderr
    found = {each["rank"]: each for each in told(done)}
    assert {each["way"] for each in found.values()} == {"slurm"}
    assert "met 2 tasks by slurm: mpi does not work: MPI did not answer in time" in done.stderr
    assert found[1]["reason"] == "mpi does not work: another task has given MPI up"
    assert "clocks differ" not in done.stderr


def test_p53_a_crash_in_mpi_init_is_the_childs_own(tmp_path):
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("class rc: pass\n")
    (package / "MPI.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    done = run(2, "--way", "mpi", PYTHONPATH=str(tmp_path))
    assert {each["error"] for each in told(done)} == {"RendezvousError"}
    assert "the process that called MPI_Init was ended by SIGSEGV" in told(done)[0]["seen"]


def test_p67_what_the_library_says_is_shown():
    done = run(2, "--way", "mpi", "--without", "PMI_FD,PMI_RANK,PMI_SIZE,PMI_ID", "--broken-pmi")
    first = min(told(done), key=lambda each: each["rank"])
    assert "it said:\n        " in first["seen"]
    assert "PMI" in first["seen"]
    assert "the mpirun of the library that mpi4py loads" in first["todo"]


def test_what_the_library_prints_does_not_disturb():
    """Libraries print on standard output when they are in the mood, or told to."""
    done = run(2, MPIR_CVAR_DEBUG_SUMMARY="1")
    assert done.returncode == 0, done.stderr
    assert {each["way"] for each in told(done)} == {"mpi"}


def test_a_killed_agent_takes_its_child_along():
    """The child is between two frames; the agent is killed; nothing is left of it."""
    done = run(1, "--child")
    pid = told(done)[0]["child"]
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")


def test_ranks_of_the_launcher_decide_where_mpis_are_others():
    done = run(3, "--reverse")
    assert done.returncode == 0, done.stderr
    assert sorted(each["rank"] for each in told(done)) == [0, 1, 2]
    assert all(each["pids"][each["rank"]] == each["pid"] for each in told(done))
