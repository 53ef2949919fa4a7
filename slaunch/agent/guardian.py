"""A tiny process that outlives a killed agent for just as long as it takes to end the agent's workers.

It waits on a pipe. The agent writes `+PID` and `-PID` lines as workers come and go, and `bye` at its normal end. If the pipe
closes without `bye`, the agent was killed: the guardian kills the workers' process groups and every process that carries the
agent's mark in its environment, until none is left. It touches no other process.

Where the job may go on without this node, it does the same when the agent stands still (SIGSTOP, a file server that hangs): every
second the agent writes `!TIME`, by when it must have heard of the others again, who give it up when they do not hear of it.
"""

from __future__ import annotations

import os
import select
import signal
import time
from math import inf

from slaunch.agent.linux import set_name
from slaunch.agent.process import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

BYE = b"bye\n"
GIVE_UP_S = 10.0
FENCE_S = 2.0
"""How long it kills the workers of an agent that stands still, and so cannot reap them."""
LOOK_S = 1.0
"""It looks at the clock this often."""
OVERSLEPT_S, AWAKE_S = 3.0, 6.0
"""If it has been stopped itself, perhaps with the whole job (`scontrol suspend`), or frozen for so long, the agent has some time
to hear of the others."""


class Guardian:
    """The agent's end of the pipe.

    Args:
        mark: what the workers' processes carry in their environment.
        interval_s: how often the agent tells that it is well.
        patience_s: how long it may be without word of the others; inf = for ever.

    Attributes:
        due: when to call `well`, monotonic.
    """

    def __init__(self, mark: str, interval_s: float = inf, patience_s: float = inf) -> None:
        self._interval_s, self._patience_s = interval_s, patience_s
        self._well_at = self._deadline = inf
        self.due = -inf if patience_s < inf else inf
        read, self._pipe = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _guard(read, mark)
        os.close(read)

    def well(self, now: float, heard_at: float) -> float:
        """The agent does its work. How long it had not, if its workers were ended for that; else 0.

        Args:
            now: `time.monotonic()`.
            heard_at: when it last had word of the others.
        """
        if self._patience_s == inf:
            return 0.0
        still_s = now - self._well_at
        self._well_at, self.due = now, now + self._interval_s
        self._deadline = heard_at + self._patience_s
        self._write(b"!%.3f\n" % self._deadline)
        return still_s if still_s > self._patience_s else 0.0

    def has_acted(self, now: float) -> bool:
        """Whether the deadline is over, so that it has ended the workers."""
        return now >= self._deadline

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
        carried = f"{MARK}={mark}".encode()
        groups = _listen(pipe, carried)
        if groups is not None:
            _clean(groups, carried, GIVE_UP_S)
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


def _listen(pipe: int, mark: bytes) -> set[int] | None:
    """Until the pipe closes. The process groups of the workers that run then; None after a `bye`."""
    groups: set[int] = set()
    rest, deadline = b"", inf
    while True:
        if groups and (deadline := _wait(pipe, deadline)) == -inf:
            _clean(set(groups), mark, FENCE_S)
            deadline = inf
        data = os.read(pipe, 4096)
        if not data:
            return groups
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line + b"\n" == BYE:
                return None
            if line[:1] == b"!":
                deadline = max(float(line[1:]), deadline if deadline < inf else 0.0)
                continue
            change = groups.add if line[:1] == b"+" else groups.discard
            change(int(line[1:]))


def _wait(pipe: int, deadline: float) -> float:
    """Until the agent says something; its deadline then, or -inf if that is over."""
    woken: list[int] = []
    signal.signal(signal.SIGCONT, lambda number, frame: woken.append(number))
    while True:
        begun = time.monotonic()
        wait_s = min(LOOK_S, max(0.0, deadline - begun)) if deadline < inf else None
        said = select.select([pipe], [], [], wait_s)[0]
        now = time.monotonic()
        if deadline < inf and (woken or now > begun + LOOK_S + OVERSLEPT_S):
            deadline = max(deadline, now + AWAKE_S)
            woken.clear()
        if said:
            return deadline
        if now >= deadline:
            return -inf


def _clean(groups: set[int], mark: bytes, give_up_s: float) -> None:
    """Kill, look again, until two looks in a row find nothing: a process may fork while we look."""
    quiet = 0
    give_up = time.monotonic() + give_up_s
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
