"""The mpirun command."""

import pytest
from support.recorded import files, processes

from slaunch.allocation.mpirun import Launcher, exported, flavour, mpirun_call
from slaunch.allocation.select import read
from slaunch.errors import AllocationError
from slaunch.frozen import replace

VERSIONS = {
    "mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n": "openmpi",
    "mpirun (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n": "openmpi",
    "HYDRA build details:\n    Version:                                 4.0.2\n": "hydra",
    "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)\nCopyright 2003-2026\n": "intelmpi",
    "mpiexec version 1.8.0 revision abc\n": "pals",
}
"""First lines of `--version`: the first four from the programs themselves, PALS' as public scripts tell it apart."""

INNER = ("python", "-m", "slaunch", "train.py", "--lr", "0.1")


def shell():
    (process,) = processes("documented/pbs_batch")
    return read(process.env, read_text=process.read_text), process.env


def call(kind, env=None, extra=(), root=False):
    standing, own = shell()
    return mpirun_call(Launcher("mpirun", kind, root), standing, {**own, **(env or {})}, INNER, extra)


@pytest.mark.parametrize("text", VERSIONS)
def test_launchers_are_told_apart_by_their_version(text):
    assert flavour(text, "mpirun") == VERSIONS[text]


@pytest.mark.parametrize("text", ["", "usage: mpirun", "mpirun 1.0"])
def test_an_unknown_launcher_is_named(text):
    with pytest.raises(AllocationError, match=r"`mympirun --version` printed"):
        flavour(text, "mympirun")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("hydra", "-hosts cn01,cn02 -n 2 -ppn 1 -bind-to none"),
        ("intelmpi", "-n 2 -ppn 1"),
        ("pals", "--envall --hosts cn01,cn02 -n 2 --ppn 1 --cpu-bind none"),
        ("jsrun", "--nrs 2 --rs_per_host 1 --tasks_per_rs 1 --cpu_per_rs ALL_CPUS --gpu_per_rs ALL_GPUS --bind none"),
    ],
)
def test_one_unbound_process_on_each_host(kind, options):
    made = call(kind, extra=("--x", "y z"))
    assert made.argv == ("mpirun", *options.split(), "--x", "y z", *INNER)
    assert made.env["PBS_JOBID"] == "418.pbs01"
    assert made.env.get("I_MPI_PIN") == ("off" if kind == "intelmpi" else None)


def test_intel_mpi_finds_a_jobs_hosts_itself_and_is_told_those_of_a_host_file():
    env = {"SLAUNCH_HOSTFILE": "h"}
    made = mpirun_call(Launcher("mpiexec", "intelmpi"), read(env, read_text=files({"h": "a\nb\n"})), env, INNER)
    assert made.argv == ("mpiexec", "-hosts", "a,b", "-n", "2", "-ppn", "1", *INNER)


def test_fewer_hosts_than_the_job_has():
    standing, env = shell()
    one = replace(standing, shape=replace(standing.shape, nodes=1))
    assert mpirun_call(Launcher("mpiexec", "hydra"), one, env, INNER).argv[1:5] == ("-hosts", "cn01", "-n", "1")


def test_p45_open_mpi_does_not_bind_and_hands_on_what_makes_sense_elsewhere():
    made = call(
        "openmpi", {"PATH": "/bin", "HOSTNAME": "cn01", "SSH_CLIENT": "x", "OMPI_COMM_WORLD_RANK": "0", "BASH_FUNC_x%%": "y"}
    )
    assert made.argv[:9] == ("mpirun", "--host", "cn01:1,cn02:1", "-np", "2", "--map-by", "ppr:1:node", "--bind-to", "none")
    assert made.argv[-len(INNER) :] == INNER
    named = made.argv[10 : -len(INNER) : 2]
    assert {"PATH", "PBS_JOBID", "PBS_NODEFILE"} <= set(named)
    assert not {"HOSTNAME", "SSH_CLIENT", "OMPI_COMM_WORLD_RANK", "BASH_FUNC_x%%", "PBS_NODENUM", "PBS_TASKNUM"} & set(named)


def test_variables_are_handed_on_in_a_fixed_order():
    assert exported({"B": "", "A": "", "_": "", "PWD": ""}) == ("A", "B")


def test_p65_root_is_explained_and_not_permitted_silently():
    with pytest.raises(AllocationError, match="--allow-run-as-root"):
        call("openmpi", root=True)
    assert "--allow-run-as-root" in call("openmpi", extra=("--allow-run-as-root",), root=True).argv
    consent = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert "--allow-run-as-root" not in call("openmpi", consent, root=True).argv
    assert call("hydra", root=True).argv == call("hydra").argv
