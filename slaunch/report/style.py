"""Words and colours that all reports share."""

from __future__ import annotations

import signal
import time

RED, BOLD, DIM, PLAIN = "\033[31m", "\033[1m", "\033[2m", "\033[0m"


def paint(text: str, style: str, colour: bool) -> str:
    """`text` in a style, on a terminal only."""
    return f"{style}{text}{PLAIN}" if colour and text else text


def signal_name(number: int) -> str:
    """ "SIGTERM"; "signal 40" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def counted(number: int, noun: str) -> str:
    """ "1 worker", "2 workers"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(count: int) -> str:
    """ "20.0 GiB", "312 MiB"."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def clock(time_s: float) -> str:
    """Local time of day to the millisecond, with its date."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(time_s))}.{int(time_s * 1000) % 1000:03d}"


def duration(seconds: float) -> str:
    """ "0.31 s", "2 min 5 s", "3 h 12 min"."""
    seconds = max(0.0, seconds)
    if seconds < 100:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
