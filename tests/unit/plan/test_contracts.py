"""What each framework's contract promises, and how contracts live together."""

import configparser
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plans

from slaunch.errors import PlanError, UsageError
from slaunch.node.values import Address
from slaunch.plan.contracts import BUILT_IN, GROUP, combine, find
from slaunch.plan.seat import take_seat

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ALL = tuple(BUILT_IN)


def of(name, rank=3, inherited=None, everyone=None, **chosen):
    made = plans.plan(everyone or plans.two_by_two(), contracts=(name,), **chosen)
    return dict(find(name)(take_seat(made, rank, plans.options(**chosen)), inherited or {}))


# -- finding and combining --------------------------------------------------------------------------------------------


def test_the_built_in_table_and_the_entry_points_agree():
    config = configparser.ConfigParser()
    config.read(os.path.join(ROOT, "setup.cfg"))
    lines = config["options.entry_points"][GROUP].strip().splitlines()
    assert dict(line.replace(" ", "").split("=") for line in lines) == dict(BUILT_IN)


def test_an_unknown_contract_is_an_error_with_the_choice():
    with pytest.raises(UsageError) as caught:
        find("chainer")
    assert "'chainer'" in caught.value.wanted
    assert "tensorflow" in caught.value.todo


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """An installed package that brings a contract."""
    (tmp_path / "mine.py").write_text("def variables(seat, env):\n    return {'RANK': str(seat.rank + 100), 'MINE': '1'}\n")
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nmine = mine:variables\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_another_package_brings_a_contract(other_package):
    assert of("mine") == {"RANK": "103", "MINE": "1"}


def test_two_contracts_that_want_different_values_are_both_named(other_package):
    made = plans.plan(plans.two_by_two())
    with pytest.raises(PlanError) as caught:
        combine(("torch", "mine"), take_seat(made, 3, plans.options()), {})
    assert "torch and mine" in caught.value.wanted
    assert "'3' by torch" in caught.value.seen
    assert "'103' by mine" in caught.value.seen


@given(st.permutations(ALL))
def test_all_built_in_contracts_agree_in_any_order(order):
    made = plans.plan(plans.tasks([0, 0, 1, 1]), contracts=tuple(order))
    values, owners = combine(order, take_seat(made, 3, plans.options()), {})
    assert set(values) == set(owners)
    ranks = {"RANK", "PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK", "SLAUNCH_RANK", "JAX_PROCESS_ID"}
    sizes = {"WORLD_SIZE", "PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE", "SLAUNCH_WORLD_SIZE", "JAX_NUM_PROCESSES"}
    assert {values[name] for name in ranks} == {"3"}
    assert {values[name] for name in sizes} == {"4"}


def test_masters_of_different_frameworks_have_different_ports():
    env = plans.env_of(plans.plan(plans.tasks([0, 0, 1, 1]), contracts=ALL), 0)
    ports = [env["MASTER_PORT"], *(env[name].rpartition(":")[2] for name in ("PADDLE_MASTER", "JAX_COORDINATOR_ADDRESS"))]
    assert len({*ports, *(each.rpartition(":")[2] for each in env["PADDLE_TRAINER_ENDPOINTS"].split(",")[:2])}) == 5


def test_f107_masters_are_served_where_rank_0_runs_even_if_that_is_not_the_first_position():
    made = plans.plan(plans.tasks([0, 1, 0, 1]))
    assert {plans.env_of(made, rank)["MASTER_ADDR"] for rank in range(4)} == {"10.0.0.1"}


# -- paddle -----------------------------------------------------------------------------------------------------------


def test_f73_f75_to_f80_paddle():
    env = of("paddle", log_dir="/logs")
    assert len(env["POD_NAME"]) == 6 and env["POD_NAME"].isalpha() and env["POD_NAME"].islower()
    del env["POD_NAME"]
    assert env == {
        "PADDLE_MASTER": "10.0.0.1:20003",
        "PADDLE_GLOBAL_SIZE": "4",
        "PADDLE_LOCAL_SIZE": "2",
        "PADDLE_GLOBAL_RANK": "3",
        "PADDLE_LOCAL_RANK": "1",
        "PADDLE_NNODES": "2",
        "PADDLE_CURRENT_ENDPOINT": "10.0.0.2:20001",
        "PADDLE_TRAINER_ID": "3",
        "PADDLE_TRAINERS_NUM": "4",
        "PADDLE_RANK_IN_NODE": "1",
        "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:20000,10.0.0.1:20001,10.0.0.2:20000,10.0.0.2:20001",
        "PADDLE_AUTO_CLUSTER": "0",
        "PADDLE_LOG_DIR": "/logs",
        "PADDLE_DISTRI_BACKEND": "gloo",
    }


def test_f73_one_pod_name_per_node():
    names = [of("paddle", rank)["POD_NAME"] for rank in range(4)]
    assert names[0] == names[1] != names[2] == names[3]


def test_f79_endpoints_are_in_order_of_rank_also_where_ranks_are_spread():
    made = plans.plan(plans.tasks([0, 1, 0, 1]))
    for rank in range(4):
        env = plans.env_of(made, rank)
        assert env["PADDLE_TRAINER_ENDPOINTS"].split(",")[rank] == env["PADDLE_CURRENT_ENDPOINT"]
    assert len(set(env["PADDLE_TRAINER_ENDPOINTS"].split(","))) == 4


@pytest.mark.parametrize(("word", "number"), [("True", "1"), ("yes", "1"), ("1", "1"), ("", "0"), ("off", "0"), ("False", "0")])
def test_f81_w40_auto_cluster_is_a_number_that_paddle_can_read(word, number):
    value = of("paddle", inherited={"PADDLE_AUTO_CLUSTER": word})["PADDLE_AUTO_CLUSTER"]
    assert value == number
    int(value)


def test_f81_another_word_is_an_error():
    with pytest.raises(UsageError, match="PADDLE_AUTO_CLUSTER='maybe'"):
        of("paddle", inherited={"PADDLE_AUTO_CLUSTER": "maybe"})


# -- the PyTorch family -----------------------------------------------------------------------------------------------

GROUP_OF_4 = {
    "RANK": "3",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "20002",
}


@pytest.mark.parametrize("name", ["torch", "deepspeed", "accelerate", "lightning"])
def test_the_pytorch_family_has_one_process_group(name):
    env = of(name)
    assert {variable: env[variable] for variable in GROUP_OF_4} == GROUP_OF_4


def test_deepspeed_knows_its_node_and_looks_for_no_mpi():
    assert of("deepspeed") == GROUP_OF_4 | {"LOCAL_SIZE": "2", "CROSS_RANK": "1", "CROSS_SIZE": "2"}


def test_lightning_sees_a_torchelastic_launch():
    assert of("lightning") == GROUP_OF_4 | {"GROUP_RANK": "1", "NODE_RANK": "1", "TORCHELASTIC_RUN_ID": "job7"}


def test_accelerate_without_devices_is_told_to_use_cpus():
    assert of("accelerate") == GROUP_OF_4 | {"ACCELERATE_USE_CPU": "true"}
    assert of("accelerate", everyone=plans.two_by_two(devices=plans.gpus("0", "1"))) == GROUP_OF_4


# -- Horovod --------------------------------------------------------------------------------------------------------


def test_horovod_counts_across_nodes_that_have_this_local_rank():
    everyone = plans.tasks([0, 0, 1, 2, 2])
    assert of("horovod", 4, everyone=everyone) == {
        "HOROVOD_CONTROLLER": "mpi",
        "HOROVOD_CPU_OPERATIONS": "mpi",
        "HOROVOD_HOSTNAME": "n3",
        "HOROVOD_RANK": "4",
        "HOROVOD_SIZE": "5",
        "HOROVOD_LOCAL_RANK": "1",
        "HOROVOD_LOCAL_SIZE": "2",
        "HOROVOD_CROSS_RANK": "1",
        "HOROVOD_CROSS_SIZE": "2",
    }


def test_horovod_s_workers_under_an_agent_meet_at_a_store_on_the_first_node():
    assert of("horovod") == {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": "20005",
        "HOROVOD_GLOO_IFACE": "eth0",
        "HOROVOD_HOSTNAME": "n2",
        "HOROVOD_RANK": "3",
        "HOROVOD_SIZE": "4",
        "HOROVOD_LOCAL_RANK": "1",
        "HOROVOD_LOCAL_SIZE": "2",
        "HOROVOD_CROSS_RANK": "1",
        "HOROVOD_CROSS_SIZE": "2",
    }


def test_horovod_s_client_knows_ipv4_only():
    everyone = [plans.facts(index, addresses=(Address(f"fd00::{index}", "eth0", 64),)) for index in range(2)]
    with pytest.raises(PlanError, match="IPv4"):
        of("horovod", everyone=everyone)


# -- JAX and TensorFlow -----------------------------------------------------------------------------------------------

SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_NTASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
}


def test_jax_is_told_its_coordinator_and_detects_its_numbers_without_slurm():
    assert of("jax") == {
        "JAX_COORDINATOR_ADDRESS": "10.0.0.1:20004",
        "JAX_NUM_PROCESSES": "4",
        "JAX_PROCESS_ID": "3",
        "SLURM_JOB_ID": "0",
        "SLURM_STEP_NODELIST": "n1",
        "SLURM_NTASKS": "4",
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
    }


def test_jax_under_slurm_detects_the_rewritten_numbers():
    env = plans.env_of(plans.plan(plans.two_by_two(), contracts=("jax",)), 3, SLURM)
    assert (env["SLURM_PROCID"], env["SLURM_NTASKS"], env["SLURM_LOCALID"]) == ("3", "4", "1")
    assert (env["SLURM_JOB_ID"], env["SLURM_STEP_NODELIST"]) == ("7", "n[1-2]")


def test_jax_in_tasks_of_open_mpi_s_mpirun_needs_no_further_variables():
    env = of("jax", everyone=plans.tasks([0, 0, 0, 0]), inherited={"OMPI_MCA_orte_hnp_uri": "1.0;tcp://10.0.0.9:1"})
    assert not any(name.startswith("SLURM") for name in env)


def test_p47_jax_is_told_positions_not_local_ranks():
    assert of("jax", everyone=plans.two_by_two(devices=plans.gpus("4", "5")))["JAX_LOCAL_DEVICE_IDS"] == "1"
    everyone = [
        plans.facts(0, 1, plans.gpus(label), "CUDA_VISIBLE_DEVICES", ports=tuple(range(100 + at * 5, 105 + at * 5)))
        for at, label in enumerate("0123")
    ]
    assert of("jax", everyone=everyone)["JAX_LOCAL_DEVICE_IDS"] == "0"


def test_tensorflow_gets_its_cluster_and_its_place_in_it():
    env = of("tensorflow", inherited={"http_proxy": "http://proxy:1"})
    assert json.loads(env["TF_CONFIG"]) == {
        "cluster": {"worker": ["10.0.0.1:20000", "10.0.0.1:20001", "10.0.0.2:20000", "10.0.0.2:20001"]},
        "task": {"type": "worker", "index": 3},
    }
    assert env["no_grpc_proxy"] == "10.0.0.1,10.0.0.2"


def tensorflow_roles(nodes, **chosen):
    """TF_CONFIG of every worker, with parameter servers."""
    made = plans.plan([plans.facts(index, workers=3) for index in range(nodes)], mode="ps", contracts=("tensorflow",), **chosen)
    envs = [plans.env_of(made, rank, mode="ps", contracts=("tensorflow",), **chosen) for rank in range(made.world)]
    return [json.loads(env["TF_CONFIG"]) for env in envs]


def test_tensorflow_s_parameter_servers_have_a_chief_that_is_no_worker():
    configs = tensorflow_roles(2, trainer_num=2, server_num=1)
    assert [config["cluster"] for config in configs] == [
        {
            "chief": ["10.0.0.1:20000"],
            "worker": ["10.0.0.1:20001", "10.0.0.2:20000", "10.0.0.2:20001"],
            "ps": ["10.0.0.1:20002", "10.0.0.2:20002"],
        }
    ] * 6
    tasks = [(config["task"]["type"], config["task"]["index"]) for config in configs]
    assert tasks == [("chief", 0), ("worker", 0), ("ps", 0), ("worker", 1), ("worker", 2), ("ps", 1)]
    assert all(config["cluster"][kind][index] for config, (kind, index) in zip(configs, tasks, strict=True))


def test_tensorflow_s_endpoints_may_be_the_user_s():
    ends = {"servers": ("10.0.0.1:1",), "trainers": ("10.0.0.1:2", "10.0.0.1:3")}
    configs = tensorflow_roles(1, **ends)
    assert configs[0]["cluster"] == {"chief": ["10.0.0.1:2"], "worker": ["10.0.0.1:3"], "ps": ["10.0.0.1:1"]}


@pytest.mark.parametrize(
    ("chosen", "part"),
    [
        ({"mode": "ps", "trainer_num": 1, "server_num": 2}, "1 trainer"),
        ({"mode": "ps", "trainer_num": 2, "coordinator_num": 1}, "'coordinator'"),
        ({"mode": "ps_heter", "heter_num": (1,), "heter_devices": ("cpu",)}, "'heter2'"),
    ],
)
def test_roles_that_tensorflow_does_not_know(chosen, part):
    made = plans.plan([plans.facts(0, workers=4)], contracts=("tensorflow",), **chosen)
    with pytest.raises(PlanError, match=part):
        plans.env_of(made, 0, contracts=("tensorflow",), **chosen)


def test_slaunch_s_own_list_of_all_workers():
    from slaunch.plan.workers import worker

    made = plans.plan(plans.tasks([0, 1, 0]))
    (file,) = worker(made, 1, {}, plans.options()).files
    assert (file.variable, json.loads(file.text)) == (
        "SLAUNCH_PEERS_FILE",
        {
            "job": "job7",
            "attempt": 0,
            "world_size": 3,
            "nodes": [
                {"host": "n1", "address": "10.0.0.1", "ranks": [0, 2], "endpoints": ["10.0.0.1:20000", "10.0.0.1:20020"]},
                {"host": "n2", "address": "10.0.0.2", "ranks": [1], "endpoints": ["10.0.0.2:20010"]},
            ],
        },
    )
    without = plans.plan(plans.tasks([0, 1, 0]), contracts=("torch",))
    assert worker(without, 1, {}, plans.options(contracts=("torch",))).files == ()


# -- slaunch's own ----------------------------------------------------------------------------------------------------


def test_slaunch_s_own_numbers():
    assert of("slaunch") == {
        "SLAUNCH_RANK": "3",
        "SLAUNCH_WORLD_SIZE": "4",
        "SLAUNCH_LOCAL_RANK": "1",
        "SLAUNCH_LOCAL_WORLD_SIZE": "2",
        "SLAUNCH_NODE_RANK": "1",
        "SLAUNCH_NNODES": "2",
        "SLAUNCH_ATTEMPT": "0",
        "SLAUNCH_JOB": "job7",
        "SLAUNCH_LOCAL_DEVICE": "",
        "SLAUNCH_ADDRESS": "10.0.0.2",
        "SLAUNCH_ENDPOINT": "10.0.0.2:20001",
        "SLAUNCH_FIRST_ENDPOINT": "10.0.0.1:20000",
    }


def test_f291_what_the_older_launcher_told_of_devices():
    nodes = [plans.facts(index, devices=plans.gpus(*"4567"), visible="CUDA_VISIBLE_DEVICES") for index in range(2)]
    chosen = {"legacy": True, "devices_per_worker": -1}
    made = plans.plan(nodes, **chosen)
    found = plans.env_of(made, 1, {"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, **chosen)
    assert found["PADDLE_WORLD_DEVICE_IDS"] == "0:1,2:3,0:1,2:3"
    assert found["PADDLE_LOCAL_DEVICE_IDS"] == "2,3"
    assert found["FLAGS_selected_accelerators"] == found["FLAGS_selected_gpus"] == "0,1"  # of those that it sees
    assert "PADDLE_WORLD_DEVICE_IDS" not in plans.env_of(plans.plan(nodes), 1)
