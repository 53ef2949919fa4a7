"""Parameter servers, rpc and the self-test with real Paddle, on one machine and on a cluster."""

import glob
import re

from support.cluster import CHECKOUT, Cluster
from support.jobs import PROGRAMS, folder_in, free_port

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


def by_hand(cluster: Cluster, *words: str) -> None:
    """The same command on two nodes that no scheduler started, which meet at an address; it ends well on both."""
    call = [PYTHON, "-m", "slaunch.paddle", "--master", f"n1:{free_port()}", "--nnodes", "2", *words]
    started = [cluster.start(call, node, env={"PADDLE_JOB_ID": "by-hand"}) for node in ("n1", "n2")]
    ended = [cluster.wait(process, LIMIT_S) for process in started]
    assert [each.returncode for each in ended] == [0, 0], ended


def test_f4_f86_f87_w41_parameter_servers_on_one_machine(cluster: Cluster) -> None:
    """Trainers end the servers themselves."""
    folder = folder_in(cluster.scratch)
    master = ("--master", f"127.0.0.1:{free_port()}", "--nnodes", "1")
    call = [*LAUNCH, folder, *master, "--server_num", "1", "--trainer_num", "2", f"{PROGRAMS}/paddle_ps.py", "stop"]
    done = cluster.run(call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(folder, trainers=2, servers=1)


def test_f4_f89_w41_parameter_servers_on_two_nodes(cluster: Cluster) -> None:
    """Trainers leave the servers to slaunch. By Slurm, then by hand."""
    ps = ("--server_num", "1", "--trainer_num", "1", f"{PROGRAMS}/paddle_ps.py", "leave")
    folder = folder_in(cluster.scratch)
    done = cluster.srun("-N2", "--ntasks-per-node=1", *LAUNCH, folder, *ps, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(folder, trainers=2, servers=2)
    folder = folder_in(cluster.scratch)
    by_hand(cluster, "--log_dir", folder, *ps)
    assert_trained(folder, trainers=2, servers=2)


HETER_ROLES = """
[[role]]
name = "server"
component = 0
[[role]]
name = "trainer"
component = 0
[[role]]
name = "heter2"
component = 1
args = ["--second-stage"]
"""
HETER = ("--run_mode", "ps-heter", "--heter_devices", "cpu", "--heter_worker_num", "1")


def test_f20_f299_f300_heterogeneous_parameter_servers_as_far_as_paddle_goes(cluster: Cluster) -> None:
    """On one machine, and with the second stage on a component of its own. Paddle then loses the split program."""
    env = {"FLAGS_LAUNCH_BARRIER": "0"}
    folders = [folder_in(cluster.scratch) for _ in range(3)]
    with open(f"{folders[0]}/roles.toml", "w") as file:
        file.write(HETER_ROLES)
    call = [[*LAUNCH, folder, *HETER, "--roles", f"{folders[0]}/roles.toml", f"{PROGRAMS}/paddle_heter.py"] for folder in folders]
    single = cluster.start([*call[0], f"{folders[0]}/mark"], "n4", env=env)
    part = ("--ntasks-per-node=1", *call[1], f"{folders[1]}/mark")
    spread = cluster.srun("-Q", "-N1", *part, ":", "-N1", *part, timeout=LIMIT_S, env=env)
    for folder, done in ((folders[0], cluster.wait(single, LIMIT_S)), (folders[1], spread)):
        assert done.returncode == 0, done.stderr
        assert "TRAINER of stage 1: init_worker" in read(folder, "workerlog")
        assert "PSERVER of stage none: serves" in read(folder, "serverlog")
        second = read(folder, "heter2log")
        assert "HETER_TRAINER of stage 2: init_worker" in second
        assert "HETER_TRAINER of stage 2: train_from_dataset: dataset is need and should be initialized" in second
    done = cluster.run([*call[2], f"{folders[2]}/mark", "dense-behind"], timeout=LIMIT_S, env=env)
    assert "TRAINER of stage 1: minimize: 'tuple' object has no attribute 'merged_var'" in read(folders[2], "workerlog"), done


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


def assert_answered(folder: str, world: int) -> None:
    """Every worker's call was answered by the next one."""
    answers = re.findall(rf"^(\d) of {world}: worker\d says (\d+)$", read(folder, "workerlog"), re.MULTILINE)
    assert sorted(answers) == [(str(rank), str(rank + 40)) for rank in range(world)]


def test_f4_f19_f91_rpc_on_one_machine_and_on_two(cluster: Cluster) -> None:
    """By an address, by Slurm, and by hand."""
    folders = [folder_in(cluster.scratch) for _ in range(3)]
    rpc = ("--run_mode", "rpc", "--nproc_per_node")
    program = f"{PROGRAMS}/paddle_rpc.py"
    one = ("--master", f"127.0.0.1:{free_port()}", "--nnodes", "1")
    single = cluster.start([*LAUNCH, folders[0], *one, *rpc, "2", program])
    step = cluster.srun("-N2", "--ntasks-per-node=1", *LAUNCH, folders[1], *rpc, "2", program, timeout=LIMIT_S)
    by_hand(cluster, "--log_dir", folders[2], *rpc, "1", program)
    for done in (cluster.wait(single, LIMIT_S), step):
        assert done.returncode == 0, done.stderr
    assert_answered(folders[0], 2)
    assert_answered(folders[1], 4)
    assert_answered(folders[2], 2)


def test_f52_run_check_on_two_nodes(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    call = ["slaunch", "paddle", "--log_dir", folder, "--nproc_per_node", "1", "run_check"]
    done = cluster.srun("-N2", "--ntasks-per-node=1", *call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    passed = re.findall(r"^worker (\d): (.*) passed in", read(folder, "workerlog"), re.MULTILINE)
    checks = ("numbers", "sum over TCP", "sum with PyTorch", "sum with Paddle")
    assert sorted(passed) == sorted((str(rank), name) for rank in range(2) for name in checks)
