"""Time of day that no correction of the system clock makes jump."""

from __future__ import annotations

import time

_OFFSET_S = time.time() - time.monotonic()


def wall_s() -> float:
    """Seconds since the epoch, as the system clock would say had nobody set it since this process began.

    The order of failures on several nodes is found by their times and the difference of their clocks; a clock that is set in
    between would make the last one the first.
    """
    return _OFFSET_S + time.monotonic()
