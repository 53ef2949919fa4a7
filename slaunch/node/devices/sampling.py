"""The process that samples a node's devices, as its starter holds it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping

from slaunch.node.devices.sampler import NO_METER, NOW, Order


class Sampling:
    """A running `sampler`.

    Attributes:
        pid: its process id.
        descriptor: readable when it has told something, or has ended.
        peaks: the most bytes of device memory that each worker has held, by rank.
        now: bytes of device memory that each worker holds, and percent of use of its devices (-1 = not known), by rank.
        answered: no driver has refused.
    """

    def __init__(self, order: Order, env: Mapping[str, str]) -> None:
        """Start it, in a process group of its own: what the terminal or a scheduler signals is not for it."""
        inner, self._outer = os.pipe()
        self.descriptor, told = os.pipe()
        os.set_blocking(self._outer, False)
        os.set_blocking(self.descriptor, False)
        self.peaks: dict[int, int] = {}
        self.now: dict[int, tuple[int, int]] = {}
        self.answered = True
        self._rest = b""
        argv = order.command()
        files = [(os.POSIX_SPAWN_DUP2, inner, 0), (os.POSIX_SPAWN_DUP2, told, 1)]
        try:
            self.pid = os.posix_spawn(argv[0], argv, dict(env), file_actions=files, setpgroup=0, setsigmask=())
        except OSError:
            os.close(self._outer)
            os.close(self.descriptor)
            raise
        finally:
            os.close(inner)
            os.close(told)

    def started(self, pid: int, rank: int) -> None:
        """A worker runs."""
        if self._outer < 0:
            return
        try:
            os.write(self._outer, b"%d %d\n" % (pid, rank))
        except (BlockingIOError, BrokenPipeError):  # it hangs, or has ended: the job goes on without
            pass

    def read(self) -> bool:
        """Take what it has told; False once it has ended."""
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode().split())
        return bool(data)

    def _take(self, words: list[str]) -> None:
        match words:
            case [word] if word == NO_METER:
                self.answered = False
            case [word, rank, count, percent] if word == NOW:
                self.now[int(rank)] = (int(count), int(percent))
            case [rank, count]:
                self.peaks[int(rank)] = int(count)

    def stop(self) -> None:
        """Let it end."""
        if self._outer >= 0:
            os.close(self._outer)
            self._outer = -1

    def close(self, patience_s: float = 2.0) -> None:
        """Let it end, and kill it if it does not in time: a driver may hang, and even hold it back from dying for a while."""
        self.stop()
        if not self._ended_within(patience_s):
            os.kill(self.pid, signal.SIGKILL)
            self._ended_within(patience_s)
        os.close(self.descriptor)

    def _ended_within(self, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        while not self._reaped():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def _reaped(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:  # someone else has waited for it
            return True
