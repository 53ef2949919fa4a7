"""Settings seen so far, found again by "the same but for these dimensions" without comparing with each of them."""

from __future__ import annotations

from slaunch.tune.values import Outcome, Setting

Key = tuple[object, ...]


class Considered:
    """Outcomes in the order in which they were added.

    The index for a set of dimensions is made when it is first asked for, and kept up to date.
    """

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self._indexes: dict[tuple[str, ...], dict[Key, list[int]]] = {}
        self._places: dict[Key, int] = {}

    def add(self, outcome: Outcome) -> None:
        """One more; of a setting that is there already, the new outcome takes the old one's place."""
        whole = key(outcome.setting, ())
        place = self._places.get(whole)
        if place is not None:
            self.outcomes[place] = outcome
            return
        self._places[whole] = len(self.outcomes)
        self.outcomes.append(outcome)
        for names, index in self._indexes.items():
            index.setdefault(key(outcome.setting, names), []).append(self._places[whole])

    def beside(self, setting: Setting, *names: str) -> list[Outcome]:
        """The outcomes of settings that equal this one in everything but these dimensions, in order."""
        index = self._indexes.get(names)
        if index is None:
            index = self._indexes[names] = {}
            for place, outcome in enumerate(self.outcomes):
                index.setdefault(key(outcome.setting, names), []).append(place)
        return [self.outcomes[place] for place in index.get(key(setting, names), ())]


def key(setting: Setting, names: tuple[str, ...]) -> Key:
    """What two settings that differ only in these dimensions have in common."""
    return tuple(sorted((name, repr(value)) for name, value in setting.items() if name not in names))
