"""What of a worker's output the console shows where several workers share it: whole lines with a name in front, those that match,
and not more of them than a person or a terminal can take. The log files have everything.
"""

from __future__ import annotations

import re
from math import inf

PARTIAL_S = 1.0
"""A line without end, such as a progress bar, is shown after this long."""
LONGEST = 4096
"""Bytes of a line that are shown where the number of lines is limited."""
BURST_S, BURST = 2.0, 20.0
"""A limit allows this many seconds' lines at once, or this many lines: what workers say when they start."""
TELL_S = 1.0
"""How often a line says how many others were left out."""


class Budget:
    """How many lines may be shown: `rate` a second, of all workers that share it; 0 = all."""

    def __init__(self, rate: float = 0.0) -> None:
        self.rate = rate
        self._most = max(BURST, BURST_S * rate) if rate else inf
        self._tokens = self._most
        self._at = -inf

    def take(self, wanted: int, now: float) -> int:
        """How many of `wanted` lines may be shown now."""
        if not self.rate:
            return wanted
        if self._at > -inf:
            self._tokens = min(self._most, self._tokens + self.rate * (now - self._at))
        self._at = now
        granted = min(wanted, int(self._tokens))
        self._tokens -= granted
        return granted


class Lines:
    """Makes one worker's output into lines for the console.

    Args:
        prefix: what stands in front of each line.
        log: path of the log file, to be named where lines are left out.
        budget: how many lines may be shown.
        match: only lines in which this is found; None = all.
    """

    def __init__(self, prefix: bytes, log: str, budget: Budget, match: re.Pattern[bytes] | None = None) -> None:
        self._prefix = prefix
        self._log = log
        self._budget = budget
        self._match = match
        self._partial = b""
        self._partial_since = 0.0
        self._left_out = 0
        self._told = -inf

    def feed(self, data: bytes, now: float) -> bytes:
        """The lines to show after further output."""
        whole, newline, rest = (self._partial + data).rpartition(b"\n")
        if newline or not self._partial:
            self._partial_since = now
        self._partial = rest
        lines = whole.split(b"\n") if self._match else []
        wanted = [line for line in lines if self._wants(last_state(line))]
        count = len(wanted) if self._match else (whole + newline).count(b"\n")
        granted = self._budget.take(count, now) if count else 0
        shown = self._note(now) if granted else b""
        self._left_out += count - granted
        chosen = wanted[:granted] if self._match else whole.split(b"\n", granted)[:granted]  # no more than are shown: it is fast
        return shown + b"".join(self._line(last_state(line)) for line in chosen)

    def idle(self, now: float) -> bytes:
        """What is due although no output has come: a line without end, word of lines that were left out."""
        shown = self._note(now) if self._left_out and now > self._told + TELL_S else b""
        if self._partial and now > self._partial_since + PARTIAL_S:
            shown += self._take_partial(now)
        return shown

    def end(self, now: float) -> bytes:
        """No more output comes."""
        return self._note(now) + (self._take_partial(now) if self._partial else b"")

    def leave_out(self, data: bytes) -> None:
        """Output that shall not be shown."""
        whole, newline, rest = (self._partial + data).rpartition(b"\n")
        self._left_out += (whole + newline).count(b"\n")
        self._partial = rest

    def _wants(self, line: bytes) -> bool:
        return self._match is None or self._match.search(line) is not None

    def _take_partial(self, now: float) -> bytes:
        line, self._partial = last_state(self._partial), b""
        return self._line(line) if self._wants(line) and self._budget.take(1, now) else b""

    def _note(self, now: float) -> bytes:
        if not self._left_out:
            return b""
        count, self._left_out, self._told = self._left_out, 0, now
        lines = f"{count:,} line{'s were' if count > 1 else ' was'}"
        return self._prefix + f"---- slaunch: {lines} left out here; the whole output is in {self._log} ----\n".encode()

    def _line(self, line: bytes) -> bytes:
        if self._budget.rate and len(line) > LONGEST:
            line = line[:LONGEST] + b" \xe2\x80\xa6"
        return self._prefix + line + b"\n"


def last_state(line: bytes) -> bytes:
    """Of a line that was overwritten by carriage returns, what a terminal shows in the end."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]
