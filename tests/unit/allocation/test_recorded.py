"""What the readers make of recorded environments: who is innermost, and who is who."""

from collections import Counter

import pytest
from support.recorded import DOCUMENTED, RECORDED, files, processes

from slaunch.allocation.select import read, sightings, speaks
from slaunch.allocation.values import Shell, Task
from slaunch.errors import AllocationError

LAUNCHERS = {
    "intelmpi": "intelmpi",
    "intelmpi_in_salloc": "intelmpi",
    "mpich": "hydra",
    "mpich_in_batch": "hydra",
    "mpich_in_pmi2_step": "hydra",
    "mpich_in_salloc": "hydra",
    "mpich_in_step": "hydra",
    "mpich5": "hydra",
    "mpich5_in_salloc": "hydra",
    "mpich5_in_step": "hydra",
    "openmpi4": "openmpi",
    "openmpi4_in_batch": "openmpi",
    "openmpi4_in_pmix_step": "openmpi",
    "openmpi4_in_salloc": "openmpi",
    "openmpi4_in_step": "openmpi",
    "openmpi5": "openmpi",
    "openmpi5_in_salloc": "openmpi",
    "srun_in_mpich": "slurm",
    "srun_in_mpich5": "slurm",
    "srun_in_openmpi4": "slurm",
    "srun_pmi2_in_mpich": "slurm",
    "srun_pmix_in_openmpi4": "slurm",
    "documented/flux": "flux",
    "documented/flux_cray_pals": "flux",
    "documented/flux_in_slurm_step": "flux",
    "documented/jsrun": "lsf",
    "documented/mvapich2": "mvapich",
    "documented/mvapich3": "mvapich",
    "documented/pals_cray_pmi": "pals",
    "documented/slurm_cray_shasta": "slurm",
    **{name: "slurm" for name in RECORDED if name.startswith(("slurm_step", "slurm_het_"))},
}
"""The innermost launcher of each recording of tasks."""

SHELLS = {
    "slurm_batch": (2, 4, ()),
    "slurm_batch_array": (1, 1, ()),
    "slurm_batch_export_none": (2, 1, ()),
    "slurm_batch_from_step": (2, 1, ()),
    "slurm_batch_gpus_per_task": (2, 2, ("--gpus-per-node=4",)),
    "slurm_interactive_step": (2, 2, ()),
    "slurm_salloc": (2, 4, ("--gpus-per-node=2",)),
    "slurm_salloc_from_step": (2, 1, ()),
    "slurm_step_preserve_env": (2, 0, ()),
    "documented/pbs_batch": (2, 0, ()),
    "documented/lsf_batch": (2, 0, ()),
}
"""Nodes, CPUs per task and GPU request of each recording of a shell. A step with --preserve-env cannot be told from one."""

HET_SHELLS = ("slurm_batch_het", "slurm_salloc_het")
REFUSED = ("prrte", "srun_in_mpich_2", "documented/pals_pmix")
TASKS = sorted(set(LAUNCHERS) - set(SHELLS))


def test_nothing_recorded_is_left_out():
    assert sorted({*TASKS, *SHELLS, *HET_SHELLS, *REFUSED}) == sorted(RECORDED + DOCUMENTED)


def tasks(name):
    read_tasks = [(process, read(process.env, "auto", process.host, process.read_text)) for process in processes(name)]
    assert all(isinstance(task, Task) for _, task in read_tasks)
    return read_tasks


@pytest.mark.parametrize("name", TASKS)
def test_the_innermost_launcher_numbers_the_tasks(name):
    found = tasks(name)
    assert {task.allocation.launcher for _, task in found} == {LAUNCHERS[name]}
    assert sorted(task.slot.rank for _, task in found) == list(range(len(found)))
    assert {task.slot.size for _, task in found} == {len(found)}


@pytest.mark.parametrize("name", TASKS)
def test_local_ranks_count_the_tasks_of_each_host(name):
    found = tasks(name)
    for host, count in Counter(process.host for process, _ in found).items():
        assert sorted(task.slot.local_rank for process, task in found if process.host == host) == list(range(count))


@pytest.mark.parametrize("name", TASKS)
def test_all_tasks_see_the_same_nodes_and_their_own_among_them(name):
    found = tasks(name)
    assert len({(task.allocation.nodes, task.allocation.tasks_per_node) for _, task in found}) == 1
    for process, task in found:
        if task.allocation.nodes:
            assert task.allocation.nodes[task.slot.node] == process.host
    counts = found[0][1].allocation.tasks_per_node
    if counts:
        assert Counter(task.slot.node for _, task in found) == Counter(dict(enumerate(counts)))


@pytest.mark.parametrize("name", TASKS)
def test_the_host_of_rank_0_is_right_or_not_told(name):
    found = tasks(name)
    host = next(process.host for process, task in found if task.slot.rank == 0)
    roots = {task.allocation.root for _, task in found}
    assert roots <= {host, ""}
    if LAUNCHERS[name] == "slurm" and name != "slurm_step_arbitrary":
        assert roots == {host}


@pytest.mark.parametrize("name", TASKS)
def test_one_task_speaks_for_all(name):
    assert [task.slot.rank for process, task in tasks(name) if speaks(process.env)] == [0]


@pytest.mark.parametrize("name", TASKS)
def test_one_launcher_stands_deepest(name):
    for process in processes(name):
        first, second = sightings(process.env)[:2]
        assert first.depth > second.depth
        assert first.evidence


@pytest.mark.parametrize("name", sorted(SHELLS))
def test_shells(name):
    (process,) = processes(name)
    shell = read(process.env, "auto", process.host, process.read_text)
    assert isinstance(shell, Shell)
    assert (shell.shape.nodes, shell.shape.cpus_per_task, shell.shape.gpu_args) == SHELLS[name]
    assert len(shell.allocation.nodes) == shell.shape.nodes
    assert shell.shape.het_groups == shell.shape.parts == ()
    assert speaks(process.env)


@pytest.mark.parametrize(("name", "cpus"), [("slurm_batch_het", (2, 1)), ("slurm_salloc_het", (1, 0))])
def test_p10_a_heterogeneous_job_has_a_shape_for_each_component(name, cpus):
    (process,) = processes(name)
    shell = read(process.env)
    assert isinstance(shell, Shell)
    assert shell.allocation.nodes == ("n1", "n2", "n3")
    assert shell.shape.nodes == 3
    assert shell.shape.het_groups == (0, 1)
    assert [part.nodes for part in shell.shape.parts] == [1, 2]
    assert tuple(part.cpus_per_task for part in shell.shape.parts) == cpus


def test_p10_nodes_of_a_heterogeneous_step_come_in_the_order_of_their_numbers():
    """Slurm sorts the list, n[1-2,4], but numbers the nodes component after component, n4 first."""
    assert {task.allocation.nodes for _, task in tasks("slurm_het_job_step")} == {("n4", "n1", "n2")}
    assert {task.allocation.nodes for _, task in tasks("slurm_het_step")} == {("n4", "n1", "n2")}
    assert {task.allocation.nodes for _, task in tasks("slurm_het_job_step_swapped")} == {("n4", "n1")}
    assert {task.allocation.nodes for _, task in tasks("slurm_het_job_step_1")} == {("n1", "n2")}


def test_p08_a_smaller_step_has_its_own_nodes():
    assert {task.allocation.nodes for _, task in tasks("slurm_step_smaller")} == {("n2", "n4")}


def test_p09_the_order_is_slurms_not_the_users():
    assert {task.allocation.nodes for _, task in tasks("slurm_step_reordered")} == {("n1", "n2", "n3")}


def test_rank_0_may_sit_elsewhere_than_on_node_0():
    assert {task.allocation.root for _, task in tasks("slurm_step_arbitrary_pmix")} == {"n3"}
    hosts = files({"hosts": "n3\nn1\nn3\nn2\n"})
    by_file = [read(process.env, read_text=hosts) for process in processes("slurm_step_arbitrary")]
    assert {task.allocation.root for task in by_file} == {"n3"}


def test_p14_a_batch_script_is_no_task_whatever_slurm_ntasks_says():
    (process,) = processes("slurm_batch")
    assert process.env["SLURM_NTASKS"] == "4"
    assert process.env["SLURM_PROCID"] == "0"
    assert isinstance(read(process.env), Shell)


def test_p12_a_shell_on_the_login_node_is_read_from_the_jobs_variables_only():
    (process,) = processes("slurm_salloc")
    shell = read(process.env, host=process.host)
    assert process.host not in shell.allocation.nodes
    assert shell.shape.cpus_per_task == 4
    assert "SLURM_CPUS_ON_NODE" not in process.env


def test_p35_a_shell_submitted_from_inside_a_step_is_not_that_steps_task():
    for name in ("slurm_batch_from_step", "slurm_salloc_from_step"):
        (process,) = processes(name)
        assert process.env["SLURM_STEP_ID"] == "0"
        shell = read(process.env)
        assert isinstance(shell, Shell)
        assert any("submitted from inside a step" in warning for warning in shell.allocation.warnings)


@pytest.mark.parametrize(("step", "kind"), [("batch", Shell), ("interactive", Shell), ("0", Task)])
def test_where_variables_contradict_each_other_the_control_group_decides(step, kind):
    for name in ("slurm_batch_from_step", "slurm_step_preserve_env"):
        (process,) = processes(name)
        group = f"0::/system.slice/slurmstepd.scope/job_7/step_{step}/user/task_0\n"
        try:
            assert isinstance(read(process.env, read_text=files({"/proc/self/cgroup": group})), kind)
        except AllocationError as error:
            assert (name, step) == ("slurm_batch_from_step", "0")  # no such thing exists: the step's list is another job's
            assert "SLURM" in error.seen


def test_prterun_alone_does_not_tell_how_many_there_are():
    for process in processes("prrte"):
        with pytest.raises(AllocationError, match="PMIX_RANK"):
            read(process.env)


def test_a_tie_names_both_launchers_and_the_option():
    """`mpirun -np 2 srun -n2`: one srun in each rank; nothing in the variables tells it from mpirun in each of two tasks."""
    for process in processes("srun_in_mpich_2"):
        with pytest.raises(AllocationError, match="--scheduler slurm or --scheduler hydra") as error:
            read(process.env)
        assert "SLURM_PROCID" in error.value.seen
        assert "PMI_RANK" in error.value.seen
        assert read(process.env, "slurm").allocation.launcher == "slurm"


@pytest.mark.parametrize("name", ["openmpi4_in_step", "openmpi4_in_pmix_step", "mpich_in_step", "mpich_in_pmi2_step"])
def test_p17_mpirun_in_a_one_task_step_is_innermost(name):
    assert [task.slot.size for _, task in tasks(name)] == [2, 2]


def test_p17_launchers_are_never_mixed():
    for process, task in tasks("mpich_in_salloc"):
        assert task.slot.size == int(process.env["PMI_SIZE"]) == 4
        assert process.env["SLURM_STEP_NUM_TASKS"] == "2"
        assert (task.allocation.step, task.allocation.nodes) == ("", ())


def test_p61_mpirun_in_a_step_is_told_from_mpirun_in_a_batch_script():
    for name in ("openmpi4_in_step", "openmpi4_in_batch"):
        assert {task.allocation.launcher for _, task in tasks(name)} == {"openmpi"}
    seen = sightings(processes("openmpi4_in_step")[0].env)
    assert [one.reader for one in seen] == ["openmpi", "slurm", "plain"]
    assert any(evidence.variable == "SLURM_STEP_ID" for evidence in seen[1].evidence)


def test_p07_a_stale_request_is_reported_and_not_used():
    for _, task in tasks("slurm_step_stale_request"):
        assert task.allocation.tasks_per_node == (1, 1)
        assert any("SLURM_NTASKS_PER_NODE=3" in warning for warning in task.allocation.warnings)


def test_p72_a_step_without_the_shells_environment_is_reported():
    for name in ("slurm_step_export_none", "slurm_batch_export_none"):
        (process,) = processes(name)
        assert any("SLURM_EXPORT_ENV=NONE" in warning for warning in read(process.env).allocation.warnings)


def test_a_step_of_one_task_in_a_larger_job_is_reported():
    for _, task in tasks("slurm_step_one_task"):
        assert any("one of the job's 2 nodes" in warning for warning in task.allocation.warnings)


def test_p77_what_was_asked_and_what_becomes_of_it_are_both_told():
    shell = read(processes("slurm_batch")[0].env)
    told = {evidence.variable: (evidence.value, evidence.meaning) for evidence in shell.allocation.evidence}
    assert told["SLURM_NTASKS"] == ("4", "tasks asked for, not started: the agents start the workers")
    assert told["SLURM_JOB_NODELIST"][1] == "its nodes: one agent on each"


def test_p15_one_task_for_each_gpu_is_as_good_as_one_for_each_node():
    assert [task.slot.local_rank for _, task in tasks("slurm_step_gpus")] == [0, 1, 2, 3] * 2
    assert {task.allocation.tasks_per_node for _, task in tasks("slurm_step_gpus")} == {(4, 4)}


def test_ordinary_environments_have_no_warnings():
    for name in ("slurm_step", "slurm_step_gpus", "slurm_het_step", "openmpi4_in_salloc", "mpich", "intelmpi_in_salloc"):
        assert [task.allocation.warnings for _, task in tasks(name) if task.allocation.warnings] == []


def test_p84_ids_of_arrays_and_steps():
    assert [task.allocation.job for _, task in tasks("slurm_step_array")] == ["2_3"]
    assert read(processes("slurm_batch_array")[0].env).allocation.job == "13_7"
    assert {task.allocation.step for _, task in tasks("srun_in_openmpi4")} == {"1"}
