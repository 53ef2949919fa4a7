"""JAX, TensorFlow, Accelerate, Lightning, DeepSpeed and Horovod's protocol form one world, however they are started."""

import os
import re

import pytest
from support.cluster import CHECKOUT, Cluster
from support.jobs import PROGRAMS, folder_in, logs

SLAUNCH = os.path.join(CHECKOUT, ".venv-frameworks", "bin", "slaunch")
CONTRACTS = {
    "jax": ("--contract", "jax"),
    "tensorflow": ("--contract", "tensorflow"),
    "accelerate": ("--contract", "accelerate"),
    "lightning": (),
    "deepspeed": (),
}
LIMIT_S = 150.0
"""Four processes that import a framework, on whatever this machine has."""

every_framework = pytest.mark.parametrize("framework", CONTRACTS)


def program(framework: str) -> tuple[str, ...]:
    return *CONTRACTS[framework], os.path.join(PROGRAMS, f"hello_{framework}.py")


def assert_met(text: str, world: int) -> None:
    """Each rank once, all with the same size, and the sum of all ranks."""
    said = sorted(tuple(map(int, found)) for found in re.findall(r"hello (\d+) (\d+) (\d+)$", text, re.MULTILINE))
    assert said == [(rank, world, world * (world - 1) // 2) for rank in range(world)], text


@every_framework
def test_f331_an_agent_on_each_node(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    shape = ("-N2", "--ntasks-per-node=1", SLAUNCH, "--nproc_per_node", "2", "--log_dir", folder)
    done = cluster.srun(*shape, *program(framework), timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_met(logs(folder), 4)


@every_framework
def test_f331_a_task_for_each_worker(cluster: Cluster, framework: str) -> None:
    done = cluster.srun("-N1", "--ntasks-per-node=2", SLAUNCH, *program(framework), timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_met(done.stdout, 2)


@every_framework
def test_f331_one_machine_without_a_scheduler(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    launch = (SLAUNCH, "--nproc_per_node", "2", "--log_dir", folder)
    done = cluster.run([*launch, *program(framework)], node="n1", timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_met(logs(folder), 2)


def test_f331_horovod_s_way_of_meeting_on_two_nodes(cluster: Cluster) -> None:
    """By a client of its protocol."""
    folder = folder_in(cluster.scratch)
    call = [SLAUNCH, "--nproc_per_node", "2", "--log_dir", folder, "--contract", "horovod,slaunch", f"{PROGRAMS}/meet_by_gloo.py"]
    done = cluster.srun("-N2", "--ntasks-per-node=1", *call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    said = sorted(line for line in logs(folder).splitlines() if line.startswith("turn 1"))
    mates = {0: ([0, 1], [0, 2]), 1: ([0, 1], [1, 3]), 2: ([2, 3], [0, 2]), 3: ([2, 3], [1, 3])}
    met = [f"met [0, 1, 2, 3] here {here} across {across}" for here, across in mates.values()]
    assert said == [f"turn 1: rank {rank} of 4 {words}" for rank, words in enumerate(met)]


SERVERS = ("--run_mode", "ps", "--server_num", "1", "--trainer_num", "2", "--contract", "tensorflow,slaunch")


def assert_trained(folder: str, workers: int, servers: int) -> None:
    """The chief's line has the right slope, and all others served it."""
    text = logs(folder) + logs(folder, "serverlog")
    found = re.findall(rf"^chief: chief=1 worker={workers} ps={servers} slope ([\d.]+) on ps$", text, re.MULTILINE)
    assert len(found) == 1, text
    assert 2.5 < float(found[0]) < 3.5
    served = sorted(re.findall(r"^serving (\w+) (\d)$", text, re.MULTILINE))
    assert served == [(kind, str(index)) for kind, count in (("ps", servers), ("worker", workers)) for index in range(count)]


def test_f331_tensorflow_s_parameter_servers_end_with_the_chief(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    call = [SLAUNCH, "--log_dir", folder, *SERVERS, os.path.join(PROGRAMS, "tensorflow_ps.py")]
    done = cluster.run(call, node="n1", timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(folder, 1, 1)


def test_f331_tensorflow_s_parameter_servers_on_two_nodes(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    call = [SLAUNCH, "--log_dir", folder, *SERVERS, os.path.join(PROGRAMS, "tensorflow_ps.py")]
    done = cluster.srun("-N2", "--ntasks-per-node=1", *call, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_trained(folder, 3, 2)


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_f331_jax_in_tasks_of_mpirun(cluster: Cluster, library: str) -> None:
    """Under MPICH, neither Slurm's nor Open MPI's variables are there for JAX to detect."""
    mpirun = "mpirun.openmpi" if library == "openmpi" else os.path.join(os.path.dirname(SLAUNCH), "mpirun")
    env = {"MPI4PY_LIBMPI": "libmpi.so.40"} if library == "openmpi" else {}
    done = cluster.run([mpirun, "-np", "2", SLAUNCH, *program("jax")], node="n1", timeout=LIMIT_S, env=env)
    assert done.returncode == 0, done.stderr
    assert_met(done.stdout, 2)
