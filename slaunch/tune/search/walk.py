"""The walk: settings in their order, each tried unless a rule over the history speaks against it. Pure but for its own list."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from slaunch.tune.rules.considered import Considered
from slaunch.tune.rules.history import RULES, Rule, expect, inherit
from slaunch.tune.values import Dropped, Outcome, Setting, Study

Reorder = Callable[[Sequence[Setting]], list[Setting]]


class Walk:
    """A search over a list of settings.

    Attributes:
        total: settings in the list.
        skipped: settings that were not tried, each with its reason, in order.
    """

    def __init__(
        self, study: Study, settings: Sequence[Setting], rules: Sequence[Rule] = RULES, reorder: Reorder | None = None
    ) -> None:
        """`rules`: over the history; () tries everything. `reorder`: the order of what is left, once something ran."""
        self.total = len(settings)
        self.skipped: list[Dropped] = []
        self._study, self._rules, self._reorder = study, rules, reorder
        self._left = deque(settings)
        self._seen = Considered()

    @property
    def left(self) -> int:
        """Settings that have not been looked at."""
        return len(self._left)

    def ask(self) -> Setting | None:
        """The next setting to try; None: there is none."""
        while self._left:
            setting = self._left.popleft()
            found = expect(self._study, setting, self._seen, self._rules)
            if found is None:
                self._seen.add(Outcome(setting))
                return setting
            rule, expected = found
            self.skipped.append(Dropped(setting, rule, expected.reason))
            self._seen.add(inherit(setting, rule, expected))
        return None

    def tell(self, setting: Setting, ran: bool, oom: bool) -> None:
        """How the setting ended: with a result, for lack of memory, or neither."""
        self._seen.add(Outcome(setting, ran, oom))
        if ran and self._reorder is not None:
            self._left = deque(self._reorder(list(self._left)))
            self._reorder = None
