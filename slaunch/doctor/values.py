"""What a check looks at, what it found, and what an examination knows in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slaunch.frozen import dataclass

Facts = Mapping[str, Any]
"""What one check saw on one machine: JSON values by name. Each module of `checks` tells the names of its own."""

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)
"""An error keeps jobs from running, or from running as they should; a warning will hurt some; a note needs no action."""


@dataclass(frozen=True)
class Finding:
    """Something that the user should know.

    Attributes:
        check: name of the check that found it.
        severity: one of `SEVERITIES`.
        seen: what was seen, and where.
        means: what follows from it.
        todo: what to do about it.
        nodes: the nodes that it is about; () for the site as a whole.
    """

    check: str
    severity: str
    seen: str
    means: str
    todo: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What to examine.

    Attributes:
        quick: leave out what takes seconds.
        scratch: further folders to look at.
        program: the program to compare over nodes; "" = none.
    """

    quick: bool = False
    scratch: tuple[str, ...] = ()
    program: str = ""


@dataclass(frozen=True)
class Outcome:
    """How one look on one machine ended.

    Attributes:
        facts: what was seen; empty if the look failed.
        fault: how it failed; "" if it did not.
        took_s: seconds that it took.
    """

    facts: Facts
    fault: str = ""
    took_s: float = 0.0


@dataclass(frozen=True)
class Trait:
    """Something that should be the same on all nodes.

    Attributes:
        label: what it is called, e.g. "the driver".
        value: it, as text or number.
        severity: of a difference.
    """

    label: str
    value: Any
    severity: str = WARNING


Look = Callable[[Request, Mapping[str, str]], dict[str, Any]]


def no_finding(facts: Facts, site: Facts) -> list[Finding]:
    """The judgement of a check that only compares nodes."""
    return []


def no_trait(facts: Facts) -> list[Trait]:
    """The traits of a check that does not compare nodes."""
    return []


@dataclass(frozen=True)
class Check:
    """One thing to look at.

    Attributes:
        name: a word.
        look: sees; the only part with effects. Gets the request and the environment, may raise or hang.
        judge: decides what of it is wrong on one node; gets what was seen there and at the site (of Slurm).
        traits: what should be the same on all nodes.
        differs: what it means where it is not, and what to do.
        limit_s: seconds after which a look has failed.
        quick: also part of a quick examination.
        asks: what does not answer if the look hangs.
    """

    name: str
    look: Look
    judge: Callable[[Facts, Facts], list[Finding]] = no_finding
    traits: Callable[[Facts], list[Trait]] = no_trait
    differs: tuple[str, str] = ("", "")
    limit_s: float = 10.0
    quick: bool = True
    asks: str = "the kernel"


@dataclass(frozen=True)
class Report:
    """An examination.

    Attributes:
        where: what was examined, in words.
        findings: the worst first.
        nodes: outcomes by node and check.
        site: what Slurm said of the site.
        rates: bytes per second between nodes: by sender, receiver and network.
        took_s: seconds that it took.
        absent: nodes that did not answer.
    """

    where: str
    findings: tuple[Finding, ...]
    nodes: Mapping[str, Mapping[str, Outcome]]
    site: Facts
    rates: tuple[tuple[str, str, str, float], ...] = ()
    took_s: float = 0.0
    absent: tuple[str, ...] = ()
