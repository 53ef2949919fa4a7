"""The ladder: settings of growing need, tried until one does not run. Pure but for its own place."""

from __future__ import annotations

from collections.abc import Sequence

from slaunch.tune.values import Dropped, Setting


class Ladder:
    """A search that ends with the first setting that has no result; the rest is skipped."""

    def __init__(self, settings: Sequence[Setting]) -> None:
        self.total = len(settings)
        self.skipped: list[Dropped] = []
        self.best: Setting | None = None
        self._left = list(settings)

    @property
    def left(self) -> int:
        """Settings that have not been looked at."""
        return len(self._left)

    def ask(self) -> Setting | None:
        """The next step; None: there is none."""
        return self._left.pop(0) if self._left else None

    def tell(self, setting: Setting, ran: bool, oom: bool) -> None:
        """How the step ended."""
        if ran:
            self.best = setting
            return
        self.skipped += [Dropped(each, "ladder", "a smaller one did not run") for each in self._left]
        self._left = []
