"""Parameter servers, rpc and the self-test with real Paddle, on one machine and on a cluster."""

import glob
import re

import pytest
from support.cluster import CHECKOUT, Cluster
from support.jobs import PROGRAMS, folder_in

PYTHON = f"{CHECKOUT}/.venv-paddle26/bin/python"
"""PaddlePaddle 2.6.2, the last release whose CPU build has parameter servers and rpc."""
LAUNCH = (PYTHON, "-m", "slaunch.paddle", "--log_dir")
LIMIT_S = 110.0


def read(folder: str, name: str) -> str:
    """All logs of that name together."""
    texts = []
    for path in sorted(glob.glob(f"{folder}/{name}.*")):
        with open(path) as file:
            texts.append(file.read())
    return "\n".join(texts)


def assert_trained(folder: str, trainers: int, servers: int) -> None:
    """Every trainer's loss fell, and every server served."""
    found = re.findall(rf"^trainer (\d+) of {trainers}: loss ([\d.]+) -> ([\d.]+)$", read(folder, "workerlog"), re.MULTILINE)
    assert sorted(int(number) for number, _, _ in found) == list(range(trainers)), read(folder, "workerlog")
    assert all(float(last) < 0.7 * float(first) for _, first, last in found), found
    served = re.findall(rf"^server (\d+) of {servers} at", read(folder, "serverlog"), re.MULTILINE)
    assert sorted(map(int, served)) == list(range(servers)), read(folder, "serverlog")


@pytest.mark.parametrize("how", ["stop", "leave"])
def test_f86_f87_w41_parameter_servers_on_one_machine(cluster: Cluster, how: str) -> None:
    folder = folder_in(cluster.scratch)
    call = [*LAUNCH, folder, "--server_num", "1", "--trainer_num", "2", f"{PROGRAMS}/paddle_ps.py", how]
    done = cluster.run(call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(folder, trainers=2, servers=1)


def test_f89_w41_parameter_servers_on_two_nodes(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    call = [*LAUNCH, folder, "--server_num", "1", "--trainer_num", "1", f"{PROGRAMS}/paddle_ps.py", "leave"]
    done = cluster.srun("-N2", "--ntasks-per-node=1", *call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(folder, trainers=2, servers=2)


def test_w5_a_failing_trainer_fails_the_job(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    call = [
        *LAUNCH,
        folder,
        "--server_num",
        "1",
        "--trainer_num",
        "1",
        "-c",
        "import os, time; os.environ['TRAINING_ROLE'] == 'PSERVER' and time.sleep(99); raise SystemExit(3)",
    ]
    done = cluster.srun("-N2", "--ntasks-per-node=1", *call, timeout=LIMIT_S)
    assert done.returncode == 3, done.stderr


def test_f19_f91_rpc_on_two_nodes(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    call = [*LAUNCH, folder, "--run_mode", "rpc", "--nproc_per_node", "2", f"{PROGRAMS}/paddle_rpc.py"]
    done = cluster.srun("-N2", "--ntasks-per-node=1", *call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    answers = re.findall(r"^(\d) of 4: worker\d says (\d+)$", read(folder, "workerlog"), re.MULTILINE)
    assert sorted(answers) == [(str(rank), str(rank + 40)) for rank in range(4)]


def test_f52_run_check_on_two_nodes(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    call = ["slaunch", "paddle", "--log_dir", folder, "--nproc_per_node", "1", "run_check"]
    done = cluster.srun("-N2", "--ntasks-per-node=1", *call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    passed = re.findall(r"^worker (\d): (.*) passed in", read(folder, "workerlog"), re.MULTILINE)
    checks = ("numbers", "sum over TCP", "sum with PyTorch", "sum with Paddle")
    assert sorted(passed) == sorted((str(rank), name) for rank in range(2) for name in checks)
