"""PBS, LSF and Flux."""

import pytest
from support.recorded import files, processes

from slaunch.allocation.lsf import compute_nodes
from slaunch.allocation.select import read
from slaunch.allocation.values import Shell, Task


def test_a_pbs_script_has_each_node_of_the_file_once():
    (process,) = processes("documented/pbs_batch")
    shell = read(process.env, host=process.host, read_text=process.read_text)
    assert isinstance(shell, Shell)
    assert (shell.allocation.job, shell.allocation.nodes, shell.shape.nodes) == ("418.pbs01", ("cn01", "cn02"), 2)


def test_an_lsf_script_has_the_hosts_of_whatever_variable_is_set():
    (process,) = processes("documented/lsf_batch")
    shell = read(process.env)
    assert isinstance(shell, Shell)
    assert (shell.allocation.job, shell.allocation.nodes) == ("991[3]", ("h1", "h2"))
    without = {key: value for key, value in process.env.items() if key != "LSB_MCPU_HOSTS"}
    assert read(without).allocation.nodes == ("h1", "h2")
    by_file = {"LSB_JOBID": "991", "LSB_DJOB_HOSTFILE": "f"}
    assert read(by_file, read_text=files({"f": "h2\nh2\nh1\n"})).allocation.nodes == ("h2", "h1")


@pytest.mark.parametrize(
    ("slots", "nodes"),
    [
        (["batch1", "a", "b"], ("a", "b")),
        (["login", "a"], ("a",)),
        (["l", "a", "a", "b", "b"], ("a", "b")),
        (["a", "a", "b", "b"], ("a", "b")),
        (["a", "b"], ("a", "b")),
        (["a"], ("a",)),
        (["batch1"], ("batch1",)),
    ],
)
def test_jsruns_launch_node_runs_no_task(slots, nodes):
    assert compute_nodes(slots) == nodes


def test_a_jsrun_task_on_a_host_of_another_name_learns_the_nodes_by_meeting():
    process = processes("documented/jsrun")[2]
    task = read(process.env, host="h11.example.org", read_text=process.read_text)
    assert isinstance(task, Task)
    assert (task.slot.rank, task.slot.local_rank, task.allocation.nodes) == (2, 0, ())


def test_flux_on_one_node_knows_its_node():
    env = {**processes("documented/flux")[0].env, "FLUX_JOB_NNODES": "1"}
    task = read(env, host="corona1")
    assert (task.allocation.nodes, task.allocation.tasks_per_node, task.allocation.job) == (("corona1",), (4,), "ƒ2WAB3zqH")
