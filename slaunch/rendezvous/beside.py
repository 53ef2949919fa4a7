"""Something that may take long, done in a thread while the nodes that have come hear the serving one's heartbeats.

Only while nodes meet: an agent forks its workers, and a process that forks should have no other threads. An agent's own slow
things are done by `agent.errand`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Beside:
    """One piece of work. It cannot be ended before it ends itself; the process does not wait for it in the end.

    Attributes:
        over: whether it is done.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.over = False
        self._error: Exception | None = None
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """A descriptor that is readable once it is over."""
        return self._reader

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._error = error
        self.over = True
        os.close(self._writer)

    def finish(self) -> None:
        """Wait for its end, so that no thread is left, and raise what it has raised."""
        self._thread.join()
        self.close()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Nobody waits for it any more. Calling it again does nothing."""
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1
