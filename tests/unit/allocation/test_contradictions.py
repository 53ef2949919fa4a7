"""Environments with one thing wrong: the error names the variables."""

import pytest
from support.recorded import NO_FILES, processes

from slaunch.allocation.select import read, sightings, speaks
from slaunch.errors import AllocationError


def first(name):
    return dict(processes(name)[0].env)


def refused(env, *names):
    with pytest.raises(AllocationError) as error:
        read(env, read_text=NO_FILES)
    for name in names:
        assert name in error.value.seen
    assert error.value.exit_code == 65


def both(name, value):
    """The step's variable and the one that srun sets alike."""
    return {f"SLURM_STEP_{name}": value, f"SLURM_{name}": value}


STEP_FAULTS = {
    "nodes counted and named": (both("TASKS_PER_NODE", "1(x3)"), "3 nodes counted, 2 named"),
    "counts and size": ({"SLURM_STEP_NUM_TASKS": "4"}, "SLURM_STEP_TASKS_PER_NODE=2,1"),
    "rank out of range": ({"SLURM_PROCID": "3", "SLURM_GTIDS": ""}, "SLURM_STEP_NUM_TASKS=3"),
    "local rank out of range": ({"SLURM_LOCALID": "2"}, "SLURM_STEP_TASKS_PER_NODE"),
    "local rank of another rank": ({"SLURM_LOCALID": "1"}, "SLURM_GTIDS=0,1"),
    "another number of local tasks": ({"SLURM_GTIDS": "0"}, "SLURM_GTIDS=0"),
    "node out of range": ({"SLURM_NODEID": "2"}, "no node 2 in a list of 2"),
    "another node's name": ({"SLURMD_NODENAME": "n2"}, "SLURM_NODEID=0"),
    "no list": ({"SLURM_STEP_NODELIST": ""}, "SLURM_STEP_NODELIST"),
    "malformed list": ({"SLURM_STEP_NODELIST": "n[1-", "SLURM_JOB_NODELIST": "n[1-"}, "SLURM_STEP_NODELIST='n[1-'"),
    "no rank": ({"SLURM_LOCALID": ""}, "SLURM_LOCALID not set"),
    "malformed rank": ({"SLURM_LOCALID": "-1"}, "SLURM_LOCALID='-1'"),
    "malformed counts": (both("TASKS_PER_NODE", "2(x)"), "'2(x)'"),
    "malformed job id": ({"SLURM_JOB_ID": "1;id"}, "SLURM_JOB_ID='1;id'"),
}


@pytest.mark.parametrize("fault", STEP_FAULTS)
def test_a_step_with_one_fault(fault):
    changes, seen = STEP_FAULTS[fault]
    refused({**first("slurm_step"), **changes}, seen)


def test_a_rank_above_0_whose_step_and_job_disagree():
    env = dict(processes("slurm_step")[2].env)
    refused({**env, "SLURM_NNODES": "5"}, "SLURM_STEP_NUM_NODES=2", "SLURM_NNODES=5", "--preserve-env")


SHELL_FAULTS = {
    "nodes counted and named": ({"SLURM_JOB_NUM_NODES": "3"}, "SLURM_JOB_NODELIST=n[1-2]"),
    "CPUs and nodes": ({"SLURM_JOB_CPUS_PER_NODE": "4(x3)"}, "SLURM_JOB_CPUS_PER_NODE"),
    "rank": ({"SLURM_PROCID": "1"}, "SLURM_PROCID=1"),
    "GPUs": ({"SLURM_GPUS_PER_TASK": "a100:all"}, "a100:all"),
    "neither list nor number": (
        dict.fromkeys(["SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"], ""),
        "SLURM_JOB_NUM_NODES and SLURM_NNODES not set",
    ),
    "nodes given away": (  # what scontrol writes into slurm_job_JOB_resize.sh
        {"SLURM_JOB_NODELIST": "", "SLURM_NODELIST": "", "SLURM_JOB_NUM_NODES": "0", "SLURM_NNODES": "0"},
        "has given its nodes to another one",
    ),
    "no list of a component": ({"SLURM_HET_SIZE": "2"}, "HET_GROUP_0"),
}


@pytest.mark.parametrize("fault", SHELL_FAULTS)
def test_a_shell_with_one_fault(fault):
    changes, seen = SHELL_FAULTS[fault]
    refused({**first("slurm_batch"), **changes}, seen)


@pytest.mark.parametrize(
    ("name", "changes", "seen"),
    [
        ("openmpi4", {"OMPI_COMM_WORLD_RANK": "2"}, "OMPI_COMM_WORLD_SIZE=2"),
        ("openmpi4", {"OMPI_COMM_WORLD_LOCAL_RANK": "2"}, "OMPI_COMM_WORLD_LOCAL_SIZE=2"),
        ("openmpi4", {"OMPI_COMM_WORLD_LOCAL_RANK": ""}, "OMPI_COMM_WORLD_LOCAL_RANK not set"),
        ("openmpi4", {"OMPI_COMM_WORLD_LOCAL_SIZE": "x"}, "OMPI_COMM_WORLD_LOCAL_SIZE='x'"),
        ("mpich", {"PMI_RANK": "2"}, "PMI_SIZE=2"),
        ("mpich", {"PMI_SIZE": "two"}, "PMI_SIZE='two'"),
        ("mpich", {"MPI_LOCALRANKID": "5"}, "MPI_LOCALRANKID=5"),
        ("intelmpi", {"PMI_RANK": "7"}, "PMI_RANK=7"),
        ("documented/mvapich2", {"MV2_COMM_WORLD_RANK": "4"}, "MV2_COMM_WORLD_SIZE=4"),
        ("documented/flux", {"FLUX_TASK_RANK": "4"}, "FLUX_JOB_SIZE=4"),
        ("documented/flux", {"FLUX_TASK_LOCAL_ID": "3"}, "FLUX_JOB_NNODES=2"),
        ("documented/jsrun", {"LSB_DJOB_RANKFILE": "", "LSB_HOSTS": "h1 h2", "JSM_NAMESPACE_RANK": "4"}, "JSM_NAMESPACE_SIZE=4"),
        ("documented/jsrun", {"LSB_DJOB_RANKFILE": "/gone"}, "LSB_DJOB_RANKFILE='/gone'"),
        ("documented/lsf_batch", {"LSB_MCPU_HOSTS": "h1 h2 3"}, "LSB_MCPU_HOSTS"),
        ("documented/pals_cray_pmi", {"PALS_RANKID": "4"}, "PMI_SIZE=4"),
        ("documented/pals_cray_pmi", {"PMI_SIZE": ""}, "PALS_APINFO"),
        ("documented/pbs_batch", {"PBS_NODEFILE": ""}, "PBS_NODEFILE is not set"),
        ("documented/pbs_batch", {"PBS_NODENUM": "1"}, "PBS_NODENUM=1"),
        ("documented/pbs_batch", {"PBS_NODEFILE": "/gone"}, "No such file"),
    ],
)
def test_other_launchers_with_one_fault(name, changes, seen):
    refused({**first(name), **changes}, seen)


def test_p17_partial_variables_of_the_inner_launcher_are_not_filled_up_from_the_outer():
    outer = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"}
    env = {**outer, "SLURM_LOCALID": "0", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"}
    refused(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    task = read({**env, "OMPI_COMM_WORLD_LOCAL_RANK": "3"})
    assert (task.slot.rank, task.slot.size, task.allocation.launcher) == (3, 8, "openmpi")


def test_p60_the_two_settings_of_hydras_start_are_compared():
    env = {**first("mpich"), "HYDRA_BOOTSTRAP": "slurm", "I_MPI_HYDRA_BOOTSTRAP": "ssh"}
    (warning,) = read(env).allocation.warnings
    assert "HYDRA_BOOTSTRAP=slurm, I_MPI_HYDRA_BOOTSTRAP=ssh" in warning
    assert read({**env, "I_MPI_HYDRA_BOOTSTRAP": "slurm"}).allocation.warnings == ()


@pytest.mark.parametrize("name", ["slurm_step", "openmpi4", "mpich", "documented/flux", "documented/pals_cray_pmi"])
def test_an_error_that_all_tasks_see_is_told_by_one(name):
    broken = {**both("TASKS_PER_NODE", "x"), "PMI_SIZE": "x", "OMPI_COMM_WORLD_SIZE": "x", "FLUX_JOB_SIZE": "x"}
    spoken = 0
    for process in processes(name):
        env = {**process.env, **{key: value for key, value in broken.items() if key in process.env}}
        refused(env)
        spoken += speaks(env)
    assert spoken == 1


@pytest.mark.parametrize("env", [{}, {"SLURM_NTASKS": "2"}, {"SLURM_JOB_ID": "$(id)"}, {"FLUX_URI": "local"}])
def test_who_is_alone_or_in_doubt_speaks(env):
    assert speaks(env)


@pytest.mark.parametrize("value", ["", "x", "²", "-1", "٣", "99999999999999999999", "0\n"])
def test_sightings_and_speaks_never_raise(value):
    for name in ("slurm_step_pmix", "srun_pmi2_in_mpich", "openmpi4_in_step", "documented/slurm_cray_shasta", "documented/flux"):
        env = first(name)
        for variable in env:
            assert speaks({**env, variable: value}) in (True, False)
            assert sightings({**env, variable: value})
            try:
                read({**env, variable: value}, read_text=NO_FILES)
            except AllocationError as error:
                assert "=" in error.seen or "not set" in error.seen, error
