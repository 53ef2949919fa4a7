"""One worker: its command, its environment as a whole, where each variable comes from, what is too long."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plans

from slaunch.errors import PlanError, UsageError
from slaunch.options import Program
from slaunch.plan.commands import worker_argv
from slaunch.plan.workers import worker

PY = "/opt/python/bin/python3"
COVER = ("-m", "coverage", "run", "--branch", "-p")


@pytest.mark.parametrize(
    ("program", "env", "argv"),
    [
        (Program("train.py", ("--lr", "1")), {}, (PY, "-u", "train.py", "--lr", "1")),
        (Program("train.pyxes", ("a b",)), {}, (PY, "train.pyxes", "a b")),
        (Program("./train", ("x",)), {}, ("./train", "x")),
        (Program("pkg.train", ("x",), "module"), {}, (PY, "-u", "-m", "pkg.train", "x")),
        (Program("print(1)", ("x",), "code"), {}, (PY, "-u", "-c", "print(1)", "x")),
        (Program("train.py", ("x",)), {"WITH_COVERAGE": "ON"}, (PY, "-u", *COVER, "train.py", "x")),
        (Program("pkg", (), "module"), {"WITH_COVERAGE": "ON"}, (PY, "-u", *COVER, "-m", "pkg")),
        (Program("train.py"), {"WITH_COVERAGE": "OFF"}, (PY, "-u", "train.py")),
    ],
)
def test_f50_f51_p92_the_command(program, env, argv):
    assert worker_argv(program, PY, env) == argv


@given(st.lists(st.text(max_size=20), max_size=5))
def test_f39_script_arguments_pass_through_unchanged(args):
    assert worker_argv(Program("a.py", tuple(args)), PY, {})[3:] == tuple(args)


def test_f72_the_launcher_s_environment_is_inherited_and_f74_f135_logs_are_named():
    made = plans.plan(plans.two_by_two(), log_dir="/scratch/logs")
    env = plans.env_of(made, 3, {"MINE": "1", "PATH": "/bin"})
    assert (env["MINE"], env["PATH"], env["PADDLE_LOG_DIR"]) == ("1", "/bin", "/scratch/logs")
    spec = worker(made, 3, {}, plans.options())
    assert (spec.log_name, spec.rank, spec.local_rank, spec.node) == ("workerlog.3", 3, 1, 1)
    assert spec.cpus == made.nodes[1].cpus[1]


def test_a_task_that_becomes_its_worker_has_no_log_folder():
    made = plans.plan(plans.tasks([0, 0]), log_dir="/scratch/logs")
    assert made.log_dir == ""
    assert "PADDLE_LOG_DIR" not in plans.env_of(made, 0)


def test_w65_left_overs_are_replaced_or_removed_never_followed():
    stale = {"MASTER_ADDR": "old", "RANK": "9", "PADDLE_MASTER": "old:1", "PADDLE_PORT": "1", "TF_CONFIG": "{}"}
    env = plans.env_of(plans.plan(plans.two_by_two()), 0, stale)
    assert (env["MASTER_ADDR"], env["RANK"], env["PADDLE_MASTER"]) == ("10.0.0.1", "0", "10.0.0.1:20003")
    assert not {"PADDLE_PORT", "TF_CONFIG"} & set(env)


def test_every_variable_has_its_origin():
    inherited = {"PMI_RANK": "0", "RANK": "1", "SLURM_PROCID": "0", "HIP_VISIBLE_DEVICES": "0,1", "MINE": "1"}
    made = plans.plan(plans.two_by_two(devices=plans.gpus("0", "1", kind="rocm"), visible="ROCR_VISIBLE_DEVICES"))
    spec = worker(made, 3, inherited, plans.options(drop_env=("MINE",)))
    assert set(spec.origins) == {*spec.set_env, *spec.drop_env, "SLAUNCH_PEERS_FILE"}
    assert {
        name: spec.origins[name]
        for name in ("RANK", "PADDLE_TRAINER_ID", "SLAUNCH_RANK", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "PMI_RANK")
    } == {
        "RANK": "torch",
        "PADDLE_TRAINER_ID": "paddle",
        "SLAUNCH_RANK": "slaunch",
        "OMP_NUM_THREADS": "threads",
        "GLOO_SOCKET_IFNAME": "network",
        "PMI_RANK": "hygiene: PMI identity",
    }
    assert spec.origins["HIP_VISIBLE_DEVICES"] == spec.origins["ROCR_VISIBLE_DEVICES"] == "visible devices"
    assert (spec.origins["MINE"], spec.origins["SLURM_PROCID"]) == ("--drop-env", "Slurm's task")
    assert "RANK" not in spec.drop_env  # it is set, which says enough


def test_keep_env_shields_from_rules_but_not_from_contracts():
    inherited = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "PMI_RANK": "0", "RANK": "77", "NCCL_SOCKET_IFNAME": ""}
    env = plans.env_of(plans.plan(plans.two_by_two()), 3, inherited, keep_env=("SLURM_*", "PMI_RANK", "RANK", "NCCL_*"))
    assert (env["SLURM_PROCID"], env["PMI_RANK"], env["RANK"], env["NCCL_SOCKET_IFNAME"]) == ("1", "0", "3", "")


def test_p44_one_thread_per_physical_core_unless_the_user_says_otherwise():
    made = plans.plan(plans.two_by_two())
    assert plans.env_of(made, 0)["OMP_NUM_THREADS"] == "4"
    assert plans.env_of(made, 0, {"OMP_NUM_THREADS": "7"})["OMP_NUM_THREADS"] == "7"
    eight_of_56 = plans.facts(0, 8, cores=tuple((core,) for core in range(56)), cpus=tuple(range(56)), online=56)
    assert plans.env_of(plans.plan([eight_of_56]), 0)["OMP_NUM_THREADS"] == "7"
    assert plans.env_of(plans.plan([plans.facts(0, 4, cores=((0,),), cpus=(0,), online=1)]), 0)["OMP_NUM_THREADS"] == "1"


def test_p23_p25_each_node_tells_its_own_interface():
    from slaunch.node.values import Address

    nodes = [plans.facts(i, addresses=(Address(f"10.0.0.{i}", name, 24),)) for i, name in enumerate(("eno1", "enp0s31f6"))]
    made = plans.plan(nodes)
    assert [plans.env_of(made, rank)["GLOO_SOCKET_IFNAME"] for rank in (0, 2)] == ["eno1", "enp0s31f6"]
    assert plans.env_of(made, 0)["NCCL_SOCKET_IFNAME"] == "=eno1"
    assert plans.env_of(made, 0, {"GLOO_SOCKET_IFNAME": "ib0"})["GLOO_SOCKET_IFNAME"] == "ib0"


def test_p24_gloo_gets_a_name_where_the_user_wrote_nccl_s_syntax():
    env = plans.env_of(plans.plan(plans.two_by_two()), 0, {"GLOO_SOCKET_IFNAME": "^lo,docker", "NCCL_SOCKET_IFNAME": "^lo"})
    assert (env["GLOO_SOCKET_IFNAME"], env["NCCL_SOCKET_IFNAME"]) == ("eth0", "^lo")


def test_on_one_node_nccl_is_left_to_itself():
    env = plans.env_of(plans.plan([plans.facts(0)]), 0)
    assert env["GLOO_SOCKET_IFNAME"] == "lo"
    assert "NCCL_SOCKET_IFNAME" not in env


def test_p98_ranks_stay_and_the_attempt_is_told():
    first, second = (plans.plan(plans.two_by_two(), attempt=attempt) for attempt in (0, 1))
    assert first.digest != second.digest
    for rank in range(4):
        one, two = plans.env_of(first, rank), plans.env_of(second, rank)
        assert (one["RANK"], one["LOCAL_RANK"]) == (two["RANK"], two["LOCAL_RANK"])
        assert (two["SLAUNCH_ATTEMPT"], two["TORCHELASTIC_RESTART_COUNT"]) == ("1", "1")
        assert one["POD_NAME"] != two["POD_NAME"]


@pytest.mark.parametrize("rank", [-1, 4, 1000])
def test_a_rank_that_is_not_there_is_an_error(rank):
    with pytest.raises(PlanError, match="from 0 to 3"):
        worker(plans.plan(plans.two_by_two()), rank, {}, plans.options())


# -- limits -----------------------------------------------------------------------------------------------------------


def test_f93_f94_long_endpoint_lists_go_to_a_file_that_holds_nothing_else():
    made = plans.plan(plans.two_by_two())
    inherited = {"PADDLE_ENV_LIMIT_LEN": "20", "SECRET_TOKEN": "hunter2"}
    spec = worker(made, 2, inherited, plans.options())
    assert "PADDLE_TRAINER_ENDPOINTS" not in spec.set_env
    file = spec.files[0]
    assert file.variable == "PADDLE_BACKUP_ENV_PATH"
    assert list(json.loads(file.text)) == ["PADDLE_TRAINER_ENDPOINTS"]
    assert json.loads(file.text)["PADDLE_TRAINER_ENDPOINTS"].split(",")[2] == spec.set_env["PADDLE_CURRENT_ENDPOINT"]
    assert spec.origins["PADDLE_BACKUP_ENV_PATH"] == "long lists"
    assert worker(made, 3, inherited, plans.options()).files == spec.files  # one file for the node


def backup(spec):
    return [file for file in spec.files if file.variable == "PADDLE_BACKUP_ENV_PATH"]


def test_f47_f94_below_the_limit_all_stays_in_the_environment():
    spec = worker(plans.plan(plans.two_by_two()), 2, {}, plans.options())
    length = len(spec.set_env["PADDLE_TRAINER_ENDPOINTS"])
    assert backup(spec) == []
    for limit, count in ((length, 1), (length + 1, 0)):
        spec = worker(plans.plan(plans.two_by_two()), 2, {"PADDLE_ENV_LIMIT_LEN": str(limit)}, plans.options())
        assert len(backup(spec)) == count


def test_f47_a_limit_that_is_no_number_is_an_error():
    with pytest.raises(UsageError, match="PADDLE_ENV_LIMIT_LEN='many'"):
        worker(plans.plan(plans.two_by_two()), 0, {"PADDLE_ENV_LIMIT_LEN": "many"}, plans.options())


def test_no_variable_is_longer_than_the_kernel_takes_even_if_the_user_raises_the_limit():
    everyone = [plans.facts(index, 8) for index in range(1000)]
    made = plans.plan(everyone)
    for inherited in ({}, {"PADDLE_ENV_LIMIT_LEN": "99999999"}):
        spec = worker(made, 7999, inherited, plans.options())
        assert max(len(name) + len(value) + 2 for name, value in spec.set_env.items()) <= 131072
        assert backup(spec)


def test_a_variable_that_cannot_be_shortened_is_named():
    made = plans.plan([plans.facts(index, 8) for index in range(1000)], contracts=("tensorflow",))
    with pytest.raises(PlanError, match="TF_CONFIG"):
        worker(made, 0, {}, plans.options())
