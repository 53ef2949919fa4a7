"""Which way to meet, from the environment and the files of this interpreter."""

import pytest

from slaunch.allocation.values import Allocation, Slot, Task
from slaunch.errors import MissingToolError, UsageError
from slaunch.options import Options, Program
from slaunch.rendezvous.choose import choose
from slaunch.rendezvous.library import INTEL, MPICH, OPENMPI, Library
from slaunch.rendezvous.pmi import NONE, PALS, PMI1, PMI2, PMIX, Interface, fits, read_interface

pytestmark = pytest.mark.usefixtures("wheel")
STEP = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}
SRUN_PMI2 = {**STEP, "PMI_FD": "8", "PMI_RANK": "1", "PMI_SIZE": "2", "PMI_JOBID": "7.0"}
SRUN_PMIX = {**STEP, "PMIX_RANK": "1", "PMIX_NAMESPACE": "slurm.pmix.7.0"}
HYDRA = {"PMI_FD": "9", "PMI_RANK": "1", "PMI_SIZE": "2", "HYDI_CONTROL_FD": "10", "MPI_LOCALRANKID": "1"}
MPIRUN = {"OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1", "PMIX_NAMESPACE": "prterun-1"}


def task(nodes=("n1", "n2"), size=2):
    return Task(Allocation("slurm" if nodes else "hydra", "7", "0", nodes, (1,) * len(nodes)), Slot(1, size, 0))


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ({}, NONE),
        (STEP, NONE),
        (SRUN_PMI2, PMI2),
        (SRUN_PMIX, PMIX),
        (HYDRA, PMI1),
        (MPIRUN, PMIX),
        ({**STEP, **HYDRA}, PMI1),  # mpirun of MPICH started its proxies by srun
        ({**SRUN_PMI2, **MPIRUN}, PMIX),
        ({"PMI_PORT": "host:1234", "PMI_RANK": "0"}, PMI1),
        ({"PALS_RANKID": "0", "PMI_RANK": "0", "PMI_CONTROL_PORT": "1"}, PALS),
    ],
)
def test_process_manager_interfaces(env, kind):
    assert read_interface(env).kind == kind


def test_p63_p64_who_understands_what():
    pairs = {(kind, interface) for kind in (MPICH, INTEL, OPENMPI, "") for interface in (PMIX, PMI2, PMI1, PALS, NONE)}
    understood = {(kind, it) for kind, it in pairs if fits(Library(kind, ""), Interface(it, ""))}
    assert understood == {(OPENMPI, PMIX), *((kind, it) for kind in (MPICH, INTEL) for it in (PMI1, PMI2, PALS))}


def options(way="auto", nnodes=(0, 0), master=""):
    return Options(Program("train.py"), rendezvous=way, nnodes=nnodes, master=master)


AUTO = options()


def test_one_task_needs_no_meeting():
    assert choose(task(size=1), AUTO, {}).ways == ("none",)
    assert choose(task(size=1), options("mpi"), {}).ways == ("none",)
    assert choose(task(size=1), options(nnodes=(1, 4)), {}).ways == ("none",)


@pytest.mark.parametrize(
    ("nnodes", "master", "way"),
    [
        ((2, 2), "", "tcp"),
        ((2, 2), "n1:6000", "tcp"),
        ((1, 2), "n1:6000", "tcp"),
        ((2, 2), "etcd://n1:2379", "etcd"),
        ((1, 1), "n1:6000", "none"),
    ],
)
def test_f4_f5_f98_f99_nodes_that_are_started_by_hand(nnodes, master, way):
    assert choose(task(size=1), options(nnodes=nnodes, master=master), {}).ways == (way,)


def test_what_the_user_asks_for_is_done():
    assert choose(task(), options("slurm"), SRUN_PMIX).ways == ("slurm",)
    assert choose(task(), options("mpi"), {}).ways == ("mpi",)
    assert choose(task(), options("tcp", master="n1:6000"), SRUN_PMIX).ways == ("tcp",)
    with pytest.raises(UsageError, match="auto, mpi, slurm, tcp, etcd"):
        choose(task(), options("carrier-pigeon"), {})


def test_p56_tasks_that_become_workers_leave_mpi_to_the_program():
    shared = Task(Allocation("slurm", "7", "0", ("n1", "n2"), (2, 1)), Slot(0, 3, 0))
    assert choose(shared, AUTO, SRUN_PMI2).ways == ("slurm",)
    assert choose(shared, options("mpi"), SRUN_PMI2).ways == ("mpi",)


def abi(name):
    """mpi4py's own variable for the choice of the library."""
    return {"MPI4PY_MPIABI": name}


@pytest.mark.parametrize(
    ("library", "env", "ways"),
    [
        ("mpich", SRUN_PMI2, ("mpi", "slurm")),
        ("mpich", SRUN_PMIX, ("slurm",)),
        ("mpich", STEP, ("slurm",)),
        ("openmpi", SRUN_PMI2, ("slurm",)),
        ("openmpi", SRUN_PMIX, ("mpi", "slurm")),
        ("openmpi", STEP, ("slurm",)),
    ],
)
def test_p53_p64_auto_takes_mpi_only_where_library_and_plugin_match(library, env, ways):
    choice = choose(task(), AUTO, {**env, **abi(library)})
    assert choice.ways == ways
    assert f"MPI4PY_MPIABI={library}" in choice.reason


def test_auto_needs_every_task_to_decide_alike():
    """The decision uses nothing that differs between the tasks of a healthy job: rank and node leave it as it is."""
    choices = {
        choose(Task(task().allocation, Slot(rank, 8, 0, node)), AUTO, {**SRUN_PMI2, "PMI_RANK": str(rank), **abi("mpich")})
        for rank in range(8)
        for node in range(2)
    }
    assert len(choices) == 1


def test_where_nothing_can_work_the_error_says_why():
    with pytest.raises(MissingToolError) as error:
        choose(task(nodes=()), AUTO, {**HYDRA, **abi("openmpi")})
    assert "mpi4py's library is Open MPI" in error.value.seen
    assert "PMI-1 (PMI_FD)" in error.value.seen
    assert "does not tell which nodes take part" in error.value.seen


def test_under_mpirun_alone_there_is_no_second_way():
    assert choose(task(nodes=()), AUTO, {**HYDRA, **abi("mpich")}).ways == ("mpi",)


def test_meeting_on_another_machine_needs_a_number_of_nodes():
    with pytest.raises(UsageError, match="--nnodes N"):
        choose(task(size=1), options(master="192.0.2.7:29500"), {})
    for own in ("127.0.0.1:29500", "localhost:29500", "etcd://192.0.2.7:2379"):
        assert choose(task(size=1), options(master=own), {}).ways == ("none",)
