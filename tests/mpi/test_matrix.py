"""Three MPI libraries times three of srun's process-manager plug-ins: a world of eight in all nine cases."""

import os
import re

import pytest
from support.cluster import Cluster
from support.jobs import MPICH, OPENMPI4, OPENMPI5, WORLD, assert_world, folder_in, interpreter, library, logs

FITS = {(MPICH, "pmi2"), (OPENMPI5, "pmix"), (OPENMPI4, "pmix")}


def slaunch(venv: str) -> tuple[str, ...]:
    """slaunch of this environment with this environment's MPI, though the site has another one."""
    return "env", f"MPI4PY_LIBMPI={library(venv)}", os.path.join(os.path.dirname(interpreter(venv)), "slaunch")


@pytest.mark.parametrize("plugin", ["pmix", "pmi2", "none"])
@pytest.mark.parametrize("venv", [MPICH, OPENMPI5, OPENMPI4])
def test_f331_p53_p54_p64_a_world_of_eight_agents_and_their_workers(cluster: Cluster, venv: str, plugin: str) -> None:
    folder = folder_in(cluster.scratch)
    shape = ("-N4", "--ntasks-per-node=1", f"--mpi={plugin}")
    done = cluster.srun(*shape, *slaunch(venv), "--nproc_per_node", "2", "--log_dir", folder, WORLD, timeout=90)
    assert done.returncode == 0, done.stderr
    assert_world(logs(folder), 8, [2, 2, 2, 2])
    assert_way(done.stderr, 4, venv, plugin)


@pytest.mark.parametrize("plugin", ["pmix", "pmi2", "none"])
@pytest.mark.parametrize("venv", [MPICH, OPENMPI5, OPENMPI4])
def test_f331_p15_p53_a_world_of_eight_tasks_that_become_workers(cluster: Cluster, venv: str, plugin: str) -> None:
    shape = ("-N4", "--ntasks-per-node=2", f"--mpi={plugin}")
    done = cluster.srun(*shape, *slaunch(venv), WORLD, timeout=90)
    assert done.returncode == 0, done.stderr
    assert_world(done.stdout, 8, [2, 2, 2, 2])
    assert "met 8 tasks by slurm: each task becomes its worker" in done.stderr


def assert_way(said: str, tasks: int, venv: str, plugin: str) -> None:
    """One line, told once, says how they met and why so."""
    ((met, way, reason),) = re.findall(r"^slaunch: met (\d+) tasks by (\w+): (.+)$", said, re.MULTILINE)
    assert int(met) == tasks
    assert way == ("mpi" if (venv, plugin) in FITS else "slurm"), said
    assert ("Open MPI" if venv != MPICH else "MPICH").replace(" ", "").lower() in reason.replace(" ", "").lower()


def test_p53_the_sites_own_library_is_used_where_the_packages_does_not_fit(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    command = ("-N4", "--ntasks-per-node=1", "--mpi=pmix", "slaunch", "--nproc_per_node", "2", "--log_dir", folder, WORLD)
    done = cluster.srun(*command, timeout=90)
    assert done.returncode == 0, done.stderr
    assert re.search(r"met 4 tasks by mpi: mpi4py's Open MPI \(.*libmpi.so[.40]*\) understands PMIx", done.stderr), done.stderr
    assert_world(logs(folder), 8, [2, 2, 2, 2])
