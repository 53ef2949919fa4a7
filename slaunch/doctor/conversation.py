"""Agents, one on each node, that are asked and answer through srun's standard input and output."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

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


class Step:
    """An srun and its pipes.

    Attributes:
        rest: the start of a line whose end has not come yet.
        outbox: what srun has not taken yet.
        over: it has ended, or closed its output.
    """

    def __init__(self, call: StepCall) -> None:
        pipe = subprocess.PIPE
        try:
            self.srun = subprocess.Popen(call.argv, env=dict(call.env), stdin=pipe, stdout=pipe, stderr=pipe)
        except FileNotFoundError:
            todo = "add Slurm's tools to PATH"
            raise MissingToolError("start a step on the job's nodes", "no program srun on PATH", todo) from None
        assert self.srun.stdin and self.srun.stdout and self.srun.stderr
        self.mouth, self.out, self.err = self.srun.stdin, self.srun.stdout, self.srun.stderr
        for each in (self.mouth, self.out, self.err):
            os.set_blocking(each.fileno(), False)
        self.rest = self.outbox = b""
        self.over = False

    def write(self) -> bool:
        """Send what srun takes without waiting; whether something is left."""
        try:
            while self.outbox:
                self.outbox = self.outbox[os.write(self.mouth.fileno(), self.outbox) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self.over, self.outbox = True, b""
        return False


class Conversation:
    """The step, or the steps of a job with several components, to only the first of which one srun would forward its input.

    Every wait has a deadline by `time.monotonic()`.

    Args:
        calls: the commands that start them.
        end_s: seconds that they may take to end when asked to, before they are asked harder.

    Attributes:
        complaints: what srun and the agents wrote to standard error.
    """

    def __init__(self, calls: Sequence[StepCall], end_s: float = END_S) -> None:
        self._end_s = end_s
        self._number = 0
        self.complaints = ""
        self._joiner = Joiner()
        self._steps = [Step(call) for call in calls]
        self._ears = selectors.DefaultSelector()
        for step in self._steps:
            self._ears.register(step.out, selectors.EVENT_READ, step)
            self._ears.register(step.err, selectors.EVENT_READ, step)

    @property
    def over(self) -> bool:
        """Whether nobody will say anything more."""
        return all(step.over for step in self._steps)

    def ask(self, order: Mapping[str, Any], deadline: float, count: int = 0, senders: Collection[str] = ()) -> dict[str, Answer]:
        """Give all agents an order; the answers by sender, of those who answer in time. Late ones to earlier orders are dropped.

        Args:
            order: see `slaunch.doctor.agent`.
            deadline: when to wait no more.
            count: how many answers to wait for.
            senders: whose answers to wait for.
        """
        self._number += 1
        for step in self._steps:
            step.outbox += json.dumps({**order, "number": self._number}).encode() + b"\n"
            self._write(step)
        found: dict[str, Answer] = {}
        while (len(found) < count or not found.keys() >= set(senders)) and not self.over and time.monotonic() < deadline:
            heard = self._hear(deadline)
            found.update({sender: answer for sender, answer in heard.items() if answer.value["number"] == self._number})
        return found

    def _hear(self, deadline: float) -> dict[str, Answer]:
        """Wait for something to come; what is complete."""
        found: dict[str, Answer] = {}
        for key, _ in self._ears.select(max(0.0, deadline - time.monotonic())):
            step: Step = key.data
            if key.fileobj is step.mouth:
                self._write(step)
                continue
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._ears.unregister(key.fileobj)
                step.over = step.over or key.fileobj is step.out
            elif key.fileobj is step.err:
                self.complaints = (self.complaints + data.decode(errors="replace"))[-SAID_CHARS:]
            else:
                found.update(self._split(step, data))
        return found

    def _split(self, step: Step, data: bytes) -> dict[str, Answer]:
        """Values that end in these bytes."""
        *lines, step.rest = (step.rest + data).split(b"\n")
        taken = (self._joiner.take(line.decode(errors="replace")) for line in lines)
        return {told[0]: Answer(told[1], time.time()) for told in taken if told}

    def _write(self, step: Step) -> None:
        """Send what can be sent now, and the rest when there is room."""
        left, known = step.write(), step.mouth in self._ears.get_map()
        if left and not known:
            self._ears.register(step.mouth, selectors.EVENT_WRITE, step)
        elif known and not left:
            self._ears.unregister(step.mouth)

    def close(self) -> None:
        """End the agents, by the end of their input, and srun; what it still says is kept in `complaints`."""
        for step in self._steps:
            if step.mouth in self._ears.get_map():
                self._ears.unregister(step.mouth)
            step.mouth.close()
        for number in (0, signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            for step in self._steps:
                if number:
                    step.srun.send_signal(number)
            if self._gone(time.monotonic() + self._end_s):
                break
        self._ears.close()
        for step in self._steps:
            step.srun.wait()
            step.out.close()
            step.err.close()

    def _gone(self, deadline: float) -> bool:
        """Hear srun out until it has ended."""
        while time.monotonic() < deadline:
            if self._ears.get_map():
                self._hear(min(deadline, time.monotonic() + 0.2))
            else:
                time.sleep(0.02)
            if all(step.srun.poll() is not None for step in self._steps) and not self._ears.select(0):
                return True
        return False

    def failed_nodes(self) -> tuple[str, ...]:
        """Nodes on which srun could not start a task."""
        return tuple(dict.fromkeys(FAILED.findall(self.complaints)))
