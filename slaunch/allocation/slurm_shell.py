"""A batch script or an allocation shell of Slurm: what slaunch's own step should ask for."""

from __future__ import annotations

from slaunch.allocation import counts, hostlist
from slaunch.allocation.enclosing import restarts
from slaunch.allocation.jobid import slurm_job
from slaunch.allocation.nesting import has_step
from slaunch.allocation.reader import Env, check, evidence, first_of, number, shown
from slaunch.allocation.values import Allocation, Evidence, Shell, StepShape
from slaunch.errors import AllocationError

NODES = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
NUMBER = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")


def read_shell(env: Env) -> Shell:
    """Return the allocation and the step's shape: one agent on each node, with the node's whole share.

    Raises:
        AllocationError: this is no job, or its variables contradict each other.
    """
    job = slurm_job(env)
    if not job:
        raise AllocationError(
            "find this process's place in Slurm",
            f"{shown(env, *('SLURM_NTASKS', 'SLURM_NTASKS_PER_NODE', 'SLURM_NNODES', 'SLURM_PROCID'))}, but SLURM_JOB_ID and "
            "SLURM_JOB_NODELIST are not set",
            "start slaunch in a job (sbatch, salloc, srun); or unset these variables to use this machine alone",
        )
    if not has_step(env):
        check(
            env.get("SLURM_PROCID", "0") == env.get("SLURM_NODEID", "0") == "0",
            shown(env, "SLURM_PROCID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NODELIST"),
            "a task of a step would have SLURM_STEP_ID, a batch script has rank 0 on node 0",
        )
    groups = group_indices(env)
    parts = tuple(part_shape(env, f"_HET_GROUP_{i}") for i in groups)
    nodes = group_nodes(env, groups) if groups else job_nodes(env)
    shape = StepShape(sum(part.nodes for part in parts), het_groups=groups, parts=parts) if groups else part_shape(env, "")
    allocation = Allocation("slurm", job, nodes=nodes, restarts=restarts(env), evidence=seen(env), warnings=warnings(env))
    return Shell(allocation, shape)


def seen(env: Env) -> tuple[Evidence, ...]:
    """Return what was asked of the job, as far as variables tell, and what becomes of it."""
    return evidence(
        env,
        SLURM_JOB_ID="the job",
        SLURM_JOB_NODELIST="its nodes: one agent on each",
        SLURM_NTASKS="tasks asked for, not started: the agents start the workers",
        SLURM_NTASKS_PER_NODE="tasks per node asked for, likewise",
        SLURM_CPUS_PER_TASK="CPUs of such a task: an agent has the share of all of a node's tasks",
        SLURM_JOB_CPUS_PER_NODE="CPUs of the job on each node: the agent's share",
        SLURM_GPUS_PER_NODE="GPUs asked for",
        SLURM_GPUS_PER_TASK="GPUs asked for, for each task",
        SLURM_GPUS="GPUs asked for, in total",
        SLURM_HET_SIZE="components of the job",
    )


def group_indices(env: Env) -> tuple[int, ...]:
    """Return the components of a heterogeneous job; () for an ordinary job."""
    return tuple(range(number(env, "SLURM_HET_SIZE"))) if env.get("SLURM_HET_SIZE") else ()


def group_nodes(env: Env, groups: tuple[int, ...]) -> tuple[str, ...]:
    """Return the nodes of all components, component after component."""
    names = [f"SLURM_JOB_NODELIST_HET_GROUP_{i}" for i in groups]
    return tuple(host for name in names for host in hostlist.expand(env.get(name, ""), name))


def job_nodes(env: Env) -> tuple[str, ...]:
    """Return the job's nodes; () where only their number is told."""
    name = first_of(env, *NODES)
    return hostlist.expand(env[name], name) if env.get(name) else ()


def part_shape(env: Env, suffix: str) -> StepShape:
    """Return the shape for the whole job (suffix "") or for one component (suffix "_HET_GROUP_1")."""
    listed = first_of(env, *(name + suffix for name in NODES))
    nodes = len(hostlist.expand(env[listed], listed)) if env.get(listed) else number(env, *(name + suffix for name in NUMBER))
    told = first_of(env, *(name + suffix for name in NUMBER))
    check(not env.get(told) or number(env, told) == nodes, shown(env, listed, told), f"{nodes} nodes named")
    if not nodes:
        raise AllocationError(
            "find the job's nodes",
            f"{shown(env, listed, told)}: job {slurm_job(env)} has given its nodes to another one",
            "start slaunch in that job; as a step: srun --jobid=JOB --overlap -N1 -n1 -w NODE slaunch --join yes …",
        )
    return StepShape(nodes, cpus_per_task=share(env, suffix, nodes), gpu_args=gpu_args(env, suffix))


def share(env: Env, suffix: str, nodes: int) -> int:
    """Return the CPUs of one agent, the same on every node; 0 = let srun give each node's whole share.

    With --hint=nomultithread or --threads-per-core the counts include hardware threads that a step may not ask for, and on
    uneven nodes there is no one number.
    """
    name = "SLURM_JOB_CPUS_PER_NODE" + suffix
    if not env.get(name):
        return 0
    per_node = counts.expand(env[name], name)
    check(len(per_node) == nodes, shown(env, name), f"{len(per_node)} nodes counted, {nodes} in the job")
    uneven = len(set(per_node)) > 1 or "SLURM_HINT" in env or "SLURM_THREADS_PER_CORE" in env
    return 0 if uneven else per_node[0]


def gpu_args(env: Env, suffix: str) -> tuple[str, ...]:
    """Return the GPU request in the job's own form.

    A job that used --gres or --gpus-per-socket needs none: its steps get all of it by default. One that used --gpus-per-task
    would give its steps one task's GPUs: those of all tasks are asked for instead.
    """
    per_node = env.get("SLURM_GPUS_PER_NODE" + suffix)
    if per_node:
        return (f"--gpus-per-node={per_node}",)
    total = env.get("SLURM_GPUS" + suffix)
    if total:
        return (f"--gpus={total}",)
    per_task = env.get("SLURM_GPUS_PER_TASK" + suffix)
    return (gpus_of_tasks(env, suffix, per_task),) if per_task else ()


def gpus_of_tasks(env: Env, suffix: str, per_task: str) -> str:
    """Return the request for the GPUs of all tasks: by node where all nodes have equally many tasks, else in total."""
    name = "SLURM_TASKS_PER_NODE" + suffix
    per_node = set(counts.expand(env[name], name)) if env.get(name) else set()
    if len(per_node) == 1:
        return f"--gpus-per-node={times(per_task, per_node.pop())}"
    return f"--gpus={times(per_task, number(env, 'SLURM_NTASKS' + suffix))}"


def times(request: str, tasks: int) -> str:
    """Return a GPU request for some tasks, from one for each task: "2" or "a100:2"."""
    kind, colon, count = request.rpartition(":")
    check(count.isdecimal(), f"SLURM_GPUS_PER_TASK={request!r} is no request for GPUs")
    return f"{kind}{colon}{int(count) * tasks}"


def warnings(env: Env) -> tuple[str, ...]:
    """Return what is odd, but does not keep the step from running."""
    found = []
    if env.get("SLURM_EXPORT_ENV", "").upper() == "NONE":
        found.append("SLURM_EXPORT_ENV=NONE (#SBATCH --export=NONE): slaunch's own step gets this shell's environment anyway")
    if has_step(env):
        found.append("this job was submitted from inside a step, whose variables are still set; they are not used")
    return tuple(found)
