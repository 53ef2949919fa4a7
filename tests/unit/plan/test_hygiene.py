"""What a worker does not inherit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plans

from slaunch.plan.hygiene import TABLE, compressed, covers, drops, reasons

PMI = ("PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI2_X", "PMIX_RANK", "PMIX_NAMESPACE", "PMIX_SERVER_URI2", "OMPI_COMM_WORLD_RANK")
OTHERS = ("PALS_RANKID", "HYDI_CONTROL_FD", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess")
STEP = ("SLURM_TASK_PID", "SLURM_STEP_RESV_PORTS", "SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST", "SLURM_PMIX_MAPPING_SERV")
LEFT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "PADDLE_TRAINER_ID", "PADDLE_MASTER", "TF_CONFIG",
        "JAX_COORDINATOR_ADDRESS", "HOROVOD_RANK", "CROSS_SIZE", "FLAGS_selected_gpus", "SLAUNCH_SECRET")
KEPT = ("PATH", "HOME", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "OMPI_MCA_btl", "PMIX_MCA_gds", "NCCL_DEBUG",
        "CUDA_VISIBLE_DEVICES", "PADDLE_XCCL_BACKEND", "JAX_PLATFORMS", "HOROVOD_FUSION_THRESHOLD", "RANKS", "X_RANK")


def test_p56_an_agent_s_identity_goes_in_every_form():
    assert set(drops((*PMI, *OTHERS, *STEP, *KEPT), "agent")) == {*PMI, *OTHERS, *STEP}


def test_p56_a_task_that_becomes_its_worker_keeps_its_identity():
    assert drops((*PMI, *OTHERS, *STEP, *KEPT), "task") == ()


@pytest.mark.parametrize("layout", ["agent", "task"])
def test_w65_left_overs_of_launchers_go_in_both_layouts(layout):
    assert set(drops((*LEFT, *KEPT), layout)) == set(LEFT)


def test_p55_the_step_s_number_goes_and_the_host_list_stays():
    assert set(drops(("SLURM_STEP_ID", "SLURM_STEPID", "SLURM_NODELIST", "SLURM_STEP_NODELIST"), "agent")) == {
        "SLURM_STEP_ID",
        "SLURM_STEPID",
    }


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY"])
def test_f48_w64_the_program_keeps_its_proxies(name):
    assert plans.env_of(plans.plan(plans.two_by_two()), 0, {name: "x"})[name] == "x"


def test_the_user_s_patterns_win_and_keep_wins_over_drop():
    env = ("PMI_RANK", "PATH", "MINE", "MINE_TOO", "RANK")
    assert drops(env, "agent", keep=("PMI_*",), drop=("PATH", "MINE*")) == ("MINE", "MINE_TOO", "PATH", "RANK")
    assert drops(env, "agent", keep=("MINE",), drop=("MINE*",)) == ("MINE_TOO", "PMI_RANK", "RANK")


def test_every_drop_has_its_reason():
    assert reasons(("PMI_RANK", "RANK", "X", "PATH"), "agent", drop=("X",)) == {
        "PMI_RANK": "hygiene: PMI identity",
        "RANK": "hygiene: left-overs of a PyTorch launcher",
        "X": "--drop-env",
    }


@given(st.lists(st.sampled_from([*PMI, *OTHERS, *STEP, *LEFT, *KEPT]), unique=True))
def test_dropping_is_by_name_alone_and_done_once(names):
    gone = drops(names, "agent")
    assert list(gone) == sorted(set(gone)) and set(gone) <= set(names)
    assert drops([name for name in names if name not in gone], "agent") == ()
    assert set(drops(names, "task")) <= set(gone)


def test_the_table_is_in_order():
    patterns = [pattern for rule in TABLE for pattern in rule.patterns]
    assert len(patterns) == len(set(patterns))
    assert all(rule.why and rule.group and set(rule.layouts) <= {"agent", "task"} for rule in TABLE)
    assert all("*" not in pattern[:-1] for pattern in patterns)


def test_patterns():
    covered = covers(("A*", "B"))
    assert covered("ABC") and covered("A") and covered("B") and not covered("BA") and not covered("")


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_p06_counts_are_written_as_slurm_reads_them(counts):
    text = compressed(counts)
    back = []
    for run in text.split(","):
        count, _, times = run.partition("(x")
        back += [int(count)] * int(times[:-1] or 1)
    assert back == counts


def test_counts_as_slurm_writes_them():
    assert [compressed(each) for each in ((4,), (1, 1, 1), (2, 2, 1), (1, 2, 1))] == ["4", "1(x3)", "2(x2),1", "1,2,1"]


SRUN = {
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
    "SLURM_GTIDS": "1",
    "SLURM_NTASKS": "2",
    "SLURM_NPROCS": "2",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_TASKS_PER_NODE": "1(x2)",
    "SLURM_JOB_ID": "7",
}


def test_p56_slurm_s_task_variables_get_the_worker_s_values():
    env = plans.env_of(plans.plan(plans.two_by_two()), 3, SRUN)
    assert {name: env[name] for name in SRUN} == {
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "1",
        "SLURM_GTIDS": "2,3",
        "SLURM_NTASKS": "4",
        "SLURM_NPROCS": "4",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_TASKS_PER_NODE": "2(x2)",
        "SLURM_JOB_ID": "7",
    }
    assert "SLURM_NTASKS_PER_NODE" not in env  # was not there; is not made up


def test_p56_slurm_s_own_tasks_are_left_alone():
    made = plans.plan(plans.tasks([0, 0, 1, 1]))
    inherited = SRUN | {"SLURM_NTASKS": "4", "SLURM_PROCID": "2", "SLURM_NODEID": "5", "SLURM_GTIDS": "2,3"}
    assert {name: plans.env_of(made, 2, inherited)[name] for name in inherited} == inherited


def test_p17_tasks_of_mpirun_inside_a_step_do_not_keep_the_daemon_s_slurm_rank():
    made = plans.plan(plans.tasks([0, 0, 1, 1]))
    env = plans.env_of(made, 3, SRUN)
    assert (env["SLURM_PROCID"], env["SLURM_NTASKS"], env["SLURM_LOCALID"]) == ("3", "4", "1")


def test_without_a_step_no_slurm_variable_is_made_up():
    env = plans.env_of(plans.plan(plans.two_by_two()), 0, {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"})
    assert {name for name in env if name.startswith("SLURM")} == {"SLURM_JOB_ID", "SLURM_NTASKS"}


def test_cpus_per_task_is_the_worker_s_share():
    env = plans.env_of(plans.plan(plans.two_by_two()), 0, SRUN | {"SLURM_CPUS_PER_TASK": "16"})
    assert env["SLURM_CPUS_PER_TASK"] == "8"
