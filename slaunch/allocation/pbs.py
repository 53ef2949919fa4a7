"""PBS Professional, OpenPBS and Torque: a batch script or interactive job, whose nodes PBS_NODEFILE lists.

PBS starts one process, on the first node; slaunch starts the others by the site's MPI launcher. Processes that such a launcher
starts have its own variables and are not read here.
"""

from __future__ import annotations

from slaunch.allocation.jobid import pbs_job
from slaunch.allocation.reader import SHELL, Env, Given, Reader, check, evidence, file_text, shown
from slaunch.allocation.values import Allocation, Shell, Sighting, StepShape
from slaunch.errors import AllocationError


def sight(env: Env) -> Sighting:
    """See a PBS job."""
    if "PBS_JOBID" not in env and "PBS_NODEFILE" not in env:
        return Sighting("pbs", 0)
    return Sighting("pbs", SHELL, evidence(env, PBS_JOBID="the job", PBS_NODEFILE="file that lists its nodes"))


def read(given: Given) -> Shell:
    """Return the job's nodes, each once, in the order of the file; the script runs on the first.

    Raises:
        AllocationError: there is no list of nodes, or this is a process of pbsdsh, which has no rank.
    """
    env = given.env
    if not env.get("PBS_NODEFILE"):
        raise AllocationError(
            "read the job's hosts", f"{shown(env, 'PBS_JOBID')}, but PBS_NODEFILE is not set", "start slaunch in the job itself"
        )
    check(
        env.get("PBS_NODENUM", "0") in ("", "0"),
        shown(env, "PBS_NODENUM", "PBS_TASKNUM"),
        "this is no batch script, but a process on another node (pbsdsh), without a rank",
    )
    lines = file_text(given, "PBS_NODEFILE").split()
    nodes = tuple(dict.fromkeys(lines))
    check(bool(nodes), shown(env, "PBS_NODEFILE"), "the file names no node")
    return Shell(Allocation("pbs", pbs_job(env), nodes=nodes, evidence=sight(env).evidence), StepShape(len(nodes)))


READER = Reader("pbs", (), sight, read)
