"""Which starter is taken for which shell."""

import pytest
from support.recorded import files, processes

from slaunch.allocation.select import read
from slaunch.errors import MissingToolError
from slaunch.slurm.start import start_call
from slaunch.slurm.step import step_call

INNER = ("python", "-m", "slaunch", "train.py")


@pytest.fixture
def path(tmp_path):
    """A folder for PATH, and a way to put programs into it."""

    def put(*programs):
        for program in programs:
            (tmp_path / program).write_text("#!/bin/sh\n")
            (tmp_path / program).chmod(0o755)
        return f"/nonexistent:{tmp_path}"

    return put


def asked(answer):
    """A launcher that answers `--version` with this text; the commands asked are kept."""
    commands = []
    return commands, lambda argv: commands.append(tuple(argv)) or answer


def test_a_slurm_shell_gets_srun_and_no_question_is_asked():
    env = processes("slurm_batch")[0].env
    commands, version = asked("")
    assert start_call(read(env), env, INNER, version=version) == step_call(read(env), env, INNER)
    assert commands == []


def test_a_pbs_shell_gets_the_sites_mpiexec(path):
    (process,) = processes("documented/pbs_batch")
    shell = read(process.env, read_text=process.read_text)
    commands, version = asked("mpiexec version 1.8.0 revision abc")
    made = start_call(shell, {**process.env, "PATH": path("mpirun", "mpiexec")}, INNER, ("--no-vni",), version)
    assert commands == [("mpiexec", "--version")]
    assert made.argv[:3] == ("mpiexec", "--envall", "--hosts")
    assert made.argv[-5:] == ("--no-vni", *INNER)


def test_an_lsf_shell_gets_jsrun_where_there_is_one(path):
    env = processes("documented/lsf_batch")[0].env
    commands, version = asked("HYDRA build details:")
    assert start_call(read(env), {**env, "PATH": path("mpirun")}, INNER, version=version).argv[:3] == (
        "mpirun",
        "-hosts",
        "h1,h2",
    )
    assert start_call(read(env), {**env, "PATH": path("jsrun")}, INNER, version=version).argv[:3] == ("jsrun", "--nrs", "2")
    assert commands == [("mpirun", "--version")]


def test_a_host_file_gets_mpirun(path):
    env = {"SLAUNCH_HOSTFILE": "h", "PATH": path("mpirun")}
    shell = read(env, read_text=files({"h": "a\nb\n"}))
    _, version = asked("HYDRA build details:")
    assert start_call(shell, env, INNER, version=version).argv == (
        "mpirun",
        *["-hosts", "a,b", "-n", "2", "-ppn", "1", "-bind-to", "none"],
        *INNER,
    )


def test_no_launcher_at_all_is_named(path):
    (process,) = processes("documented/pbs_batch")
    shell = read(process.env, read_text=process.read_text)
    with pytest.raises(MissingToolError, match="none of mpiexec, mpirun on PATH=/nonexistent"):
        start_call(shell, {"PATH": path()}, INNER)
