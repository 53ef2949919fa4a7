"""MPI inside workers: alone where several share an agent (whose identity they must not take), a world where each task is one."""

import os

import pytest
from support.cluster import Cluster
from support.jobs import MPICH, OPENMPI4, OPENMPI5, folder_in, interpreter, logs

HELLO = "from mpi4py import MPI; print('world', MPI.COMM_WORLD.Get_size(), 'rank', MPI.COMM_WORLD.Get_rank(), flush=True)"
VENVS = [MPICH, OPENMPI5, OPENMPI4]


def tool(venv: str, name: str) -> str:
    return os.path.join(os.path.dirname(interpreter(venv)), name)


def worlds(folder: str) -> list[str]:
    """What the workers found. Open MPI 4 may print remarks of its own as well, e.g. when two of them make one session folder."""
    return [line for line in logs(folder).split("\n") if line.startswith("world")]


@pytest.mark.parametrize("plugin", ["pmix", "pmi2", "none"])
@pytest.mark.parametrize("venv", VENVS)
def test_p55_p56_each_worker_of_an_agent_under_srun_is_a_world_of_one(cluster: Cluster, venv: str, plugin: str) -> None:
    folder = folder_in(cluster.scratch)
    shape = ("-N2", "--ntasks-per-node=1", f"--mpi={plugin}", tool(venv, "slaunch"), "--nproc_per_node", "2")
    done = cluster.srun(*shape, "--log_dir", folder, "-c", HELLO, timeout=90)
    assert done.returncode == 0, done.stderr
    assert worlds(folder) == ["world 1 rank 0"] * 4


def test_p56_with_the_agent_s_identity_kept_the_same_workers_fail(cluster: Cluster) -> None:
    """What hygiene is for: it shows that the test above can fail."""
    shape = ("-N2", "--ntasks-per-node=1", "--mpi=pmix", tool(MPICH, "slaunch"), "--nproc_per_node", "2")
    done = cluster.srun(*shape, "--log_dir", folder_in(cluster.scratch), "--keep-env", "*", "-c", HELLO, timeout=90)
    assert done.returncode != 0


def mpirun(venv: str) -> list[str]:
    """The mpirun of the library that this environment has."""
    if venv == OPENMPI4:
        return ["mpirun.openmpi"]
    return [tool(venv, "mpirun")]


@pytest.mark.parametrize("venv", VENVS)
def test_p55_p56_each_worker_of_an_agent_under_mpirun_is_a_world_of_one(cluster: Cluster, venv: str) -> None:
    folder = folder_in(cluster.scratch)
    launch = (*mpirun(venv), "-np", "1", tool(venv, "slaunch"), "--nproc_per_node", "2")
    done = cluster.run([*launch, "--log_dir", folder, "-c", HELLO], node="n1", timeout=90)
    assert done.returncode == 0, done.stderr
    assert worlds(folder) == ["world 1 rank 0"] * 2


def test_p56_tasks_of_mpirun_that_become_workers_keep_their_world(cluster: Cluster) -> None:
    """The meeting has used MPI once for each task; only Open MPI 5's PMIx lets the worker do so again."""
    venv = OPENMPI5
    launch = (*mpirun(venv), "-np", "2", tool(venv, "slaunch"))
    done = cluster.run([*launch, "-c", HELLO], node="n1", timeout=90)
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.split("\n") if line.startswith("world")) == ["world 2 rank 0", "world 2 rank 1"]


@pytest.mark.parametrize(("venv", "plugin"), [(MPICH, "pmi2"), (OPENMPI5, "pmix"), (OPENMPI4, "pmix")])
def test_p56_tasks_of_srun_that_become_workers_keep_their_world(cluster: Cluster, venv: str, plugin: str) -> None:
    shape = ("-N2", "--ntasks-per-node=2", f"--mpi={plugin}", tool(venv, "slaunch"), "--rendezvous", "slurm")
    done = cluster.srun(*shape, "-c", HELLO, timeout=90)
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.split("\n") if line.startswith("world")) == [
        f"world 4 rank {rank}" for rank in range(4)
    ]
