"""A tiny process that outlives a killed agent for just as long as it takes to end the agent's workers.

It waits on a pipe. The agent writes `+PID` and `-PID` lines as workers come and go, and `bye` at its normal end. If the pipe
closes without `bye`, the agent was killed: the guardian kills the workers' process groups and every process that carries the
agent's mark in its environment, until none is left. It touches no other process.
"""

from __future__ import annotations

import os
import signal
import time

from slaunch.agent.linux import set_name
from slaunch.agent.process import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

BYE = b"bye\n"
GIVE_UP_S = 10.0


class Guardian:
    """The agent's end of the pipe."""

    def __init__(self, mark: str) -> None:
        read, self._pipe = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _guard(read, mark)
        os.close(read)

    def started(self, pid: int) -> None:
        """A worker runs, leading a process group of its own."""
        self._write(b"+%d\n" % pid)

    def ended(self, pid: int) -> None:
        """A worker has been reaped; its number may be another process's soon."""
        self._write(b"-%d\n" % pid)

    def dismiss(self) -> None:
        """The agent ends normally: the guardian goes at once."""
        self._write(BYE)
        os.close(self._pipe)
        if self.pid:
            self.reap()

    def reap(self) -> None:
        """Take the guardian's exit status; its process id is free from then on."""
        os.waitpid(self.pid, 0)
        self.pid = 0

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._pipe, line)
        except BrokenPipeError:  # somebody killed the guardian: we go on without
            pass


def _guard(pipe: int, mark: str) -> NoReturn:
    """The guardian's whole life."""
    try:
        os.setsid()
        set_name("slaunch-guard")
        ignore_signals()
        close_all_but(pipe)
        groups = _listen(pipe)
        if groups is not None:
            _clean(groups, f"{MARK}={mark}".encode())
    finally:
        os._exit(0)


def ignore_signals() -> None:
    """A scheduler signals every process of a step; only SIGKILL is meant for us."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):  # used by the C library itself
            pass


def close_all_but(kept: int) -> None:
    """Whoever waits for the end of the agent's output must not wait for us."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            try:
                os.close(int(name))
            except OSError:  # the listing's own
                pass


def _listen(pipe: int) -> set[int] | None:
    """Until the pipe closes. The process groups of the workers that run then; None after a `bye`."""
    groups: set[int] = set()
    rest = b""
    while data := os.read(pipe, 4096):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line + b"\n" == BYE:
                return None
            change = groups.add if line[:1] == b"+" else groups.discard
            change(int(line[1:]))
    return groups


def _clean(groups: set[int], mark: bytes) -> None:
    """Kill, look again, until two looks in a row find nothing: a process may fork while we look."""
    quiet = 0
    give_up = time.monotonic() + GIVE_UP_S
    while quiet < 2 and time.monotonic() < give_up:
        for group in list(groups):
            if not _kill_group(group):
                groups.discard(group)
        marked = _marked(mark)
        for pid in marked:
            _kill(pid)
        quiet = 0 if marked or groups else quiet + 1
        time.sleep(0.02)


def _kill_group(group: int) -> bool:
    """Whether it still exists."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _marked(mark: bytes) -> list[int]:
    """Processes of this user with the mark in their environment; never this one."""
    own = os.getuid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and _carries(name, mark, own):
            found.append(int(name))
    return found


def _carries(name: str, mark: bytes, own: int) -> bool:
    try:
        if os.stat(f"/proc/{name}").st_uid != own:
            return False
        with open(f"/proc/{name}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
