"""A step of agents, one on each node, that are asked and answer through srun's standard input and output."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import IO, Any

from slaunch.allocation.values import StepCall
from slaunch.doctor.lines import Joiner
from slaunch.errors import MissingToolError
from slaunch.frozen import dataclass

FAILED = re.compile(r"failed on node (\S+?):")
"""srun's word for a node on which a task could not be started."""
SAID_CHARS = 4000
END_S = 5.0


@dataclass(frozen=True)
class Answer:
    """What an agent said, and when that came, in seconds since the epoch."""

    value: dict[str, Any]
    heard_s: float


class Conversation:
    """The step. Every wait has a deadline by `time.monotonic()`.

    Args:
        call: the command that starts it.
        end_s: seconds that the step may take to end when it is asked to, before it is asked harder.

    Attributes:
        over: srun has ended, or closed its output.
        complaints: what srun and the agents wrote to standard error.
    """

    def __init__(self, call: StepCall, end_s: float = END_S) -> None:
        self._end_s = end_s
        try:
            self._srun = subprocess.Popen(
                call.argv, env=dict(call.env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except FileNotFoundError:
            todo = "add Slurm's tools to PATH"
            raise MissingToolError("start a step on the job's nodes", "no program srun on PATH", todo) from None
        self.over = False
        self.complaints = ""
        self._joiner = Joiner()
        self._rest = b""
        self._outbox = b""
        self._ears = selectors.DefaultSelector()
        for pipe in (self._mouth, self._out, self._err):
            os.set_blocking(pipe.fileno(), False)
        for pipe in (self._out, self._err):
            self._ears.register(pipe, selectors.EVENT_READ)

    @property
    def _mouth(self) -> IO[bytes]:
        assert self._srun.stdin
        return self._srun.stdin

    @property
    def _out(self) -> IO[bytes]:
        assert self._srun.stdout
        return self._srun.stdout

    @property
    def _err(self) -> IO[bytes]:
        assert self._srun.stderr
        return self._srun.stderr

    def ask(self, order: Mapping[str, Any], count: int, deadline: float) -> dict[str, Answer]:
        """Give all agents an order; the answers by sender, of those who answer in time.

        Args:
            order: see `slaunch.doctor.agent`.
            count: how many answers there will be.
            deadline: when to wait no more.
        """
        self._outbox += json.dumps(order).encode() + b"\n"
        found: dict[str, Answer] = {}
        self._write()
        while len(found) < count and not self.over and time.monotonic() < deadline:
            found.update(self._hear(deadline))
        return found

    def _hear(self, deadline: float) -> dict[str, Answer]:
        """Wait for something to come; what is complete."""
        found: dict[str, Answer] = {}
        for key, _ in self._ears.select(max(0.0, deadline - time.monotonic())):
            if key.fileobj is self._mouth:
                self._write()
                continue
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._ears.unregister(key.fileobj)
                self.over = self.over or key.fileobj is self._out
            elif key.fileobj is self._err:
                self.complaints = (self.complaints + data.decode(errors="replace"))[-SAID_CHARS:]
            else:
                found.update(self._split(data))
        return found

    def _split(self, data: bytes) -> dict[str, Answer]:
        """Values that end in these bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        taken = (self._joiner.take(line.decode(errors="replace")) for line in lines)
        return {told[0]: Answer(told[1], time.time()) for told in taken if told}

    def _write(self) -> None:
        """Send what srun takes of the orders without waiting; the rest when it takes more."""
        known = self._mouth in self._ears.get_map()
        try:
            while self._outbox:
                self._outbox = self._outbox[os.write(self._mouth.fileno(), self._outbox) :]
        except BlockingIOError:
            if not known:
                self._ears.register(self._mouth, selectors.EVENT_WRITE)
            return
        except BrokenPipeError:
            self.over, self._outbox = True, b""
        if known:
            self._ears.unregister(self._mouth)

    def close(self) -> None:
        """End the agents, by the end of their input, and srun; what it still says is kept in `complaints`."""
        self._mouth.close()
        for number in (0, signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if number:
                self._srun.send_signal(number)
            if self._gone(time.monotonic() + self._end_s):
                break
        self._srun.wait()
        self._ears.close()
        self._out.close()
        self._err.close()

    def _gone(self, deadline: float) -> bool:
        """Hear srun out until it has ended."""
        while time.monotonic() < deadline:
            if any(key.fileobj is not self._mouth for key in self._ears.get_map().values()):
                self._hear(min(deadline, time.monotonic() + 0.2))
            else:
                time.sleep(0.02)
            if self._srun.poll() is not None and not self._pending():
                return True
        return False

    def _pending(self) -> bool:
        """Whether something is still to be read."""
        return bool(self._ears.select(0))

    def failed_nodes(self) -> tuple[str, ...]:
        """Nodes on which srun could not start a task."""
        return tuple(dict.fromkeys(FAILED.findall(self.complaints)))
