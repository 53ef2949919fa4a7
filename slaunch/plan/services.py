"""Services: processes that serve a job's other workers, and are ended when those have ended."""

from __future__ import annotations

import os
import sys

from slaunch.plan.endpoints import RESERVE, master
from slaunch.plan.modes.logs import serves
from slaunch.plan.values import NodePlan, Plan, WorkerSpec

ROLE = "gloo-store"

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gloo_store.py")
"""Executed as a file: importing it here would cost each start its share."""


def is_service(plan: Plan, node: NodePlan, local: int) -> bool:
    """Whether a worker is ended when all others have ended.

    TensorFlow's trainers but the first do what that one tells them, and never end by themselves.
    """
    if not node.roles:
        return False
    role, number = node.roles[local], node.numbers[local]
    return serves(role) or (role == "trainer" and number > 0 and "tensorflow" in plan.contracts)


def clients_of(plan: Plan) -> frozenset[int]:
    """Nodes that have workers other than services; () where the job has no services."""
    kinds = {node.index: [is_service(plan, node, local) for local in range(len(node.roles))] for node in plan.nodes}
    if not has_store(plan) and not any(map(any, kinds.values())):
        return frozenset()
    return frozenset(index for index, services in kinds.items() if not services or not all(services))


def has_store(plan: Plan) -> bool:
    """Whether Horovod's workers need a store to meet. Tasks meet by MPI."""
    return plan.layout == "agent" and "horovod" in plan.contracts


def store(plan: Plan, index: int) -> tuple[WorkerSpec, ...]:
    """The store, on the first node. Its rank is beyond those of the workers and of tuning processes.

    It runs in slaunch's own Python, outside any container, and without the user's packages, which could only delay it.
    """
    if not has_store(plan) or index != 0:
        return ()
    address, port = master(plan, RESERVE)
    return (
        WorkerSpec(
            rank=plan.world + len(plan.nodes),
            local_rank=len(plan.nodes[index].ranks),
            node=index,
            argv=(sys.executable, "-I", "-S", PROGRAM, address, str(port), str(plan.world)),
            set_env={},
            drop_env=(),
            cpus=(),
            devices=(),
            log_name=f"{ROLE}.log",
            role=ROLE,
            service=True,
        ),
    )
