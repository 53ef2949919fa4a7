"""Questions to programs that are real, but not Slurm's: one that answers, fails, hangs, or is not there."""

import time

import pytest

from slaunch.errors import AllocationError, MissingToolError
from slaunch.slurm import client


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Put a shell script on PATH in place of one of Slurm's tools."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def put(name, script):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return put


def test_an_answer(tools):
    tools("scontrol", 'echo "NodeName=$4 NodeAddr=10.0.0.7 State=IDLE"')
    tools("squeue", "echo 1:00:00")
    tools("srun", "echo slurm 23.11.4")
    assert client.node_address("n7") == "10.0.0.7"
    assert client.time_left_s("12") == 3600
    assert client.version() == (23, 11, 4)


def test_a_failure_is_told_with_the_programs_own_words(tools):
    tools("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    with pytest.raises(AllocationError, match="Invalid job id") as error:
        client.time_left_s("999")
    assert "squeue --noheader --jobs=999" in error.value.wanted


def test_a_tool_that_does_not_answer_is_ended_in_time(tools):
    tools("scontrol", "exec sleep 60")
    start = time.monotonic()
    with pytest.raises(AllocationError, match=r"no answer within 0\.2 s"):
        client.ask(("scontrol", "ping"), limit_s=0.2)
    assert client.node_address("n1", limit_s=0.2) == ""
    assert time.monotonic() - start < 30


def test_p85_p21_a_tool_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="squeue"):
        client.time_left_s("1")
    assert client.node_address("n1") == ""  # a container without Slurm's tools: the caller has other ways
