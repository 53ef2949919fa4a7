"""The hub's part in another attempt, as a pure machine: from the end of one to the start of the next.

    hub → nodes   NewAttempt         all has ended; hold new ports
    nodes → hub   Ready              here they are, and what was found of the node's health
    hub → nodes   Ports              everybody's
    nodes → hub   PlanMade           the digest of the plan made of them
    hub → nodes   Begin              they are all the same: start
"""

from __future__ import annotations

from collections import Counter

from slaunch.agent.events import Action, Blame, TellAll
from slaunch.agent.fitness import Shown, choose, too_few
from slaunch.agent.messages import Begin, NewAttempt, PlanMade, Ports, Ready
from slaunch.agent.policy import MEANING, is_expelled, is_repeated, refusal, shifted, wait_s, with_end, with_restart
from slaunch.agent.quorum import known_to_all, lacking, proposed
from slaunch.agent.seats import seated
from slaunch.agent.values import Verdict
from slaunch.agent.verdict import Findings
from slaunch.errors import AgreementError, RendezvousError
from slaunch.frozen import dataclass, replace
from slaunch.node.values import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.hub_side import Hub

    Result = tuple[Hub, tuple[Action, ...]]

EXPELLED = "it was not fit, or a worker failed there"
UNNOTICED_FENCES = 12.0
"""An agent that was given up has noticed, and looked whether its hub lives, after so many times `fence_s` at the latest. Before,
newcomers do not count: all others that it knows may have ended then, and it may be the one that goes on."""
PREPARE_S = 30.0
"""How long nodes may take to hold ports and make the plan."""


@dataclass(frozen=True)
class Coming:
    """The attempt that is being prepared.

    Attributes:
        begin_at: when it may start, monotonic.
        ports: each node's new ports, by node, as far as they are known.
        digests: digest of the plan that each node made.
        shown: what was found of each node's health.
        base: those of its agents that count once they all know of it.
    """

    begin_at: float
    ports: tuple[tuple[int, tuple[int, ...]], ...] = ()
    digests: tuple[tuple[int, str], ...] = ()
    shown: tuple[Shown, ...] = ()
    base: tuple[int, ...] = ()


def another(hub: Hub, verdict: Verdict, now: float) -> tuple[Hub, str]:
    """The hub with this end in its record, and why no other attempt follows; "" if one does."""
    harmless = verdict.outcome == "grown" or is_repeated(hub.policy, hub.record, verdict)
    if not harmless or hub.progress > hub.record.progress:  # an end that is nobody's fault is none without progress
        hub = replace(hub, record=with_end(hub.record, hub.progress))
    if hub.found.stops:  # it may have come after the failure, and is not the cause then
        return hub, f"no restart after {MEANING['signal']}"
    if hub.asking.asked is not None:
        return hub, "no restart after a request to save"
    if now >= hub.limit_at:
        return hub, f"no restart after {MEANING['time']}"
    if is_cut_off(hub):
        return hub, cut_off(hub)
    lost = sum(node in hub.gone for node in hub.members)
    return hub, refusal(hub.policy, hub.record, verdict, len(set(left_of(hub)) - hub.expelled), lost, now)


def is_cut_off(hub: Hub) -> bool:
    """Whether those that are gone could go on without this hub, in a job that may lose nodes."""
    return hub.policy.least > 0 and is_parted(hub)


def is_parted(hub: Hub) -> bool:
    """Whether this hub has lost the larger part of the job, which may live."""
    return lacking(hub.bases, left_of(hub), hub.dead) is not None


def cut_off(hub: Hub) -> str:
    """Why there is no other attempt then."""
    base = lacking(hub.bases, left_of(hub), hub.dead) or hub.agents
    here = sum(agent in left_of(hub) for agent in base)
    return f"no restart: {here} of {len(base)} nodes are here, and the others may live on and do the same"


def blamed(hub: Hub, verdict: Verdict) -> tuple[tuple[int, str], ...]:
    """The nodes whose loss is put down to them, each with why.

    None by the smaller part of any job: it is more likely to be the one that is cut off, while the others are well.
    """
    if verdict.outcome != "lost" or verdict.parted:
        return ()
    return tuple((gone.node, f"lost: {gone.why}") for gone in hub.found.lost)


def left_of(hub: Hub) -> tuple[int, ...]:
    """The nodes that are not lost, those that wait included."""
    return tuple(node for node in sorted(hub.standby.union(hub.members)) if node not in hub.gone)


def counted(hub: Hub, members: tuple[int, ...], now: float) -> tuple[int, ...]:
    """Those of the next attempt's agents that count when it falls apart."""
    if now >= hub.parted_at + UNNOTICED_FENCES * hub.policy.fence_s:
        return members
    return tuple(node for node in members if node in hub.bases.agents)


def renew(hub: Hub, verdict: Verdict, now: float) -> Result:
    """Have all nodes get ready for another attempt."""
    if is_expelled(hub.policy, verdict) and verdict.first is not None:
        hub = replace(hub, expelled=hub.expelled | {verdict.first.node})
    else:
        hub = replace(hub, record=with_restart(hub.policy, hub.record, verdict, now))
    members = left_of(hub)
    lost = hub.gone.intersection(hub.members)
    base = counted(hub, members, now)
    delay_s = max(wait_s(hub.policy, hub.record, len(lost)), hub.fence_at - now if lost - hub.dead - hub.mutual else 0.0)
    hub = replace(
        hub,
        attempt=hub.attempt + 1,
        members=members,
        pending=frozenset(members),
        standby=frozenset(),
        clients=hub.all_clients & frozenset(members),
        found=Findings(),
        stop_by=float("inf"),
        deadline=now + delay_s + PREPARE_S,
        silent=(),
        progress=-1,
        coming=Coming(now + delay_s, base=base),
        bases=proposed(hub.bases, hub.attempt + 1, base),
    )
    return hub, (TellAll(NewAttempt(hub.attempt, members, delay_s, verdict, shifted(hub.record, -now), hub.bases)),)


def on_ready(hub: Hub, sender: int, message: Ready, offset_s: float, now: float) -> Result:
    """A node has new ports; once all have, everybody is told who takes part, and of their ports."""
    if hub.coming is None or hub.stop_by < float("inf"):
        return hub, ()
    ports = (*hub.coming.ports, (sender, message.ports))
    faults = (*message.faults, *((EXPELLED,) if sender in hub.expelled else ()))
    shown = (*hub.coming.shown, Shown(sender, faults, message.doubts, offset_s))
    hub = replace(hub, coming=replace(hub.coming, ports=ports, shown=shown))
    if len(ports) < len(hub.members):
        return hub, ()
    return with_fit(hub, now)


def with_fit(hub: Hub, now: float) -> Result:
    """All have shown their health: those that are fit take part, the others wait. `unfit` tells where too few are."""
    coming = hub.coming
    assert coming is not None
    shown = sorted(coming.shown, key=lambda each: each.node)
    choice = choose(shown, hub.past, hub.policy.least, now)
    faults = tuple((each.node, each.faults[0]) for each in shown if each.faults)
    blame = (Blame(choice.left_out),) if choice.left_out else ()
    hub = replace(hub, past=(*hub.past, *((node, now) for node, _ in faults)))
    if not choice.members:
        return hub, blame
    members = seated(hub.seats, choice.members, hub.policy)
    ports = {node: of_node for node, of_node in coming.ports if node in members}
    hub = replace(
        hub,
        members=members,
        seats=members,
        pending=frozenset(members),
        standby=frozenset(each.node for each in shown).difference(members),
        agents=tuple(each.node for each in shown),
        bases=known_to_all(coming.base, hub.attempt),
        clients=hub.all_clients.intersection(members),
        coming=replace(coming, ports=tuple(ports.items())),
    )
    return hub, (*blame, TellAll(Ports(tuple(ports[node] for node in members), members)))


def unfit(hub: Hub, now: float) -> Problem | None:
    """Why there can be no other attempt, once all have shown their health: too few nodes are fit."""
    coming = hub.coming
    if coming is None or len(coming.shown) < len(hub.members) or coming.digests:
        return None
    choice = choose(sorted(coming.shown, key=lambda each: each.node), hub.past, hub.policy.least, now)
    return None if choice.members else too_few(choice, len(coming.shown), hub.policy.least, hub.hosts)


def on_plan(hub: Hub, sender: int, message: PlanMade, now: float) -> Result:
    """A node has made its plan."""
    if hub.coming is None or hub.stop_by < float("inf"):
        return hub, ()
    return maybe_begin(replace(hub, coming=replace(hub.coming, digests=(*hub.coming.digests, (sender, message.digest)))), now)


def begin_at(hub: Hub) -> float:
    """When the attempt can begin, monotonic; inf while something is missing."""
    coming = hub.coming
    if coming is None or len(coming.digests) < len(hub.members) or hub.stop_by < float("inf"):
        return float("inf")
    return coming.begin_at


def maybe_begin(hub: Hub, now: float) -> Result:
    """Start, if all have made the same plan and it is time."""
    if now < begin_at(hub) or disagreement(hub) is not None:
        return hub, ()
    return replace(hub, coming=None, deadline=float("inf"), life_at=now), (TellAll(Begin()),)


def disagreement(hub: Hub) -> Problem | None:
    """What is wrong with the plans, once all are known."""
    digests = hub.coming.digests if hub.coming is not None else ()
    if len(digests) < len(hub.members) or len({digest for _, digest in digests}) < 2:
        return None
    usual = Counter(digest for _, digest in digests).most_common(1)[0][0]
    odd = next(node for node, digest in sorted(digests) if digest != usual)
    return Problem(
        AgreementError.exit_code,
        f"agree on the plan of attempt {hub.attempt}",
        f"node {odd} ({hub.hosts[odd]}) made another plan than most",
        "run the same slaunch with the same options on all nodes",
    )


def unready(hub: Hub) -> Problem:
    """What is wrong with nodes that do not get ready."""
    assert hub.coming is not None
    seen = hub.coming.digests if len(hub.coming.ports) == len(hub.members) else hub.coming.ports
    silent = [node for node in hub.members if node not in {each for each, _ in seen}]
    names = ", ".join(f"{node} ({hub.hosts[node]})" for node in silent[:8])
    return Problem(
        RendezvousError.exit_code,
        f"prepare attempt {hub.attempt}",
        f"no answer within {PREPARE_S:g} s from node {names} ({len(silent)} in all)",
        "look at the agents' logs in the directory of the logs",
    )


def also(first: tuple[Action, ...], result: Result) -> Result:
    """`first`, then the actions of `result`."""
    return result[0], first + result[1]


def wanted(hub: Hub) -> bool:
    """Whether the user counts on further attempts at all."""
    return hub.policy.max_restarts > 0 or hub.policy.least > 0
