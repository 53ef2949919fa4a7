"""Environments that other projects' tests use; many are made up, and refused."""

import pytest
from support.recorded import NO_FILES, files, vectors

from slaunch.allocation.jobid import slurm_job
from slaunch.allocation.select import read
from slaunch.allocation.values import Shell, Task
from slaunch.errors import AllocationError

CASES = vectors("environments")


def case(start):
    (found,) = [case for case in CASES if case["slaunch_should"].startswith(start)]
    return found


def refused(env, *names):
    with pytest.raises(AllocationError) as error:
        read(env, read_text=NO_FILES)
    for name in names:
        assert name in error.value.seen


def test_a_rank_without_a_step_and_a_node_that_is_not_listed():
    refused(case("refuse: node 3 of a list")["env"], "SLURM_PROCID=1", "SLURM_NODEID=3", "SLURM_NODELIST=1.1.1.1, 1.1.1.2")


def test_the_same_with_a_step():
    env = case("refuse: node 3 of a list")["env"]
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "1.1.1.1, 1.1.1.2", "SLURM_STEP_TASKS_PER_NODE": "10(x2)"}
    refused({**env, **step}, "SLURM_NODEID=3", "no node 3 in a list of 2")


def test_a_plain_machine():
    task = read(case("plain machine")["env"], host="laptop")
    assert isinstance(task, Task)
    assert (task.slot.rank, task.slot.size, task.allocation.nodes, task.allocation.root) == (0, 1, ("laptop",), "laptop")


@pytest.mark.parametrize("start", ["no job id and no node list", "an allocation without a step", "decide by step variables"])
def test_a_number_of_tasks_alone_is_no_job(start):
    refused(case(start)["env"], "SLURM_NTASKS=2", "SLURM_JOB_ID", "SLURM_JOB_NODELIST")


@pytest.mark.parametrize("start", ["an allocation without a step", "decide by step variables"])
def test_p16_the_jobs_name_decides_nothing(start):
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
    named, unnamed = read({**case(start)["env"], **job}), read({"SLURM_NTASKS": "2", **job})
    assert isinstance(named, Shell)
    assert (named.shape, named.allocation.nodes) == (unnamed.shape, unnamed.allocation.nodes)
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_PROCID": "1"}
    place = {"SLURM_LOCALID": "0", "SLURM_NODEID": "1"}
    assert isinstance(read({**case(start)["env"], **job, **step, **place}), Task)


def test_jsrun_skips_the_batch_node():
    found = case("the first line names the batch node")
    ranks = files({"r": "batch\n10.10.10.0\n10.10.10.1\n10.10.10.2\n10.10.10.3\n"})
    task = read({**found["env"], "LSB_DJOB_RANKFILE": "r"}, host=found["host"], read_text=ranks)
    assert isinstance(task, Task)
    reads = found["peer_reads"]
    assert (task.slot.size, task.slot.rank, task.slot.local_rank, task.slot.node) == (
        reads["world"],
        reads["rank"],
        reads["local_rank"],
        reads["node_rank"],
    )
    assert task.allocation.nodes[0] == reads["address"]


@pytest.mark.parametrize("env", [{"LSB_DJOB_RANKFILE": "", "LSB_JOBID": "1234"}, {"LSB_JOBID": "1234"}], ids=["empty", "missing"])
def test_an_lsf_job_without_hosts(env):
    assert env in [case["env"] for case in CASES if case["slaunch_should"] == "the same"]
    refused(env, "LSB_DJOB_RANKFILE", "LSB_JOBID=1234")


def test_worker_variables_are_reported_and_not_inherited():
    env = case("left-over worker variables")["env"]
    task = read(env, host="laptop")
    assert (task.slot.rank, task.slot.size) == (0, 1)
    assert all(f"{name}={value}" in task.allocation.warnings[-1] for name, value in env.items())


def test_old_spelling_alone():
    shell = read({**case("the same (old spelling")["env"], "SLURM_JOBID": "88888"})
    assert isinstance(shell, Shell)
    assert (shell.allocation.job, shell.allocation.nodes) == ("88888", ("node01", "node02", "node03", "node04"))


@pytest.mark.parametrize("job", ["12;id", "$(id)"])
def test_job_ids_with_shell_characters(job):
    env = {"SLURM_JOBID": job}
    assert env in [case["env"] for case in CASES]
    refused(env, "SLURM_JOBID", job)


def test_a_list_of_4000_nodes_is_read():
    text = ",".join(f"rack{i}node{i:04d}" for i in range(4000))
    assert len(read({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": text}).allocation.nodes) == 4000


def test_the_arrays_id_and_index_name_the_run():
    env = case("run id of an array task")["env"]
    assert slurm_job(env) == "41_7"
    shell = read(env)
    assert isinstance(shell, Shell)
    assert (shell.shape.nodes, shell.allocation.nodes) == (2, ())
