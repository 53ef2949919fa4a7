"""What workers find in their environment, by slaunch and by the other launcher, run side by side with the same options.

Every difference is in a table here, and told in docs/worker-environment.md.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.cluster import CHECKOUT
from support.jobs import free_port

from slaunch.cli.paddle_rows import ROWS as PADDLE_ROWS
from slaunch.cli.torchrun import ROWS

DUMP = """
import json, os, sys, time
env, folder, everyone = os.environ, sys.argv[1], int(sys.argv[2])
role = env.get("TRAINING_ROLE", "WORKER")
number = env.get("PADDLE_TRAINER_ID") or env.get("RANK") or "0"
with open(os.path.join(folder, "part-" + role + number), "w") as file:
    json.dump(dict(env), file)
os.rename(file.name, os.path.join(folder, role + number))
deadline = time.monotonic() + 60
while sum(not name.startswith("part-") for name in os.listdir(folder)) < everyone and time.monotonic() < deadline:
    time.sleep(0.05)
"""
TORCHRUN = """
import sys
from torch.distributed.run import get_args_parser, main
get_args_parser().print_help(sys.stderr)
sys.stderr.flush()
main(sys.argv[1:])
"""
PADDLE = """
import sys
from paddle.distributed.fleet import launch as older
from paddle.distributed.launch.context import args_envs
words = sys.argv[1:]
for parse in (args_envs.parse_args, older._parse_args):
    try:
        sys.argv[1:] = ["--help"]
        parse()
    except SystemExit:
        sys.stdout.flush()
sys.argv[1:] = words
from paddle.distributed.launch.main import launch
launch()
"""
OLD = f"{CHECKOUT}/.venv-paddle26/bin/python"
LIMIT_S = 100

PLACES = {
    *("MASTER_PORT", "PADDLE_MASTER", "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_PSERVERS_IP_PORT_LIST"),
    *("PADDLE_PORT", "PADDLE_GLOO_HTTP_ENDPOINT", "PADDLE_MASTER_ENDPOINT", "PADDLE_WORKER_ENDPOINT"),
    *("PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST", "PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST"),
    "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST",
}
"""Free ports: other numbers. What is compared is the form, with numbers replaced."""

KINDS = {
    "torchrun": (["--nnodes", "1", "--nproc-per-node", "2", "--rdzv-id", "j"], 2),
    "collective": (["--nproc_per_node", "2"], 2),
    "rpc": (["--master", "MASTER", "--nnodes", "1", "--rank", "0", "--nproc_per_node", "2", "--run_mode", "rpc"], 2),
    "ps": (["--server_num", "1", "--trainer_num", "2"], 3),
    "ps-heter": (["--run_mode=ps-heter", "--server_num=1", "--worker_num=1", "--heter_devices=cpu", "--heter_worker_num=1"], 3),
}


def theirs(kind: str) -> list[str]:
    """The other launcher."""
    if kind == "torchrun":
        return [sys.executable, "-c", TORCHRUN]
    if kind == "collective":
        return [sys.executable, "-c", PADDLE]
    return [OLD, "-m", "paddle.distributed.fleet.launch" if kind == "ps-heter" else "paddle.distributed.launch"]


def ours(kind: str) -> list[str]:
    return [sys.executable, "-m", "slaunch", "torchrun"] if kind == "torchrun" else [sys.executable, "-m", "slaunch.paddle"]


def start(call: list[str], kind: str, folder: Path) -> subprocess.Popen[str]:
    """Start a launcher in a folder of its own."""
    (folder / "out").mkdir(parents=True)
    options, workers = KINDS[kind]
    given = [word.replace("MASTER", f"127.0.0.1:{free_port()}") for word in options]
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "POD_IP": "127.0.0.1", "LC_ALL": "C.UTF-8"}
    if kind == "torchrun":
        del env["POD_IP"]
    if folder.name.endswith("ours"):
        given += ["--contract", "torch" if kind == "torchrun" else "paddle"]
    words = [*call, *given, str(folder.parent / "dump.py"), str(folder / "out"), str(workers)]
    return subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """By kind: what each worker had by them and by us; the help of torchrun, and that of Paddle's launchers."""
    top = tmp_path_factory.mktemp("env")
    (top / "dump.py").write_text(DUMP)
    started = {kind: [start(call(kind), kind, top / f"{kind}-{call.__name__}") for call in (theirs, ours)] for kind in KINDS}
    ended = {kind: [process.communicate(timeout=LIMIT_S) for process in pair] for kind, pair in started.items()}
    for kind, pair in started.items():
        assert [process.returncode for process in pair] == [0, 0], (kind, ended[kind])
    read = {
        kind: [
            {path.name: json.loads(path.read_text()) for path in (top / f"{kind}-{whose}" / "out").iterdir()}
            for whose in ("theirs", "ours")
        ]
        for kind in KINDS
    }
    return read, ended["torchrun"][0][1], ended["collective"][0][0]


KNOWN_BY_THEM = {
    "TORCHELASTIC_SIGNALS_TO_HANDLE": "settings of torchrun's agent, not of a worker",
    "CUSTOM_DEVICE_ROOT": "set by importing paddle, which the worker does itself",
    "PADDLE_BACKUP_ENV_PATH": "written there always, with all secrets; here only where a list is too long for a variable",
    "PADDLE_COORDINATOR_ENDPOINTS": "empty there without coordinators",
    "CUDA_VISIBLE_DEVICES": "the older launcher hides all devices but one, also where there are none; here lists stay as found",
    "XPU_VISIBLE_DEVICES": "likewise",
    "FLAGS_selected_gpus": "likewise",
    "FLAGS_selected_xpus": "likewise",
}
"""Variables that slaunch's workers do not have, and why."""
KNOWN_BY_US = {
    "NODE_RANK": "read by Lightning and by many scripts",
    "GLOO_SOCKET_IFNAME": "the interface on the network that all nodes share",
    "TP_SOCKET_IFNAME": "likewise",
    "NCCL_SOCKET_IFNAME": "likewise",
    "PADDLE_LOG_DIR": "the newer launcher's, which the older one has not",
    "PADDLE_NNODES": "likewise",
    "PADDLE_ROLE": "likewise",
    "POD_NAME": "likewise",
}
OTHER_VALUE = {
    "OMP_NUM_THREADS": "1 there; here the physical cores of the worker's share",
    "MASTER_ADDR": "a name there, an address here",
    "TORCHELASTIC_ERROR_FILE": "in a temporary folder there, beside the log file here",
    "TORCHELASTIC_RUN_ID": "a random name there where one node needs no meeting; here what --rdzv-id says",
    "TORCHELASTIC_USE_AGENT_STORE": "torchrun's agent serves the store; here worker 0 does, on a reserved port",
    "PADDLE_LOG_DIR": "both absolute",
    "POD_NAME": "six letters, other ones",
    "PADDLE_GLOO_FS_PATH": "a path that is removed before use there; below the log directory here, which nodes share",
}


@pytest.mark.parametrize("kind", KINDS)
def test_f72_to_f81_f86_f87_f88_f91_f299_the_same_but_for_the_named_differences(found, kind):
    their, our = found[0][kind]
    assert set(their) == set(our)
    assert all(os.path.isabs(env.get("PADDLE_LOG_DIR", "/")) for env in our.values())
    for name, theirs in their.items():
        ours = {each: value for each, value in our[name].items() if not each.startswith("SLAUNCH_")}
        assert set(theirs) - set(ours) <= set(KNOWN_BY_THEM), name
        assert set(ours) - set(theirs) <= set(KNOWN_BY_US), name
        both = {each: (formed(each, theirs[each]), formed(each, ours[each])) for each in set(theirs) & set(ours)}
        different = {each: pair for each, pair in both.items() if pair[0] != pair[1]}
        assert set(different) <= set(OTHER_VALUE), different


def formed(name: str, value: str) -> str:
    """A value, without the numbers of ports that nobody fixed."""
    return re.sub(r"(?<![.\d])\d{4,5}$|(?<=:)\d{4,5}", "PORT", value) if name in PLACES else value


def test_each_difference_is_told():
    with open(f"{CHECKOUT}/docs/worker-environment.md") as file:
        text = file.read()
    missing = [name for name in {*KNOWN_BY_THEM, *KNOWN_BY_US, *OTHER_VALUE} if f"`{name}`" not in text]
    assert not missing


def test_every_option_of_the_installed_torchrun_is_known(found):
    theirs = set(re.findall(r"^  (-\w|--[\w-]+)", found[1], re.MULTILINE)) - {"-h"}
    assert len(theirs) > 25, found[1]
    assert theirs <= {name for row in ROWS for name in row.names}


def test_f285_every_option_of_paddles_launchers_is_known(found):
    """The newer one's and the older one's; those for auto mapping are known to be refused (F302)."""
    theirs = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", found[2], re.MULTILINE)) - {"--help"}
    assert {"--auto_tuner_json", "--coordinator_num", "--elastic_pre_hook", "--servers"} <= theirs
    known = {name.replace("-", "_") for row in PADDLE_ROWS for name in row.names}
    assert {name.replace("-", "_") for name in theirs} <= known
