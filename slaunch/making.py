"""What a job and its further attempts are made from: plan, ports, health, the run's name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from slaunch.agent.attempts import Again
from slaunch.agent.policy import policy_of
from slaunch.allocation.values import Allocation
from slaunch.clock import wall_s
from slaunch.frozen import replace
from slaunch.jobs import LOGS, Run
from slaunch.node.health import Health, Subject, scratch
from slaunch.node.health import look as look_at_health
from slaunch.node.ports import Reserved, reserve
from slaunch.node.values import NodeFacts
from slaunch.options import Options
from slaunch.plan.build import build
from slaunch.plan.commands import commands_of, in_container, interpreter, worker_argv
from slaunch.plan.modes import find
from slaunch.plan.parts import here
from slaunch.plan.prelude import crew
from slaunch.plan.values import Plan
from slaunch.rendezvous.values import Membership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.reception import Doors


def plan_for(  # noqa: PLR0917 - the stages' values
    membership: Membership, options: Options, allocation: Allocation, env: Mapping[str, str], job: str = "", attempt: int = 0
) -> Plan:
    """The plan of this job, with its name and the place of its logs."""
    job = job or job_name(options, allocation)
    if not job:
        first = membership.facts[0]
        job = f"{first.host}-{first.pid}"
    python = interpreter(options, sys.executable)
    argv = in_container(options, worker_argv(options.program, python, env))
    log_dir = os.path.abspath(options.log_dir or f"{LOGS}/{job}")
    return build(membership, options, allocation, argv, job, log_dir, attempt, commands_of(options, python, env))


def again(  # noqa: PLR0917 - the stages' values
    plan: Plan,
    membership: Membership,
    own: NodeFacts,
    options: Options,
    allocation: Allocation,
    env: Mapping[str, str],
    doors: Doors | None,
) -> Again:
    """What further attempts are made from: the facts of the meeting, with new ports where the user does not fix them.

    Args:
        own: what this node knows of itself; names of devices that are long have been replaced in the membership.
        doors: how nodes come to the job once it runs; None where none can.
    """
    wish = find(options.mode).wish(here(options, own.component), own.addresses[0].ip if options.ips else "")
    fixed = options.start_port or wish.ports
    return Again(
        membership,
        lambda: Reserved(own.ports, ()) if fixed else reserve(len(own.ports), env),
        lambda members, attempt: plan_for(members, options, allocation, env, plan.job, attempt),
        lambda made, index: crew(made, index, env, options),
        health_of(own, plan.log_dir, env) if options.health_check else None,
        replace(policy_of(options, len(plan.nodes)), new_ports=not fixed),
        doors,
    )


def health_of(own: NodeFacts, log_dir: str, env: Mapping[str, str]) -> Callable[[], Health]:
    """Looks at this node's health."""
    subject = Subject(own.devices, own.addresses, own.nics, scratch(log_dir, env), own.held)
    return lambda: look_at_health(subject, env)


def job_name(options: Options, allocation: Allocation) -> str:
    """The user's name for the job, else job and step as the scheduler numbers them, else ""."""
    return options.job_id or ".".join(part for part in (allocation.job, allocation.step) if part)


def card_of(plan: Plan, allocation: Allocation, env: Mapping[str, str]) -> Run:
    """The run as it is written down where it can be found by its job id."""
    first = plan.nodes[0]
    id = ".".join(part for part in (allocation.job, allocation.step) if part) or plan.job
    cluster = env.get("SLURM_CLUSTER_NAME", "")
    began_s, size = wall_s(), (len(plan.nodes), plan.world)
    return Run(id, plan.log_dir, plan.job, cluster, first.host, os.getpid(), began_s, allocation.restarts, *size)
