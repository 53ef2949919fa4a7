"""The srun command of slaunch's own step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recorded import processes

from slaunch.allocation.select import read
from slaunch.slurm.step import FIXED, STALE, clean, step_call

INNER = ("python", "-m", "slaunch", "train.py")


def call(name, env=None, extra=(), mpi=""):
    process = processes(name)[0]
    own = {**process.env, "PATH": "/bin", **(env or {})}
    return step_call(read(own), own, INNER, extra, mpi)


def options(made):
    """The options between srun and the inner command."""
    assert made.argv[0] == "srun"
    assert made.argv[-len(INNER) :] == INNER
    return made.argv[1 : -len(INNER)]


def test_p34_everything_is_said_explicitly():
    assert options(call("slurm_batch")) == (
        *FIXED,
        "--nodes=2",
        "--ntasks=2",
        "--ntasks-per-node=1",
        "--cpus-per-task=4",
    )


def test_p34_cpus_are_the_nodes_whole_share():
    """`-n4 --ntasks-per-node=2 -c 2`: two tasks of two CPUs on each node make one agent of four."""
    made = call("slurm_batch")
    assert "--cpus-per-task=4" in made.argv
    assert not {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK"} & set(made.env)


@pytest.mark.parametrize(
    "env",
    [{"SLURM_JOB_CPUS_PER_NODE": "4,2"}, {"SLURM_HINT": "nomultithread"}, {"SLURM_THREADS_PER_CORE": "1"}],
    ids=lambda e: next(iter(e)),
)
def test_p34_without_one_number_for_all_nodes_srun_gives_each_its_share(env):
    assert not [word for word in call("slurm_batch", env).argv if word.startswith("--cpus-per-task")]


def test_p36_p35_an_outer_steps_binding_is_not_handed_on():
    bound = {
        "SLURM_CPU_BIND": "quiet,mask_cpu:0xF",
        "SLURM_CPU_BIND_TYPE": "mask_cpu:",
        "SLURM_CPU_BIND_LIST": "0xF",
        "SLURM_CPU_BIND_VERBOSE": "quiet",
        "SLURM_MEM_BIND": "local",
    }
    made = call("slurm_batch", bound)
    assert not set(bound) & set(made.env)


def test_p37_binding_is_left_to_the_agent():
    assert "--cpu-bind=none" in call("slurm_batch").argv


def test_p38_two_variables_for_one_request_are_both_dropped():
    made = call("slurm_batch", {"SLURM_CPUS_PER_TASK": "4", "SLURM_TRES_PER_TASK": "cpu:8"})
    assert not {"SLURM_CPUS_PER_TASK", "SLURM_TRES_PER_TASK"} & set(made.env)


@pytest.mark.parametrize(
    ("name", "env", "wanted"),
    [
        ("slurm_batch", {}, ()),
        ("slurm_salloc", {}, ("--gpus-per-node=2",)),
        ("slurm_salloc", {"SLURM_GPUS_PER_NODE": "a100:2"}, ("--gpus-per-node=a100:2",)),
        ("slurm_batch", {"SLURM_GPUS": "8"}, ("--gpus=8",)),
        ("slurm_batch_gpus_per_task", {}, ("--gpus-per-node=4",)),
        ("slurm_batch_gpus_per_task", {"SLURM_GPUS_PER_TASK": "a100:1"}, ("--gpus-per-node=a100:2",)),
        ("slurm_batch_gpus_per_task", {"SLURM_TASKS_PER_NODE": "3,1"}, ("--gpus=8",)),
    ],
)
def test_p52_gpus_are_asked_for_in_the_jobs_own_form(name, env, wanted):
    made = call(name, env)
    assert tuple(word for word in made.argv if word.startswith(("--gpu", "--gres"))) == wanted
    assert not [variable for variable in made.env if variable.startswith("SLURM_GPUS_PER")]


def test_p10_each_component_has_its_own_request():
    made = call("slurm_batch_het", extra=("--x",))
    split = made.argv.index(":")
    first, second = made.argv[1:split], made.argv[split + 1 :]
    common = ("--ntasks-per-node=1",)
    assert first == (*FIXED, "--het-group=0", "--nodes=1", "--ntasks=1", *common, "--cpus-per-task=2", "--x", *INNER)
    assert second == (*FIXED, "--het-group=1", "--nodes=2", "--ntasks=2", *common, "--cpus-per-task=1", "--x", *INNER)


def test_p10_the_components_lists_reach_the_tasks():
    kept = call("slurm_batch_het").env
    assert kept["SLURM_JOB_NODELIST_HET_GROUP_1"] == processes("slurm_batch_het")[0].env["SLURM_JOB_NODELIST_HET_GROUP_1"]
    assert kept["SLURM_HET_SIZE"] == "2"


def test_p61_p70_the_wait_for_nodes_held_by_another_step_is_bounded():
    assert "--immediate=60" in call("slurm_batch").argv


def test_p72_the_environment_is_exported_whatever_the_batch_script_said():
    made = call("slurm_batch_export_none")
    assert "--export=ALL" in made.argv
    assert "SLURM_EXPORT_ENV" not in made.env
    assert made.env["PATH"] == "/bin"


def test_p73_p75_the_agents_decide_when_the_step_ends():
    assert {"--kill-on-bad-exit=0", "--wait=0", "--no-kill"} <= set(call("slurm_batch").argv)


def test_p77_what_was_asked_of_the_batch_script_does_not_change_the_step():
    asked = {
        "SLURM_NTASKS": "8",
        "SLURM_NPROCS": "8",
        "SLURM_NTASKS_PER_NODE": "4",
        "SLURM_DISTRIBUTION": "arbitrary",
        "SLURM_HOSTFILE": "h",
    }
    made = call("slurm_batch", asked)
    assert options(made) == options(call("slurm_batch"))
    assert not set(asked) & set(made.env)


def test_p55_identities_of_outer_launchers_do_not_reach_the_tasks():
    outer = {"PMI_RANK": "0", "PMI_FD": "4", "PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.pmix.1.0", "SLURM_STEP_ID": "4294967290"}
    made = call("slurm_batch", {**outer, "PMIX_MCA_gds": "hash"})
    assert not set(outer) & set(made.env)
    assert made.env["PMIX_MCA_gds"] == "hash"


def test_what_srun_needs_to_find_the_job_is_kept():
    job = (
        "SLURM_JOB_ID",
        "SLURM_JOBID",
        "SLURM_JOB_NODELIST",
        "SLURM_JOB_NUM_NODES",
        "SLURM_CONF",
        "SLURM_STEPMGR",
        "SLURM_CLUSTERS",
    )
    made = call("slurm_batch", {"SLURM_CONF": "/etc/slurm.conf", "SLURM_STEPMGR": "n1", "SLURM_CLUSTERS": "c"})
    assert set(job) <= set(made.env)


def test_a_pmi_plug_in_and_more_arguments():
    made = options(call("slurm_batch", extra=("--reservation=r", "--mem=1G"), mpi="pmix"))
    assert "--mpi=pmix" in made
    assert made[-2:] == ("--reservation=r", "--mem=1G")


@given(
    st.dictionaries(st.sampled_from([*STALE, "PATH", "SLURM_JOB_ID", "HOME"]).map(lambda name: name + "X"), st.text(max_size=3))
)
def test_only_the_named_variables_are_dropped(env):
    kept = clean(env)
    assert kept.items() <= env.items()
    assert {name for name in env if name not in kept} == {name for name in env if name.startswith(STALE)}
