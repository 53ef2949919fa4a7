"""What the user says although the launcher knows."""

import pytest
from support.recorded import processes, vectors

from slaunch.allocation.claims import check_rank, heed
from slaunch.allocation.select import read
from slaunch.errors import AllocationError
from slaunch.options import Options, Program


def options(**given):
    return Options(Program("train.py"), origins=dict.fromkeys(given, "command line"), **given)


def test_p13_a_node_number_that_the_batch_shell_expanded_is_refused_with_both_values():
    tasks = [read(process.env) for process in processes("slurm_step_pmix")]
    check_rank(tasks[0], options(node_rank=0))
    with pytest.raises(AllocationError, match=r"=0, but slurm says this is node 1"):
        check_rank(tasks[2], options(node_rank=0))
    check_rank(read(processes("mpich")[1].env), options(node_rank=5))  # mpiexec does not tell the nodes: nothing to compare


def test_a_count_that_disagrees_with_the_schedulers_is_refused_with_both_numbers():
    (env,) = (case["env"] for case in vectors("environments") if case["slaunch_should"].startswith("a count given by the user"))
    shell = read({**env, "SLURM_JOB_ID": "7"})
    assert heed(shell, options(nnodes=(2, 2)))[0] == shell
    with pytest.raises(AllocationError, match=r"=3, but slurm has 2"):
        heed(shell, options(nnodes=(3, 3)))
    for process in processes("slurm_step"):
        with pytest.raises(AllocationError, match=r"=4, but slurm has 2"):
            heed(read(process.env), options(nnodes=(4, 4)))


def test_a_step_that_slaunch_starts_may_be_smaller_than_the_job():
    shell = read(processes("slurm_batch")[0].env)
    standing, _ = heed(shell, options(nnodes=(1, 1)))
    assert standing.shape.nodes == 1


def test_an_address_without_a_number_of_nodes_is_noted_where_it_may_be_a_mistake():
    alone = read({})
    assert heed(alone, options(master="n1:8090"))[1].notes[0].endswith("--nnodes N makes N nodes meet there")
    for given in ({"master": "127.0.0.1:8090"}, {"master": "n1:8090", "nnodes": (1, 1)}):
        assert heed(alone, options(**given))[1].notes == ()


def test_nodes_beyond_a_range_or_of_spares_are_no_contradiction():
    """They wait; a step that slaunch starts has no more of them than the user wants."""
    tasks = [read(process.env) for process in processes("slurm_step")]  # on two nodes
    with pytest.raises(AllocationError, match=r"=1, but slurm has 2"):
        heed(tasks[0], options(nnodes=(1, 1)))
    shell = read(processes("slurm_batch")[0].env)
    for given in ({"nnodes": (1, 1), "spares": 1}, {"nnodes": (1, 2), "spares": 0}):
        assert heed(tasks[0], options(**given))[0] == tasks[0]
        assert heed(shell, options(**given))[0].shape.nodes == 2
