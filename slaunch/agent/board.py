"""The state of the whole job as the hub knows it: a JSON file for `slaunch status`, and text for Prometheus."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from slaunch.agent.seen import Sight
from slaunch.clock import wall_s
from slaunch.frozen import asdict, dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
"""Raised when a field changes its meaning or goes; new fields may come at any time."""
NAME = "status.json"
"""Name of the file in the directory of the logs."""


@dataclass(frozen=True)
class Heard:
    """The last news of a node.

    Attributes:
        at: when it came, monotonic.
        attempt: number of the attempt.
        sights: its workers.
    """

    at: float
    attempt: int
    sights: tuple[Sight, ...]


class Board:
    """The hub's.

    Args:
        job: the job's name, and `id` its id.
        hosts: host names by node; there may come more.
        world: number of workers.
        interval_s: seconds between two states.
        started_s: when the run began, seconds since the epoch.
    """

    def __init__(  # noqa: PLR0917 - what does not change
        self, job: str, id: str, hosts: Callable[[], Sequence[str]], world: int, interval_s: float, started_s: float
    ) -> None:
        self._fixed = {"job": job, "id": id, "world": world, "interval_s": interval_s, "started_s": started_s}
        self._hosts = hosts
        self._nodes: dict[int, Heard] = {}

    def hear(self, node: int, news: Heard) -> None:
        """A node's workers, as its agent has just seen them."""
        self._nodes[node] = news

    def state(self, now: float, attempt: int, left_s: float | None, **ended: Any) -> dict[str, Any]:
        """Everything.

        Args:
            now: monotonic.
            attempt: number of the attempt.
            left_s: seconds until the job's time is over; None = not known, or never.
            ended: how the job has ended, if it has.
        """
        return {
            "format": FORMAT,
            **self._fixed,
            "state": "ended" if ended else "running",
            "now_s": wall_s(),
            "attempt": attempt,
            "left_s": left_s,
            **ended,
            "nodes": [self._node(index, host, now, attempt) for index, host in enumerate(self._hosts())],
        }

    def _node(self, index: int, host: str, now: float, attempt: int) -> dict[str, Any]:
        news = self._nodes.get(index)
        known = news is not None and news.attempt == attempt
        return {
            "node": index,
            "host": host,
            "heard_s": round(now - news.at, 1) if news is not None else None,
            "workers": [asdict(sight) for sight in news.sights] if news is not None and known else [],
        }


def write_whole(path: str, text: str, mode: int) -> str:
    """Put a file in the place of the one that is there. What kept it from being written, in a line; "" if nothing did."""
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def write_state(log_dir: str, state: Mapping[str, Any]) -> str:
    """Write the state beside the logs, readable by its user only. What kept it from being written; "" if nothing did."""
    return write_whole(os.path.join(log_dir, NAME), json.dumps(state, separators=(",", ":")) + "\n", 0o600)
