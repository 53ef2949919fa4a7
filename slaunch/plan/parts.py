"""The user's own roles (`--roles`): which of a node's workers have which, and the devices that they want. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slaunch.errors import DeviceError, PlanError
from slaunch.frozen import replace
from slaunch.node.values import NodeFacts
from slaunch.options import Options, Part
from slaunch.plan.values import Command

Owners = tuple[Part | None, ...]
"""The role of each worker of a node, by local rank; None = it has none."""

CPU = "cpu"
EVERYWHERE = -1


def here(options: Options, component: int) -> Options:
    """The options as they are on a node of that component: roles of other components have no workers there.

    A job without components plays all roles on each node: so a heterogeneous job is tried on one machine.
    """
    if component == EVERYWHERE or not options.parts:
        return options
    elsewhere = (replace(part, workers=0) if part.component not in (EVERYWHERE, component) else part for part in options.parts)
    return replace(options, parts=tuple(elsewhere))


def counted(options: Options) -> bool:
    """Whether roles are told by numbers of workers, so that they decide how many a node has."""
    return any(part.workers >= 0 or part.component >= 0 for part in options.parts)


def size(part: Part) -> int:
    """Number of a role's workers on a node of its component."""
    return part.workers if part.workers >= 0 else int(part.component >= 0)


def total(options: Options) -> int:
    """Number of workers that the roles ask for on this node; 0 = they do not say, or leave it without any (see `idle`)."""
    return sum(map(size, options.parts)) if counted(options) else 0


def idle(options: Options, facts: NodeFacts) -> PlanError:
    """The error of a node on which no role has workers. Told of the plan, as only such nodes could tell it before."""
    return PlanError(
        "start workers on every component of the job",
        f"no role of {source(options)} has workers on component {facts.component}, that of node {facts.host}",
        "give each component a role, or leave the component out of the step (srun --het-group)",
    )


def number_of(options: Options, role: str, otherwise: int) -> int:
    """Number of workers of one of the mode's roles on a node: as the user's role of that name says, or the mode's options."""
    told = next((part for part in options.parts if part.name == role), None)
    return told.workers if told is not None and told.workers >= 0 else otherwise


def wants_devices(options: Options) -> bool:
    """Whether any role asks for devices."""
    return any(part.kind not in ("", CPU) or part.devices > 0 for part in options.parts)


def source(options: Options) -> str:
    """Where the roles come from."""
    return options.origins.get("parts", "--roles")


def owners(options: Options, facts: NodeFacts, ranks: Sequence[int], roles: Sequence[str], known: frozenset[str]) -> Owners:
    """Whose each worker of a node is.

    Args:
        options: what the user asked for.
        facts: of the node.
        ranks: global ranks of its workers, by local rank.
        roles: the mode's roles of its workers; () = they have none.
        known: all roles that the mode has in this job.

    Raises:
        PlanError: the roles do not fit the workers.
    """
    parts = options.parts
    rest = the_rest(parts, known)
    if roles:
        named = {part.name: part for part in parts if part.name in known}
        return tuple(named.get(role) or by_rank(parts, rank) or rest for role, rank in zip(roles, ranks, strict=True))
    if counted(options):
        return dealt(here(options, facts.component), facts, len(ranks))
    return tuple(by_rank(parts, rank) or rest for rank in ranks)


def the_rest(parts: Iterable[Part], known: frozenset[str]) -> Part | None:
    """The role of all workers that no other has.

    Raises:
        PlanError: there are several.
    """
    found = [part for part in parts if not (part.ranks or part.workers >= 0 or part.component >= 0 or part.name in known)]
    if len(found) > 1:
        seen = f"{' and '.join(part.name or 'the job' for part in found)} have no ranks of their own"
        roles = f"; the mode's roles are {', '.join(sorted(known))}" if known else ""
        raise PlanError("give every rank its program", seen + roles, "give ranks to all roles but one")
    return found[0] if found else None


def by_rank(parts: Iterable[Part], rank: int) -> Part | None:
    """The role that names this rank."""
    return next((part for part in parts if any(first <= rank <= last for first, last in part.ranks)), None)


def dealt(options: Options, facts: NodeFacts, workers: int) -> Owners:
    """Roles by numbers of workers, in the order of the file."""
    found = [part for part in options.parts for _ in range(size(part))]
    lone = [part for part in options.parts if size(part)]
    if not lone:
        raise idle(options, facts)
    if len(found) != workers and len(lone) == 1:
        found = lone * workers  # tasks that the scheduler started: all are of the component's one role
    if len(found) != workers:
        wanted = ", ".join(f"{size(part)} {part.name}" for part in lone) or "none"
        raise PlanError(
            f"give the {workers} workers on node {facts.host} their roles",
            f"{source(options)} wants {wanted} on a node of this kind",
            "start as many tasks, or one task on each node: its agent starts the workers",
        )
    return tuple(found)


def with_ranks(
    commands: Sequence[Command], options: Options, owned: Mapping[int, Part | None], known: frozenset[str]
) -> tuple[Command, ...]:
    """The roles' commands with the ranks that their numbers or names stand for; a role of a component that is not here has none.

    Args:
        commands: one for each of the options' roles, in their order.
        options: what the user asked for.
        owned: whose each global rank is.
        known: all roles that the mode has in this job.

    Raises:
        PlanError: a role that has a number of workers is none of the mode's.
    """
    stray = [part.name for part in options.parts if (part.workers >= 0 or part.component >= 0) and part.name not in known]
    if known and stray:
        theirs = f"the mode {options.mode.replace('_', '-')} has {', '.join(sorted(known))}"
        seen = f"{source(options)} has {', '.join(stray)}; {theirs}"
        raise PlanError("give the mode's roles their workers", seen, "name the roles as the mode does")
    if not (counted(options) or known):
        return tuple(commands)
    names: dict[str, list[int]] = {part.name: [] for part in options.parts}
    for rank, owner in owned.items():
        if owner is not None:
            names[owner.name].append(rank)
    idle = [part.name for part in options.parts if part.name and part.component < 0 and part.workers and not names[part.name]]
    if idle:
        raise PlanError("play all roles", f"no worker has the role {', '.join(idle)}", f"correct {source(options)}")
    given = zip(commands, options.parts, strict=True)
    return tuple(replace(command, ranks=pairs(names[part.name])) for command, part in given if names[part.name])


def pairs(ranks: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Numbers as pairs (first, last) of runs."""
    runs: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    return tuple(runs)


def devices_wanted(owned: Owners, facts: NodeFacts) -> tuple[int, ...]:
    """Number of devices of each worker; -1 = as without roles; () = no role says anything of devices.

    Raises:
        DeviceError: a role wants another kind of device than the node has.
    """
    if not any(part and (part.kind or part.devices >= 0) for part in owned):
        return ()
    if tried(owned, facts) and not facts.devices:
        return (0,) * len(owned)
    kind = facts.devices[0].kind if facts.devices else CPU
    for part in owned:
        if part and part.kind not in ("", CPU, kind):
            raise DeviceError(
                f"give the role {part.name} devices of the kind {part.kind}",
                f"node {facts.host} has {'no visible device' if kind == CPU else f'devices of the kind {kind}'}",
                "place the role on nodes that have them (component = …), or correct its device",
            )
    return tuple(each(part) if part else -1 for part in owned)


def tried(owned: Owners, facts: NodeFacts) -> bool:
    """Whether a node without components stands for all of them, so that the job is only tried out there."""
    return facts.component == EVERYWHERE and any(part is not None and part.component >= 0 for part in owned)


def each(part: Part) -> int:
    """Number of devices of each of a role's workers; one where it only names their kind."""
    return 0 if part.kind == CPU else part.devices if part.devices >= 0 or not part.kind else 1
