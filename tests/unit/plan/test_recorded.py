"""slaunch's worker environments beside those that other launchers gave for the same job of two nodes with two workers each.

The recordings are made by tests/tools/record_worker_env.py. Every difference is in a table here, with its reason.
"""

import json
import os

import pytest
from support import plans

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "data", "worker_env")

ADDRESSES = "other machines, other ports; their form is compared"
OTHER_VALUE = {
    "torchrun": {
        "MASTER_ADDR": ADDRESSES,
        "MASTER_PORT": ADDRESSES,
        "OMP_NUM_THREADS": "torchrun always says 1; slaunch the physical cores of the worker's share",
        "TORCHELASTIC_ERROR_FILE": "theirs in a temporary folder, ours beside the log file",
        "TORCHELASTIC_USE_AGENT_STORE": "torchrun's agent serves the store; here worker 0 does, on a reserved port",
    },
    "paddle": {
        "PADDLE_MASTER": ADDRESSES,
        "PADDLE_CURRENT_ENDPOINT": ADDRESSES,
        "PADDLE_TRAINER_ENDPOINTS": ADDRESSES,
        "PADDLE_LOG_DIR": "both are absolute",
        "POD_NAME": "six random letters there; here six that are the same in every recomputation",
        "OMP_NUM_THREADS": "libraries that Paddle's launcher imports set it to 1",
    },
}
THEIRS_ONLY = {
    "torchrun": {
        "LC_CTYPE": "set by their Python in the C locale",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "settings of torchrun's agent, not of a worker",
    },
    "paddle": {
        "LC_CTYPE": "set by their Python in the C locale",
        "CUSTOM_DEVICE_ROOT": "set by importing paddle, which the worker does itself",
        "PADDLE_BACKUP_ENV_PATH": "written there always, with all secrets; here only where a list is too long for a variable",
    },
}
OURS_ONLY = {
    "torchrun": {"NODE_RANK": "read by Lightning and by many scripts"},
    "paddle": {},
}
OUR_RULES = {"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS"}
CONTRACT = {"torchrun": "torch", "paddle": "paddle"}


def recorded(launcher):
    with open(os.path.join(DATA, f"{launcher}.json")) as file:
        return json.load(file)


@pytest.mark.parametrize("launcher", CONTRACT)
@pytest.mark.parametrize("rank", range(4))
def test_f72_to_f81_as_the_other_launcher_but_for_the_named_differences(launcher, rank):
    theirs = recorded(launcher)["workers"][rank]
    ours = plans.env_of(plans.plan(plans.two_by_two(), contracts=(CONTRACT[launcher],)), rank)
    assert set(theirs) - set(ours) == set(THEIRS_ONLY[launcher])
    assert set(ours) - set(theirs) - OUR_RULES == set(OURS_ONLY[launcher])
    differ = {name for name in set(ours) & set(theirs) if ours[name] != theirs[name]}
    assert differ == set(OTHER_VALUE[launcher])


@pytest.mark.parametrize("rank", range(4))
def test_f79_endpoints_have_the_recorded_form(rank):
    theirs = recorded("paddle")["workers"][rank]
    ours = plans.env_of(plans.plan(plans.two_by_two()), rank)
    for env in (ours, theirs):
        endpoints = env["PADDLE_TRAINER_ENDPOINTS"].split(",")
        assert endpoints[rank] == env["PADDLE_CURRENT_ENDPOINT"]
        assert len(set(endpoints)) == 4
        assert env["PADDLE_MASTER"] not in endpoints
        host, _, port = env["PADDLE_MASTER"].partition(":")
        assert host == endpoints[0].partition(":")[0] and port.isdecimal()


def test_the_recordings_are_possible():
    for launcher in CONTRACT:
        workers = recorded(launcher)["workers"]
        assert len(workers) == 4
        assert recorded(launcher)["version"]
    torchrun = recorded("torchrun")["workers"]
    assert [each["RANK"] for each in torchrun] == ["0", "1", "2", "3"]
    assert [each["GROUP_RANK"] for each in torchrun] == ["0", "0", "1", "1"]
