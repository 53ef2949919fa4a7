"""Something that may take long or hang, done by a child process: the agent's loop goes on, and gives it up after a while.

The child is a fork of the agent, so it starts within a few milliseconds and needs nothing but the function. It must not use what
the agent holds open.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from math import inf

from slaunch.agent.linux import die_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

CHUNK = 65536


class Errand:
    """One child.

    Args:
        work: what it does; returns JSON values.
        done: takes what it returned, or None if it has failed or was given up; called once, from the selector or from `tick`.
        limit_s: after so long it is given up.
        selector: the agent's.
        spared: takes its process id while it runs, as it is no worker's.

    Attributes:
        due: when `tick` has something to do, on the monotonic clock.
    """

    def __init__(
        self,
        work: Callable[[], object],
        done: Callable[[Any], None],
        limit_s: float,
        selector: selectors.BaseSelector,
        spared: set[int],
    ) -> None:
        self.due = time.monotonic() + limit_s
        self._done = done
        self._selector = selector
        self._spared = spared
        self._said = b""
        self._reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        agent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _run(work, writer, agent)
        os.close(writer)
        spared.add(self._pid)
        selector.register(self._reader, selectors.EVENT_READ, self._read)

    @property
    def over(self) -> bool:
        """Whether it has been told of."""
        return self._reader < 0

    def tick(self, now: float) -> None:
        """Give it up, if it is time. A child that waits for a dead device ends when that answers."""
        if not self.over and now >= self.due:
            self._kill()
            self._end(None)

    def finish(self) -> None:
        """Wait for it, no longer than it may take."""
        import select

        while not self.over:
            now = time.monotonic()
            select.select([self._reader], [], [], max(0.0, self.due - now))
            self._read()
            self.tick(time.monotonic())

    def close(self) -> None:
        """Give it up, and tell nobody."""
        if not self.over:
            self._kill()
            self._leave()

    def _read(self) -> None:
        if self.over:
            return
        try:
            data = os.read(self._reader, CHUNK)
        except BlockingIOError:
            return
        self._said += data
        if not data:
            self._end(_value(self._said))

    def _end(self, value: Any) -> None:
        self._leave()
        self._done(value)

    def _kill(self) -> None:
        """It has not closed its end of the pipe, so it lives."""
        try:
            os.kill(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _leave(self) -> None:
        self._selector.unregister(self._reader)
        os.close(self._reader)
        self._reader, self.due = -1, inf
        try:
            ended = os.waitpid(self._pid, os.WNOHANG)[0]  # else it is reaped with the orphans
        except ChildProcessError:
            ended = self._pid
        if ended:
            self._spared.discard(self._pid)


def _value(said: bytes) -> Any:
    try:
        return json.loads(said)
    except ValueError:
        return None


def _run(work: Callable[[], object], writer: int, agent: int) -> NoReturn:
    """In the child. Nothing of the agent must run on, hence `os._exit`."""
    try:
        die_with_parent(agent)
        os.setsid()
        os.set_blocking(writer, True)
        data = json.dumps(work()).encode()
        while data:
            data = data[os.write(writer, data) :]
    except BaseException:
        os._exit(1)
    finally:
        os._exit(0)
