"""A node that comes to a job that runs already, and how the job's hub lets such nodes in."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from slaunch.agent.phases import Phases
from slaunch.agent.policy import may_be_met
from slaunch.agent.reception import Doors, Way
from slaunch.agent.run import run
from slaunch.allocation import hostlist
from slaunch.allocation.values import Allocation, Task
from slaunch.channel.listen import listen, listen_somewhere
from slaunch.channel.spoke import Spoke
from slaunch.channel.succession import Dynasty, Line
from slaunch.ending import conclude, leave
from slaunch.errors import PlanError, UsageError
from slaunch.frozen import replace
from slaunch.making import again, plan_for
from slaunch.node.values import NodeFacts
from slaunch.options import Options
from slaunch.plan.staged import folder
from slaunch.rendezvous import late
from slaunch.rendezvous.endpoints import ETCD, parse_master
from slaunch.rendezvous.etcd_late import Entry
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.late import Welcome
from slaunch.rendezvous.lateness import LateError
from slaunch.rendezvous.resolve import resolve_any
from slaunch.rendezvous.values import Membership
from slaunch.slurm.resized import nodes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from slaunch.node.stage import Place

ASK_S = 5.0


def look_for_job(task: Task, facts: NodeFacts, options: Options, env: Mapping[str, str]) -> LateError:
    """The running job that the user wants this node to take part in.

    Raises:
        UsageError: this is no step of a Slurm job.
        RendezvousError: no such job was found.
    """
    if not task.allocation.job or "SLURM_JOB_NODELIST" not in env:
        raise UsageError("join the running job (--join)", "this is no step of a Slurm job", "name it with --master instead")
    # a step that was started from elsewhere, or after the job has grown, is told of its own nodes only
    hosts = (*hostlist.expand(env["SLURM_JOB_NODELIST"], "SLURM_JOB_NODELIST"), *nodes_of(task.allocation.job, ASK_S))
    return late.look_in_job(Ground(task, facts, options, env, lambda line: None), tuple(dict.fromkeys(hosts)))


def come_late(  # noqa: PLR0917 - what a launch has by then
    task: Task, found: LateError | None, facts: NodeFacts, options: Options, env: Mapping[str, str], phases: Phases
) -> int:
    """Wait in the running job until an attempt wants this node, and see the job to its end; the job's exit code.

    Args:
        task: this task.
        found: the way to the job's hub; None = it is looked for.
        facts: this node's.
        options, env: the user's wishes, and the environment.
        phases: of the start so far.

    Raises:
        RendezvousError: there is no such job, or it does not want this node.
    """
    if not options.stage:
        return take_part(task, found or look_for_job(task, facts, options, env), facts, options, env, phases)
    if found:
        found.spoke.close()
        raise PlanError(
            "make copies with --stage on a node that comes late",
            "the hub of the running job has answered, and does not wait until copies are made",
            "use --join, which makes the copies before it looks for the job; or leave --stage out on this node",
        )
    from slaunch.staging import staged_late

    with staged_late(options, lambda line: print(f"slaunch: {line}", file=sys.stderr, flush=True)) as place:
        return take_part(task, look_for_job(task, facts, options, env), facts, options, env, phases, place)


def take_part(  # noqa: PLR0917 - what a launch has by then
    task: Task,
    found: LateError,
    facts: NodeFacts,
    options: Options,
    env: Mapping[str, str],
    phases: Phases,
    place: Place | None = None,
) -> int:
    """As `come_late`, once the hub and this node's copies are there."""
    welcome, star, facts = let_in(found, facts)
    if place is not None:
        place.rename(folder(options, welcome.job))
    membership = Membership(welcome.facts, welcome.index, welcome.attempt, "late", "the job runs already", found.secret)
    members = replace(membership, facts=tuple(welcome.facts[node] for node in welcome.members), rank=0)
    plan = plan_for(members, options, task.allocation, env, welcome.job, welcome.attempt)
    more = doors(facts, membership, options, task.allocation, env)
    further = again(plan, membership, facts, options, task.allocation, env, more)
    print(f"slaunch: {facts.host} has come to job {welcome.job} as node {welcome.index}, and waits", file=sys.stderr, flush=True)
    hosts = tuple(each.host for each in welcome.facts)
    further = replace(further, welcome=welcome)
    report = run(plan, welcome.index, (), star, env, options, facts.devices, further, None, phases, hosts)
    if not report.speaks:
        return report.code
    code = conclude(report, options, env, "", 0)
    leave(report, env, task.allocation.step)
    return code


def let_in(found: LateError, facts: NodeFacts) -> tuple[Welcome, Dynasty, NodeFacts]:
    """Be let in by the hub: what it says, the agents' channel, and this node's facts with the port where it listens."""
    control = listen_somewhere([address.ip for address in facts.addresses])
    try:
        facts = replace(facts, control_port=control[0].getsockname()[1] if control else 0)
        welcome = late.come_in(found, facts)
        return welcome, enter(found.spoke, welcome, found.secret, control), facts
    except BaseException:
        found.spoke.close()
        for sock in control:
            sock.close()
        raise


def enter(spoke: Spoke, welcome: Welcome, secret: bytes, control: Sequence[socket.socket]) -> Dynasty:
    """The agents' channel, by the connection to the hub's reception."""
    spoke.renumber(welcome.index, welcome.index + 1)
    spoke.hub = welcome.hub
    targets = tuple(late.targets_of(each) for each in welcome.facts)
    star = Dynasty(spoke, Line(welcome.identity, secret, targets, os.uname().nodename, welcome.size), control)
    star.enter(welcome.reign, welcome.peers)
    return star


def doors(
    own: NodeFacts, members: Membership, options: Options, allocation: Allocation, env: Mapping[str, str]
) -> Doors | None:
    """How this node lets others in when it is the hub; None where none can come."""
    secret = members.secret
    if not may_be_met(options) or not secret:
        return None
    ips = [address.ip for address in own.addresses]
    if options.master.startswith(ETCD):
        first = members.facts[0]
        nonce = f"{first.host} {first.pid} {first.time_s}"  # the same on all agents, and of this run of the job alone
        return lambda: by_etcd(ips, options, allocation, env, (secret, nonce, members.mark))
    if options.master:
        return lambda: at_master(ips, options, allocation, env, secret)
    if not allocation.job or allocation.launcher != "slurm":
        return None
    identity = late.slurm_identity(allocation.job)
    return lambda: Way(late.slurm_doors(allocation.job, ips), late.offer(identity, env, secret))


def at_master(ips: Sequence[str], options: Options, allocation: Allocation, env: Mapping[str, str], secret: bytes) -> Way:
    """Where nodes met in the beginning, if that is this machine."""
    host, port = parse_master(options.master)[0]
    named = set(resolve_any(host))
    here = bool(named.intersection(ips)) or any(ip.startswith("127.") for ip in named)
    listeners = listen([*sorted(named), *ips], port) if here else []
    return Way(listeners, late.offer(by_hand(options, allocation), env, secret), options.nnodes[1] + options.spares)


def by_etcd(
    ips: Sequence[str], options: Options, allocation: Allocation, env: Mapping[str, str], known: tuple[bytes, str, str]
) -> Way:
    """Wherever this node has a port, which etcd tells of.

    `known`: the job's secret, what distinguishes this run of it, and what its meeting has left at etcd.
    """
    secret, nonce, mark = known
    identity = by_hand(options, allocation)
    entry = lambda reign: Entry(options, env, f"/slaunch/{identity}/server", nonce, reign, mark)  # noqa: E731
    return Way(listen_somewhere(ips), late.offer(identity, env, secret), options.nnodes[1] + options.spares, entry)


def by_hand(options: Options, allocation: Allocation) -> str:
    """The name of a meeting of nodes that were started one by one; as `rendezvous.by_hand.identity`."""
    return f"by hand/{options.job_id or allocation.job}"
