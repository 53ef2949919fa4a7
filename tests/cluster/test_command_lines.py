"""Other launchers' command lines in real Slurm steps and batch scripts."""

import pytest
from support.cluster import Cluster
from support.jobs import WORLD, assert_three_parts, assert_world, folder_in, logs

TORCHRUN = ("slaunch", "torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:29500", "--rdzv-id=77")


def test_torchrun_under_srun_changes_one_word(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    done = cluster.srun("-N2", "--ntasks-per-node=1", *TORCHRUN, "--nproc-per-node=2", "--log-dir", folder, WORLD)
    assert done.returncode == 0, done.stderr
    assert_world(logs(folder), 4, [2, 2])
    assert_world(done.stdout, 4, [2, 2])  # every rank's output is shown, as by torchrun
    assert "--rdzv-endpoint=n1:29500: not needed, slurm started all tasks" in done.stderr
    assert done.stderr.count("--rdzv-backend: no effect") == 1


def test_torchrun_in_a_batch_script_gets_the_nodes_that_it_wants(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = f"#!/bin/bash\nexec {' '.join(TORCHRUN)} --nproc-per-node=1 --log-dir {folder} {WORLD}\n"
    job = cluster.sbatch(script, "-N3", "--exclusive")
    assert (job.state, job.code) == ("COMPLETED", 0), job.output
    assert_world(logs(folder), 2, [1, 1])


@pytest.mark.parametrize("words", [("torchrun", "--nnodes=4"), ("paddle", "--nnodes", "4"), ("--nnodes", "3:4")])
def test_p13_another_number_of_nodes_than_the_step_has(cluster: Cluster, words: tuple[str, ...]) -> None:
    done = cluster.srun("-N2", "--ntasks-per-node=1", "slaunch", *words, WORLD)
    assert_three_parts(done, 65, "4", "slurm has 2")


def test_p13_a_node_number_that_was_expanded_too_early(cluster: Cluster) -> None:
    done = cluster.srun("-N2", "--ntasks-per-node=1", "slaunch", "torchrun", "--nnodes=2", "--node-rank=0", WORLD)
    assert_three_parts(done, 65, "--node-rank=0", "slurm says this is node 1")


def test_w41_servers_on_all_nodes_end_when_the_last_trainer_has_ended(cluster: Cluster) -> None:
    code = "import os, time; time.sleep(int(os.environ.get('PADDLE_TRAINER_ID', 600)) / 2)"  # servers: five minutes
    folder = folder_in(cluster.scratch)
    options = ("--server-num", "1", "--trainer-num", "2", "--log-dir", folder)
    done = cluster.srun("-N3", "--ntasks-per-node=1", "slaunch", *options, "-c", code, timeout=60)
    assert done.returncode == 0, done.stderr


def test_f90_p13_lists_of_endpoints_by_address(cluster: Cluster) -> None:
    addresses = [cluster.run(["getent", "hosts", node]).stdout.split()[0] for node in ("n1", "n2")]
    lists = [",".join(f"{ip}:{port}" for ip in addresses) for port in (7171, 7172)]
    names = "os.environ['TRAINING_ROLE'], os.environ['PADDLE_PORT'], os.environ['POD_IP']"
    code = f"import os, time; print('show', {names}, flush=True); time.sleep(2)"
    words = ("slaunch", "paddle", "--tee", "all", "--log_dir", folder_in(cluster.scratch))
    done = cluster.srun(
        "-N2", "-w", "n1,n2", "--ntasks-per-node=1", *words, "--servers", lists[0], "--trainers", lists[1], "-c", code
    )
    assert done.returncode == 0, done.stderr
    for address in addresses:
        assert f"show PSERVER 7171 {address}" in done.stdout
        assert f"show TRAINER 7172 {address}" in done.stdout


def test_f24_f83_static_addresses(cluster: Cluster) -> None:
    addresses = [cluster.run(["getent", "hosts", node]).stdout.split()[0] for node in ("n1", "n2")]
    words = ("slaunch", "paddle", "--tee", "all", "--log_dir", folder_in(cluster.scratch), "--nproc_per_node", "2")
    done = cluster.srun(
        "-N2", "-w", "n1,n2", "--ntasks-per-node=1", *words, "--ips", ",".join(addresses), "--start_port", "7300", WORLD
    )
    assert done.returncode == 0, done.stderr
    assert_world(done.stdout, 4, [2, 2])
    assert f"{addresses[0]}:7300,{addresses[0]}:7301,{addresses[1]}:7300,{addresses[1]}:7301" in done.stdout


def test_w12_a_node_that_is_not_in_the_list(cluster: Cluster) -> None:
    done = cluster.srun("-N2", "--ntasks-per-node=1", "slaunch", "paddle", "--ips", "192.0.2.1,192.0.2.2", WORLD)
    assert_three_parts(done, 2, "--ips 192.0.2.1,192.0.2.2")
