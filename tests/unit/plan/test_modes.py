"""Job modes: roles, numbers and environments, beside those that Paddle's launchers gave for the same jobs.

The recordings are made by tests/tools/record_mode_env.py. Every difference is in a table here, with its reason.
"""

import configparser
import json
import os

import pytest
from support import plans

from slaunch.errors import PlanError, UsageError
from slaunch.node.values import SPARE_PORTS, Address, Wish
from slaunch.plan.modes import BUILT_IN, GROUP, find
from slaunch.plan.prelude import crew, lone
from slaunch.plan.workers import worker

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(TESTS, "data", "worker_env")


def recorded(kind):
    """What Paddle's workers had, in the order of their file names."""
    with open(os.path.join(DATA, f"paddle_{kind}.json")) as file:
        return json.load(file)["workers"]


def local(ports, **changes):
    """A node on the loopback address, as all were when recorded, with these ports."""
    ports = tuple(ports)
    spare = tuple(range(100, 100 + SPARE_PORTS))
    made = {"workers": len(ports), "ports": (*ports, *spare), "addresses": (Address("127.0.0.1", "lo", 8),), **changes}
    return plans.facts(0, **made)


def port(env):
    return int(env["PADDLE_PORT"])


ALWAYS = {"CUSTOM_DEVICE_ROOT", "LC_CTYPE", "OMP_NUM_THREADS", "PADDLE_BACKUP_ENV_PATH"}
"""Set by importing paddle or by a Python without locale; the backup file is written only where a list is too long."""
VALUES = {
    "PADDLE_GLOO_FS_PATH",  # a path that was removed before use there; below the log directory here (W44)
    "PADDLE_GLOO_HTTP_ENDPOINT",  # another reserved port
    "PADDLE_LOG_DIR",
    "POD_NAME",
    "PADDLE_WITH_GLOO",  # the older launcher's default is 0
}
OURS = {
    *("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
    *("POD_IP", "PADDLE_ROLE", "PADDLE_LOG_DIR", "POD_NAME", "PADDLE_NNODES"),
}
"""POD_IP was set for the launcher when recorded; the others are the newer launcher's, which the older one has not."""
DEVICES = {"CUDA_VISIBLE_DEVICES", "XPU_VISIBLE_DEVICES", "FLAGS_selected_gpus", "FLAGS_selected_xpus"}
"""The older launcher hides all devices but one from each worker, also on machines without any; here lists stay as found."""


def assert_alike(ours, theirs, allowed=frozenset()):
    """Same variables, same values, but for the tables above."""
    ours = {name: value for name, value in ours.items() if not name.startswith("SLAUNCH_")}
    missing = set(theirs) - set(ours) - ALWAYS - allowed
    more = set(ours) - set(theirs) - OURS - ALWAYS
    assert not missing, missing
    assert not more, more
    both = set(ours) & set(theirs) - ALWAYS - VALUES
    different = {name: (ours[name], theirs[name]) for name in both if ours[name] != theirs[name]}
    assert not different


def env(plan, rank, **chosen):
    return dict(worker(plan, rank, {}, plans.options(**chosen)).set_env)


def node(index, ports):
    """One of two nodes, with these ports."""
    return local(ports, machine=f"m{index}", host=f"n{index}", addresses=(Address(f"10.0.0.{index + 1}", "e", 24),))


def on_loopback(values):
    """The two nodes of a recording were one machine."""
    return {name: value.replace("10.0.0.1", "127.0.0.1").replace("10.0.0.2", "127.0.0.1") for name, value in values.items()}


# -- parameter servers --------------------------------------------------------------------------------------------------


def test_f86_f87_f88_f89_ps_on_two_nodes_as_paddles_launcher():
    server0, server1, *trainers = recorded("ps")
    chosen = {"mode": "ps", "server_num": 1, "trainer_num": 2}
    order = [*trainers[:2], server0, *trainers[2:], server1]  # ours: a node's trainers, then its servers
    made = plans.plan([node(0, map(port, order[:3])), node(1, map(port, order[3:]))], **chosen)
    assert [each.roles for each in made.nodes] == [("trainer", "trainer", "server")] * 2
    for rank, theirs in enumerate(order):
        assert_alike(on_loopback(env(made, rank, **chosen)), theirs)


def test_f90_ps_static_lists_as_paddles_launcher():
    *servers, trainer0, trainer1 = recorded("ps_static")
    ends = [f"127.0.0.1:{port(each)}" for each in (*servers, trainer0, trainer1)]
    chosen = {"mode": "ps", "servers": tuple(ends[:2]), "trainers": tuple(ends[2:]), "gloo_port": 6767}
    wish = find("ps").wish(plans.options(**chosen), "127.0.0.1")
    assert wish == Wish(4, tuple(port(each) for each in (trainer0, trainer1, *servers)), devices=False)
    made = plans.plan([local(wish.ports)], **chosen)
    for rank, theirs in enumerate([trainer0, trainer1, *servers]):
        assert_alike(env(made, rank, **chosen), theirs)
        assert env(made, rank, **chosen)["PADDLE_GLOO_HTTP_ENDPOINT"] == theirs["PADDLE_GLOO_HTTP_ENDPOINT"]


def test_f296_f298_coordinators_as_the_older_launcher():
    coordinator, *others = recorded("ps_legacy")
    servers, trainers = others[:2], others[2:]
    chosen = {"mode": "ps", "server_num": 2, "trainer_num": 2, "coordinator_num": 1}
    order = [*trainers, *servers, coordinator]
    made = plans.plan([local([port(each) for each in order])], **chosen)
    for rank, theirs in enumerate(order):
        assert_alike(env(made, rank, **chosen), theirs, DEVICES)


def test_f20_f299_heterogeneous_stages_as_the_older_launcher():
    heter2, heter3, server, *trainers = recorded("ps_heter")
    chosen = {"mode": "ps_heter", "server_num": 1, "trainer_num": 2, "heter_num": (1, 1), "heter_devices": ("cpu", "cpu")}
    order = [*trainers, server, heter2, heter3]
    made = plans.plan([local([port(each) for each in order])], **chosen)
    for rank, theirs in enumerate(order):
        assert_alike(env(made, rank, **chosen), theirs, DEVICES | {"PADDLE_COORDINATOR_ENDPOINTS"})


def test_w41_f300_servers_are_services_and_trainers_are_not():
    chosen = {"mode": "ps_heter", "heter_num": (1,), "heter_devices": ("gpu",), "coordinator_num": 1}
    made = plans.plan([plans.facts(0, workers=4)], **chosen)
    specs = [worker(made, rank, {}, plans.options(**chosen)) for rank in range(4)]
    assert [(spec.role, spec.service, spec.log_name) for spec in specs] == [
        ("trainer", False, "workerlog.0"),
        ("server", True, "serverlog.0"),
        ("coordinator", True, "coordinatorlog.0"),
        ("heter2", True, "heter2log.0"),
    ]


def test_services_start_before_their_clients():
    chosen = {"mode": "ps", "server_num": 2, "trainer_num": 1}
    made = plans.plan([plans.facts(0, workers=3)], **chosen)
    assert [spec.rank for spec in crew(made, 0, {}, plans.options(**chosen))] == [1, 2, 0]


def test_log_names_count_over_all_nodes_so_that_they_may_share_a_directory():
    chosen = {"mode": "ps", "server_num": 1, "trainer_num": 2}
    made = plans.plan([plans.facts(index, workers=3) for index in range(2)], **chosen)
    names = [worker(made, rank, {}, plans.options(**chosen)).log_name for rank in range(6)]
    assert names == ["workerlog.0", "workerlog.1", "serverlog.0", "workerlog.2", "workerlog.3", "serverlog.1"]


def test_all_workers_see_the_devices_that_the_user_chose():
    chosen = {"mode": "ps", "devices": ("2", "3")}
    made = plans.plan([plans.facts(0, workers=2, visible="CUDA_VISIBLE_DEVICES")], **chosen)
    assert {env(made, rank, **chosen)["CUDA_VISIBLE_DEVICES"] for rank in range(2)} == {"2,3"}


def test_w44_the_gloo_directory_is_shared_by_all_nodes():
    chosen = {"mode": "ps"}
    made = plans.plan([plans.facts(index, workers=2) for index in range(2)], **chosen)
    assert {env(made, rank, **chosen)["PADDLE_GLOO_FS_PATH"] for rank in range(4)} == {"/logs/gloo"}


def test_f90_lists_that_span_nodes_number_by_position():
    ends = {"servers": ("10.0.0.2:1", "10.0.0.1:1"), "trainers": ("10.0.0.2:2", "10.0.0.1:2", "10.0.0.1:3")}
    made = plans.plan([plans.facts(0, workers=3), plans.facts(1, workers=2)], mode="ps", **ends)
    assert [(node.roles, node.numbers) for node in made.nodes] == [
        (("trainer", "trainer", "server"), (1, 2, 1)),
        (("trainer", "server"), (0, 0)),
    ]
    values = env(made, 0, mode="ps", **ends)
    assert values["PADDLE_TRAINER_ID"] == "1"
    assert values["PADDLE_PORT"] == "2"
    assert values["PADDLE_TRAINER_ENDPOINTS"] == ",".join(ends["trainers"])
    assert values["PADDLE_GLOO_HTTP_ENDPOINT"].startswith("10.0.0.2:")


@pytest.mark.parametrize(
    ("chosen", "error", "part"),
    [
        ({"servers": ("10.0.0.1:1",)}, UsageError, "--servers without --trainers"),
        ({"servers": ("10.0.0.1:1",), "trainers": ("10.0.0.1:2",), "server_num": 2}, UsageError, "the number is 2"),
        ({"servers": ("10.0.0.9:1",), "trainers": ("10.0.0.1:2",)}, PlanError, "no node has 10.0.0.9:1"),
        ({"servers": ("10.0.0.1",), "trainers": ("10.0.0.1:2",)}, (UsageError, PlanError), "10.0.0.1"),
    ],
)
def test_f296_lists_that_do_not_fit(chosen, error, part):
    with pytest.raises(error) as caught:
        plans.plan([plans.facts(0, workers=2)], mode="ps", **chosen)
    assert part in str(caught.value)


def test_ps_needs_an_agent_to_end_the_servers():
    with pytest.raises(PlanError, match="one task per node"):
        plans.plan(plans.tasks([0, 0]), mode="ps")


def test_heterogeneous_stages_must_be_told_completely():
    with pytest.raises(UsageError, match="one item for each stage"):
        plans.plan([plans.facts(0, workers=3)], mode="ps_heter", heter_num=(1,), heter_devices=("gpu", "cpu"))
    with pytest.raises(UsageError, match="workers of 0 stages"):
        plans.plan([plans.facts(0, workers=3)], mode="ps_heter", heter_devices=("gpu",))


# -- rpc, static, tuning ------------------------------------------------------------------------------------------------


def test_f91_rpc_as_paddles_launcher():
    theirs = recorded("rpc")
    numbers = [int(each["PADDLE_WORKER_ENDPOINT"].rpartition(":")[2]) for each in theirs]
    chosen = {"mode": "rpc", "contracts": ("paddle",)}
    made = plans.plan([node(0, numbers[:2]), node(1, numbers[2:])], **chosen)
    assert made.contracts == ()
    for rank in range(4):
        ours = on_loopback(env(made, rank, **chosen))
        assert ours.pop("PADDLE_MASTER_ENDPOINT") == "127.0.0.1:101"
        assert_alike(ours, theirs[rank], {"PADDLE_MASTER_ENDPOINT"})


def test_rpc_leaves_torchs_contract_in_force():
    made = plans.plan(plans.two_by_two(), mode="rpc")
    assert made.contracts == ("torch", "slaunch")
    assert env(made, 3, mode="rpc")["RANK"] == env(made, 3, mode="rpc")["PADDLE_TRAINER_ID"] == "3"


def test_f24_f25_f83_static_addresses_as_paddles_launcher():
    theirs = recorded("static")
    first = int(theirs[0]["PADDLE_CURRENT_ENDPOINT"].rpartition(":")[2])
    made = plans.plan([local([first, first + 1])], contracts=("paddle",), start_port=first)
    for rank in range(2):
        ours = env(made, rank, contracts=("paddle",))
        assert ours.pop("PADDLE_MASTER") == "127.0.0.1:101"  # a port of its own, not that of worker 0
        assert_alike(ours, theirs[rank], {"PADDLE_MASTER"})


def test_f84_f96_the_tuning_step_as_paddles_launcher():
    run0, run1, tuner = recorded("tuning")
    numbers = [int(each["PADDLE_CURRENT_ENDPOINT"].rpartition(":")[2]) for each in (run0, run1, tuner)]
    facts = local(numbers[:2])
    facts = plans.dataclasses.replace(facts, ports=(*numbers[:2], 100, 101, 102, numbers[2]))
    chosen = {"contracts": ("paddle",), "auto_parallel_config": "FOLDER/tune.json"}
    made = plans.plan([facts], **chosen)
    specs = crew(made, 0, {}, plans.options(**chosen))
    assert [spec.first for spec in specs] == [True, False, False]
    assert [spec.log_name for spec in specs] == ["tuner.log", "workerlog.0", "workerlog.1"]
    assert_alike(dict(specs[0].set_env), tuner, {"FLAGS_selected_gpus"})  # there also on a machine without GPUs
    for spec, theirs in zip(specs[1:], (run0, run1), strict=True):
        ours = dict(spec.set_env)
        assert ours.pop("PADDLE_MASTER") == "127.0.0.1:101"
        assert_alike(ours, theirs, {"PADDLE_MASTER"})
    assert "PADDLE_GLOBAL_RANK" in specs[0].drop_env


@pytest.mark.parametrize(("tuning", "firsts"), [("only", [True]), ("skip", [False, False]), ("first", [True, False, False])])
def test_f85_the_steps_of_each_mode(tuning, firsts):
    chosen = {"auto_parallel_config": "/t.json", "tuning": tuning}
    made = plans.plan([plans.facts(0)], **chosen)
    assert [spec.first for spec in crew(made, 0, {}, plans.options(**chosen))] == firsts


def test_f85_a_task_that_becomes_its_worker_cannot_wait_for_a_step():
    chosen = {"auto_parallel_config": "/t.json"}
    made = plans.plan(plans.tasks([0, 0]), **chosen)
    with pytest.raises(PlanError, match="one task per node"):
        lone(made, 0, {}, plans.options(**chosen))
    spec = lone(made, 0, {}, plans.options(**chosen, tuning="skip"))
    assert spec.set_env["PADDLE_AUTO_PARALLEL_STAGE"] == "run"


def test_f308_a_hook_on_each_node_before_the_workers_of_each_attempt():
    chosen = {"pre_hook": ("/bin/sh", "-c", "true")}
    made = plans.plan(plans.two_by_two(), attempt=2, **chosen)
    crews = [crew(made, index, {}, plans.options(**chosen)) for index in range(2)]
    assert [[spec.first for spec in specs] for specs in crews] == [[True, False, False]] * 2
    assert [(specs[0].argv, specs[0].log_name) for specs in crews] == [
        (chosen["pre_hook"], "prehook.log.0"),
        (chosen["pre_hook"], "prehook.log.1"),
    ]
    assert crews[1][0].set_env == {"SLAUNCH_NODE_RANK": "1", "SLAUNCH_ATTEMPT": "2"}
    ranks = [spec.rank for specs in crews for spec in specs]
    assert len(set(ranks)) == len(ranks)


def test_f308_a_hook_needs_somebody_who_waits_and_a_place_of_its_own():
    with pytest.raises(PlanError, match="one task per node"):
        lone(plans.plan(plans.tasks([0, 0])), 0, {}, plans.options(pre_hook=("true",)))
    chosen = {"pre_hook": ("true",), "auto_parallel_config": "/t.json"}
    with pytest.raises(UsageError, match="one step before"):
        crew(plans.plan([plans.facts(0)], **chosen), 0, {}, plans.options(**chosen))


# -- the table ----------------------------------------------------------------------------------------------------------


def test_the_built_in_table_and_the_entry_points_agree():
    config = configparser.ConfigParser()
    config.read(os.path.join(os.path.dirname(TESTS), "setup.cfg"))
    lines = config["options.entry_points"][GROUP].strip().splitlines()
    assert dict(line.replace(" ", "").split("=") for line in lines) == dict(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_mode_is_found_by_its_name(name):
    assert find(name).name == name


def test_f54_w13_an_unknown_mode_is_an_error_with_the_choice():
    with pytest.raises(UsageError, match="choose from collective, ps, ps-heter, rpc, ipu"):
        find("psx")


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """An installed package that brings a mode, and something that is none."""
    (tmp_path / "brings.py").write_text("from slaunch.plan.modes import Mode\nMODE = Mode('ring')\nNONE = 3\n")
    info = tmp_path / "brings-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brings\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nring = brings:MODE\nnone = brings:NONE\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_another_package_brings_a_mode(other_package):
    assert plans.plan(plans.two_by_two(), mode="ring").mode == "ring"
    with pytest.raises(UsageError, match="mend that package"):
        find("none")


def test_f92_an_ipu_job_is_one_process():
    assert find("ipu").wish(plans.options(), "") == Wish(1, (), devices=False)
