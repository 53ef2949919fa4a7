"""One task of a Slurm step, from the variables that slurmstepd gives it."""

from __future__ import annotations

from slaunch.allocation import counts, hostlist
from slaunch.allocation.enclosing import restarts
from slaunch.allocation.jobid import digits, slurm_job
from slaunch.allocation.reader import Env, Given, check, evidence, first_of, number, shown
from slaunch.allocation.values import Allocation, Slot, Task
from slaunch.errors import AllocationError

SIZE = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
NODES = ("SLURM_STEP_NODELIST",)
COUNTS = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")


def read_task(given: Given) -> Task:
    """Return the task. Step variables come first; the job's are used only where the step's are missing.

    Raises:
        AllocationError: a variable is missing or malformed, or two of them contradict each other.
    """
    env = given.env
    listed, per_listed = step_nodes(env), step_counts(env)
    size = number(env, *SIZE)
    check_step(env, size, listed, per_listed)
    order = node_order(env, listed)
    nodes = tuple(listed[i] for i in order)
    per_node = tuple(per_listed[i] for i in order)
    slot = Slot(number(env, "SLURM_PROCID"), size, number(env, "SLURM_LOCALID"), own_node(env, given.host, nodes))
    check_slot(env, slot, per_node)
    return Task(
        Allocation(
            launcher="slurm",
            job=slurm_job(env),
            step=digits(env, "SLURM_STEP_ID", "SLURM_STEPID"),
            nodes=nodes,
            tasks_per_node=per_node,
            root=root(given, slot, nodes),
            restarts=restarts(env),
            evidence=evidence(
                env,
                SLURM_STEP_ID="the step",
                SLURM_STEP_NODELIST="its nodes",
                SLURM_STEP_TASKS_PER_NODE="tasks on each of them",
                SLURM_PROCID="this task's rank",
                SLURM_NODEID="its node",
            ),
            warnings=warnings(env, nodes, per_node),
        ),
        slot,
    )


def step_nodes(env: Env) -> tuple[str, ...]:
    """Return the step's nodes in the order of the list."""
    name = first_of(env, *NODES)
    if not env.get(name):
        raise AllocationError("read the step's nodes", f"{' and '.join(NODES)} not set", "start slaunch by srun")
    return hostlist.expand(env[name], name)


def step_counts(env: Env) -> tuple[int, ...]:
    """Return the number of tasks on each of the listed nodes."""
    name = first_of(env, *COUNTS)
    return counts.expand(env.get(name, ""), name)


def check_step(env: Env, size: int, nodes: tuple[str, ...], per_node: tuple[int, ...]) -> None:
    """Refuse a step whose nodes, counts and size do not fit together."""
    names = shown(env, first_of(env, *NODES), first_of(env, *COUNTS), first_of(env, *SIZE))
    check(len(per_node) == len(nodes), names, f"{len(per_node)} nodes counted, {len(nodes)} named")
    check(sum(per_node) == size, names, f"{sum(per_node)} tasks counted, {size} told")


def node_order(env: Env, listed: tuple[str, ...]) -> tuple[int, ...]:
    """Return, for each node number, the node's position in the step's list.

    They differ in a step over several components of a heterogeneous job: there the list is sorted, but nodes are numbered
    component after component.
    """
    groups = [hostlist.expand(env[name], name) for name in group_lists(env)]
    if len(groups) < 2:
        return tuple(range(len(listed)))
    place = {host: i for i, host in enumerate(listed)}
    order = tuple(place[host] for group in groups for host in group if host in place)
    return order if len(order) == len(set(order)) == len(listed) else tuple(range(len(listed)))


def group_lists(env: Env) -> list[str]:
    """Return the names of the variables that hold the node lists of a heterogeneous job's components, in order."""
    size = number(env, "SLURM_HET_SIZE") if env.get("SLURM_HET_SIZE") else 0
    stems = ("SLURM_JOB_NODELIST_HET_GROUP_", "SLURM_JOB_NODELIST_PACK_GROUP_")
    names = [first_of(env, *(f"{stem}{i}" for stem in stems)) for i in range(size)]
    return [name for name in names if env.get(name)]


def own_node(env: Env, host: str, nodes: tuple[str, ...]) -> int:
    """Return the index of this task's node: by the node's own name where Slurm tells it, and SLURM_NODEID must agree."""
    told = number(env, "SLURM_NODEID")
    check(told < len(nodes), shown(env, "SLURM_NODEID", first_of(env, *NODES)), f"no node {told} in a list of {len(nodes)}")
    name = env.get("SLURMD_NODENAME") or (host if host in nodes else nodes[told])
    names = shown(env, "SLURM_NODEID", first_of(env, *NODES), "SLURMD_NODENAME")
    check(nodes[told] == name, names, f"node {told} of the list is {nodes[told]}")
    return told


def check_slot(env: Env, slot: Slot, per_node: tuple[int, ...]) -> None:
    """Refuse a place that the step does not have."""
    here = per_node[slot.node]
    check(slot.rank < slot.size, shown(env, "SLURM_PROCID", first_of(env, *SIZE)))
    told = shown(env, "SLURM_LOCALID", "SLURM_NODEID", first_of(env, *COUNTS))
    check(slot.local_rank < here, told, f"{here} tasks on this node")
    ranks = env.get("SLURM_GTIDS", "").split(",")
    agrees = ranks == [""] or (len(ranks) == here and ranks[slot.local_rank] == str(slot.rank))
    check(agrees, shown(env, "SLURM_GTIDS", "SLURM_LOCALID", "SLURM_PROCID", first_of(env, *COUNTS)))


def root(given: Given, slot: Slot, nodes: tuple[str, ...]) -> str:
    """Return the host of task rank 0: node 0, unless the user placed the tasks one by one (`srun -m arbitrary`).

    Recorded: with block, cyclic and plane distribution rank 0 is on node 0; with arbitrary it is where SLURM_HOSTFILE put it.
    """
    env = given.env
    if "0" in env.get("SLURM_GTIDS", str(slot.rank)).split(","):
        return nodes[slot.node]
    if not env.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        return nodes[0]
    from slaunch.allocation import taskmap

    blocks = taskmap.parse_pmi(env.get("SLURM_PMIX_MAPPING_SERV", ""), "SLURM_PMIX_MAPPING_SERV")  # with --mpi=pmix only
    if blocks:
        return nodes[blocks[0][0]] if blocks[0][0] < len(nodes) else ""
    return first_listed(given, nodes)


def first_listed(given: Given, nodes: tuple[str, ...]) -> str:
    """Return the first host of the file by which the user placed the tasks; "" if it cannot be read from here."""
    try:
        first = given.read_text(given.env.get("SLURM_HOSTFILE", "")).split(None, 1)[0]
        host = hostlist.expand(first, "SLURM_HOSTFILE")[0]
    except (OSError, IndexError, AllocationError):
        return ""
    return host if host in nodes else ""


def warnings(env: Env, nodes: tuple[str, ...], per_node: tuple[int, ...]) -> tuple[str, ...]:
    """Return what is odd, but does not keep the job from running."""
    found = []
    asked = env.get("SLURM_NTASKS_PER_NODE", "")
    if asked and asked.split("(")[0] not in {str(count) for count in per_node}:
        found.append(f"SLURM_NTASKS_PER_NODE={asked} is stale: the step runs {counts.compress(per_node)} tasks per node")
    in_job = env.get("SLURM_JOB_NUM_NODES", "")
    if in_job.isdecimal() and int(in_job) > len(nodes) and per_node == (1,):
        found.append(f"this step is one task on one of the job's {in_job} nodes (a `srun --pty` shell?): only this node is used")
    if env.get("SLURM_EXPORT_ENV", "").upper() == "NONE":
        found.append("SLURM_EXPORT_ENV=NONE: this step did not get the environment of the shell that started it")
    return tuple(found)
