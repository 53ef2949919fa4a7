"""LSF: tasks that jsrun started (JSM_NAMESPACE_*), or the batch script, whose hosts LSB_DJOB_RANKFILE and others list."""

from __future__ import annotations

from slaunch.allocation.jobid import lsf_job
from slaunch.allocation.reader import MPI, SHELL, Env, Given, Reader, check, evidence, file_text, first_of, number, shown
from slaunch.allocation.values import Allocation, Shell, Sighting, Slot, StepShape, Task
from slaunch.errors import AllocationError

FILES = ("LSB_DJOB_RANKFILE", "LSB_DJOB_HOSTFILE")


def sight(env: Env) -> Sighting:
    """See a task of jsrun, or an LSF job."""
    if "JSM_NAMESPACE_RANK" in env:
        seen = evidence(
            env,
            LSB_JOBID="the job",
            JSM_NAMESPACE_RANK="rank in jsrun's world",
            JSM_NAMESPACE_SIZE="its size",
            JSM_NAMESPACE_LOCAL_RANK="rank on this node",
        )
        return Sighting("lsf", MPI, seen)
    return Sighting("lsf", SHELL, evidence(env, LSB_JOBID="the job"))


def read(given: Given) -> Task | Shell:
    """Return the task of jsrun, or the shell.

    Raises:
        AllocationError: the hosts are told nowhere, or variables contradict each other.
    """
    env = given.env
    nodes = compute_nodes(hosts(given))
    allocation = Allocation("lsf", lsf_job(env), nodes=nodes, evidence=sight(env).evidence)
    if "JSM_NAMESPACE_RANK" not in env:
        return Shell(allocation, StepShape(len(nodes)))
    rank, size = number(env, "JSM_NAMESPACE_RANK"), number(env, "JSM_NAMESPACE_SIZE")
    local = number(env, "JSM_NAMESPACE_LOCAL_RANK")
    check(rank < size and local < size, shown(env, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"))
    if given.host not in nodes:  # jsrun may use some of the nodes only, or names differ: learnt when the tasks meet
        return Task(Allocation("lsf", allocation.job, evidence=allocation.evidence), Slot(rank, size, local))
    return Task(allocation, Slot(rank, size, local, nodes.index(given.host)))


def hosts(given: Given) -> list[str]:
    """Return the job's hosts, one entry per slot, from the first source that is set."""
    env = given.env
    name = first_of(env, *FILES)
    if env.get(name):
        return [line.split()[0] for line in file_text(given, name).splitlines() if line.strip()]
    if env.get("LSB_MCPU_HOSTS"):
        words = env["LSB_MCPU_HOSTS"].split()
        check(len(words) % 2 == 0 and all(word.isdecimal() for word in words[1::2]), shown(env, "LSB_MCPU_HOSTS"))
        return [host for host, slots in zip(words[::2], words[1::2], strict=True) for _ in range(int(slots))]
    if env.get("LSB_HOSTS"):
        return env["LSB_HOSTS"].split()
    raise AllocationError(
        "read the job's hosts",
        f"{shown(env, 'LSB_JOBID', *FILES)}, but none of {', '.join(FILES)}, LSB_MCPU_HOSTS and LSB_HOSTS names them",
        "start slaunch in the job itself, with LSF's variables unchanged",
    )


def compute_nodes(slots: list[str]) -> tuple[str, ...]:
    """Return the hosts that run tasks, each once, in order.

    With jsrun the first entry is the batch (launch) node, which runs none: it has one slot where the others have many, or it is
    called so.
    """
    check(bool(slots), "LSF's list of hosts is empty")
    first, rest = slots[0], slots[1:]
    alone = bool(rest) and first not in rest and all(rest.count(host) > 1 for host in set(rest))
    launch = bool(rest) and (alone or first.startswith(("batch", "login", "launch")))
    return tuple(dict.fromkeys(rest if launch else slots))


READER = Reader("lsf", ("JSM_NAMESPACE_RANK",), sight, read)
