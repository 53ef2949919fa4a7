"""Which NUMA nodes each worker's memory comes from. Pure.

A worker that is bound to one NUMA node gets its memory there anyway, as long as it stays: the kernel takes the node of the CPU
that asks. A preference for that node also holds for what a library's threads, data loaders and helpers do elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from slaunch.errors import PlanError
from slaunch.frozen import dataclass
from slaunch.node.mempolicy import REFUSED
from slaunch.node.values import NodeFacts
from slaunch.plan.cores import Lists, nodes_of


@dataclass(frozen=True)
class Memory:
    """Memory of a node's workers.

    Attributes:
        nodes: NUMA nodes of each worker, by local rank; () = left to the system; no worker at all = all are left to it.
        policy: "preferred" (as long as it has room) or "bind" (nowhere else).
        notes: what the user may want to know, one line each.
    """

    nodes: Lists = ()
    policy: str = ""
    notes: tuple[str, ...] = ()


LEFT = Memory()


def of_node(facts: NodeFacts, cpus: Lists, wish: str) -> Memory:
    """Memory of the workers that an agent starts.

    Args:
        facts: the node's facts.
        cpus: CPUs of each worker; () = it is not bound.
        wish: "auto" (the node that a worker is bound to is preferred, where there are several and nobody has chosen a policy
            already), "preferred", "bind" (the nodes of its CPUs only) or "none".

    Raises:
        PlanError: a policy is asked for, and the kernel refuses it.
    """
    if wish == "none" or (wish == "auto" and (len(facts.memory) < 2 or facts.memory_policy != "default")):
        return LEFT
    if wish == "auto":
        return made("preferred", tuple(lone(homes(facts, own)) if own else () for own in cpus))
    return asked((facts,) * len(cpus), cpus, wish)


def of_tasks(tasks: Sequence[NodeFacts], wish: str) -> Memory:
    """Layout "task": the scheduler has placed each task's memory (`srun --mem-bind`), unless the user asks slaunch to."""
    return LEFT if wish in ("auto", "none") else asked(tasks, ((),) * len(tasks), wish)


def asked(tasks: Sequence[NodeFacts], cpus: Lists, wish: str) -> Memory:
    """What the user asks for: of CPUs on several nodes all are bound to, and none is preferred."""
    for facts in tasks:
        if facts.memory_policy == REFUSED or not facts.memory:
            seen = "the kernel refuses the call set_mempolicy" if facts.memory else "the system tells of no NUMA node with memory"
            todo = "leave --bind-memory out, or allow the call (Docker: --cap-add SYS_NICE)"
            raise PlanError(f"choose the workers' memory on node {facts.host}", seen, todo)
    near = [homes(facts, own or facts.cpus) for facts, own in zip(tasks, cpus, strict=True)]
    if wish == "bind":
        return made("bind", tuple(near))
    wide = sum(len(each) > 1 for each in near)
    note = f"CPUs of {wide} of {len(near)} workers lie on several NUMA nodes: none is preferred; --bind numa keeps each to one"
    return made("preferred", tuple(map(lone, near)), (note,) if wide else ())


def made(policy: str, nodes: Lists, notes: tuple[str, ...] = ()) -> Memory:
    """A choice, unless it leaves all workers to the system."""
    return Memory(nodes, policy, notes) if any(nodes) else Memory(notes=notes)


def lone(nodes: tuple[int, ...]) -> tuple[int, ...]:
    """The nodes, if it is one."""
    return nodes if len(nodes) == 1 else ()


def homes(facts: NodeFacts, cpus: tuple[int, ...]) -> tuple[int, ...]:
    """NUMA nodes of these CPUs that have memory for this task, ascending."""
    return tuple(node for node in nodes_of(facts, cpus) if node in facts.memory)
