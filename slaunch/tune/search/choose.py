"""The search algorithms by name. Another package adds one by an entry point `slaunch.search` that is a `Method`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from slaunch.errors import UsageError
from slaunch.frozen import dataclass
from slaunch.tune.search.ladder import Ladder
from slaunch.tune.search.walk import Walk
from slaunch.tune.space.batch import batch_settings
from slaunch.tune.space.estimate import make_estimation
from slaunch.tune.space.make import Space, make_space, prior
from slaunch.tune.space.order import after_baseline, prior_first, shuffled
from slaunch.tune.space.rows import read_rows
from slaunch.tune.values import Cluster, Dropped, Setting, Study


class Search(Protocol):
    """What decides which setting is tried next.

    `ask` gives it, or None at the end; `tell` says how it ended: with a result, for lack of memory, or neither. `total`: settings
    in all; `left`: those not yet looked at; `skipped`: those that were not tried, with the reason.
    """

    total: int
    skipped: list[Dropped]

    @property
    def left(self) -> int: ...  # noqa: D102

    def ask(self) -> Setting | None: ...  # noqa: D102

    def tell(self, setting: Setting, ran: bool, oom: bool) -> None: ...  # noqa: D102


@dataclass(frozen=True)
class Method:
    """An algorithm: which settings there are, and how they are searched."""

    space: Callable[[Study, Cluster], Space]
    search: Callable[[Study, Cluster, Sequence[Setting]], Search]


def walk(study: Study, cluster: Cluster, settings: Sequence[Setting]) -> Search:
    """All settings in their order, but for those that the history speaks against."""
    again = partial(after_baseline, prior=prior(study, cluster)) if study.order.baseline else None
    return Walk(study, settings, reorder=again)


def random_walk(study: Study, cluster: Cluster, settings: Sequence[Setting]) -> Search:
    """The same in a random order, the user's priorities first."""
    return Walk(study, prior_first(shuffled(settings, study.algorithm.seed), prior(study, cluster)))


def table_space(study: Study, cluster: Cluster) -> Space:
    """The rows of the user's table."""
    return Space(read_rows(study))


def table_walk(study: Study, cluster: Cluster, settings: Sequence[Setting]) -> Search:
    """All rows: the user chose them."""
    return Walk(study, settings, rules=())


def batch_space(study: Study, cluster: Cluster) -> Space:
    """Growing global batches."""
    return Space(batch_settings(study, cluster))


def ladder(study: Study, cluster: Cluster, settings: Sequence[Setting]) -> Search:
    """Until one does not run."""
    return Ladder(settings)


METHODS = {
    "grid": Method(make_space, walk),
    "random": Method(make_space, random_walk),
    "gbs": Method(batch_space, ladder),
    "dp_estimation": Method(make_estimation, walk),
    "customize": Method(table_space, table_walk),
}


def method(name: str) -> Method:
    """The algorithm of this name, built in or from another package.

    Raises:
        UsageError: what the other package offers is no algorithm.
    """
    if name in METHODS:
        return METHODS[name]
    from importlib.metadata import entry_points

    for point in entry_points(group="slaunch.search", name=name):
        found = point.load()
        if isinstance(found, Method):
            return found
        raise UsageError("choose the search algorithm", f"{point.value} is no slaunch Method", "mend that package")
    raise UsageError("choose the search algorithm", f"search_algo {name!r}", f"choose one of {', '.join(METHODS)}")
