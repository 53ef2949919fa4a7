"""JAX, TensorFlow, Accelerate, Lightning and DeepSpeed form one world, however they are started."""

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
    done = cluster.srun("-N2", "--ntasks-per-node=2", SLAUNCH, *program(framework), timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_met(done.stdout, 4)


@every_framework
def test_f331_one_machine_without_a_scheduler(cluster: Cluster, framework: str) -> None:
    folder = folder_in(cluster.scratch)
    launch = (SLAUNCH, "--nproc_per_node", "2", "--log_dir", folder)
    done = cluster.run([*launch, *program(framework)], node="n1", timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert_met(logs(folder), 2)


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_f331_jax_in_tasks_of_mpirun(cluster: Cluster, library: str) -> None:
    """Under MPICH, neither Slurm's nor Open MPI's variables are there for JAX to detect."""
    mpirun = "mpirun.openmpi" if library == "openmpi" else os.path.join(os.path.dirname(SLAUNCH), "mpirun")
    env = {"MPI4PY_LIBMPI": "libmpi.so.40"} if library == "openmpi" else {}
    done = cluster.run([mpirun, "-np", "2", SLAUNCH, *program("jax")], node="n1", timeout=LIMIT_S, env=env)
    assert done.returncode == 0, done.stderr
    assert_met(done.stdout, 2)
