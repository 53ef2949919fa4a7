"""The agent's end of the process that writes the log files (`agent.pump`)."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable

from slaunch.agent.guardian import close_all_but, ignore_signals
from slaunch.agent.linux import set_name
from slaunch.agent.outlets import Form
from slaunch.frozen import asdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

ANSWER_S = 1.0
END_S = 4.5
"""Other agents miss one that says nothing for 6 s."""
LATE_S = 10.0
"""After the disk was too slow for the last lines of one worker, those of others are not waited for."""
ANSWERS = (b"synced", b"late")


class Writer:
    """A running one.

    Args:
        form: how output is written.
        tell: takes a line for the user.

    Attributes:
        pid: its process id.
        channel: readable when it has said something, or has ended.
    """

    def __init__(self, form: Form, tell: Callable[[str], None]) -> None:
        self._form = form
        self._tell = tell
        self._late_until = 0.0
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            _write_logs(theirs)
        theirs.close()

    def take(self, path: str, pipe: int, file: int) -> None:
        """Have what comes by a pipe written to a file."""
        self.channel.settimeout(ANSWER_S)
        order = json.dumps({"path": path, **asdict(self._form)}).encode()
        socket.send_fds(self.channel, [order], [pipe, file])

    def hear(self) -> bool:
        """Pass on what it says; False if it is gone."""
        try:
            text = self._next()
        except OSError:
            return False
        if text and text not in ANSWERS:
            self._tell(text.decode(errors="replace"))
        return bool(text)

    def sync(self) -> None:
        """Wait until it has written what has been said so far, if the disk works."""
        now = time.monotonic()
        if now < self._late_until:
            return
        try:
            self.channel.send(b"sync", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            while (text := self._next(now + ANSWER_S)) and text not in ANSWERS:
                self._tell(text.decode(errors="replace"))
        except OSError:  # it is gone, or does not listen
            text = b"late"
        if text != b"synced":
            self._late_until = now + LATE_S

    def finish(self) -> None:
        """Wait until it has written everything and is gone; kill it if it does not go."""
        gone = self._ends_in_time()
        self.channel.close()
        try:
            if not gone:
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0 if gone else os.WNOHANG)
        except (ChildProcessError, ProcessLookupError):  # reaped with the workers' orphans
            pass

    def _ends_in_time(self) -> bool:
        give_up = time.monotonic() + END_S
        try:
            self.channel.send(b"end", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            while text := self._next(give_up):
                if text not in ANSWERS:
                    self._tell(text.decode(errors="replace"))
        except (BrokenPipeError, ConnectionResetError):
            return True
        except OSError:  # it does not listen, or says nothing
            return False
        return True

    def _next(self, give_up: float = 0.0) -> bytes:
        """The next word; b"" if it is gone.

        Raises:
            OSError: there is none in time.
        """
        self.channel.settimeout(max(0.01, give_up - time.monotonic()) if give_up else None)
        return self.channel.recv(1 << 16)


def _write_logs(channel: socket.socket) -> NoReturn:
    """The other process's whole life."""
    try:
        os.setsid()
        set_name("slaunch-logs")
        ignore_signals()
        close_all_but(channel.fileno())
        from slaunch.agent.pump import Pump, say

        lost = Pump(channel).run()
        if lost:
            say(channel, f"{lost} bytes of output could not be written")
    finally:
        os._exit(0)
