"""What is told, and what is left, when something fails on the cluster."""

import os
import signal
import subprocess

from support.cluster import Cluster, Process
from support.jobs import FAILING, folder_in


def start(cluster: Cluster, folder: str, rank: str, code: str, seconds: str) -> subprocess.Popen[str]:
    shape = ["srun", "-N4", "--ntasks-per-node=1"]
    command = ["slaunch", "--nproc_per_node", "2", "--log_dir", folder, FAILING, folder, rank, code, seconds]
    return cluster.start([*shape, *command], env={"MARK": folder})


def up(cluster: Cluster, folder: str) -> None:
    cluster.wait_until(
        lambda: sum(name.startswith("up.") for name in os.listdir(folder)) == 8, 40, lambda: f"only {os.listdir(folder)}"
    )


def told(folder: str) -> set[str]:
    return {name.removeprefix("told.") for name in os.listdir(folder) if name.startswith("told.")}


def agents(cluster: Cluster, folder: str, node: str) -> list[Process]:
    """The oldest process of slaunch on a node is its agent."""
    found = [
        process
        for process in cluster.processes(f"MARK={folder}")
        if process.node == node and any("slaunch" in word for word in process.argv)
    ]
    return sorted(found, key=lambda process: process.pid)


def test_f118_f119_f143_f295_f314_p94_the_first_cause(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    process = start(cluster, folder, "5", "7", "3")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 7, said
    assert told(folder) == set("0123467"), said  # everybody else was asked to stop
    assert said.count("rank 5 on n3 failed with exit code 7") == 1
    assert said.count("rank 5: these are my last words") == 1
    assert "Traceback" not in said


def test_f325_p97_an_agent_is_killed(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    process = start(cluster, folder, "none", "0", "0")
    up(cluster, folder)
    os.kill(agents(cluster, folder, "n3")[0].pid, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said.count("lost the agent on node 2 (n3)") == 1, said
    assert told(folder) >= set("012367"), said


def test_p97_the_first_agent_is_killed(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    process = start(cluster, folder, "none", "0", "0")
    up(cluster, folder)
    os.kill(agents(cluster, folder, "n1")[0].pid, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said.count("lost the agent on node 0 (n1)") == 1, said
    assert told(folder) >= set("234567"), said


def test_f128_f131_a_signal_to_the_step_stops_everything(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    process = start(cluster, folder, "none", "0", "0")
    up(cluster, folder)
    cluster.run(["scancel", "--user", "hpc", "--signal=TERM"])
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, said
    assert told(folder) == set("01234567"), said
    assert said.count("slaunch: stopped by SIGTERM") == 1


def test_f323_p96_srun_is_stopped_and_kills_the_step(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    process = start(cluster, folder, "none", "0", "0")
    up(cluster, folder)
    assert cluster.stop(process, signal.SIGTERM).returncode != 0
    cluster.wait_until(lambda: not cluster.processes(f"MARK={folder}"), 20, lambda: str(cluster.processes()))


def test_p82_scancel(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    process = start(cluster, folder, "none", "0", "0")
    up(cluster, folder)
    cluster.run(["scancel", "--user", "hpc"])
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert told(folder) == set("01234567"), said


def test_f128_one_ctrl_c_in_an_allocation_shell_stops_the_job_in_good_order(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    wait = "import time; print('begun', flush=True); time.sleep(60)"
    script = (
        f'slaunch --nproc-per-node 1 --log_dir {folder} -c "{wait}" & pid=$!\n'
        f"for _ in $(seq 200); do grep -qs begun {folder}/workerlog.1 && break; sleep 0.1; done\n"
        "kill -INT $pid; wait $pid\n"
    )
    # an interactive shell lets what it starts in the background hear SIGINT
    done = cluster.run(["salloc", "-Q", "-N2", "bash", "-m", "-c", script], timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr.count("slaunch: stopped by SIGINT (exit code 130)") == 1, done.stderr
