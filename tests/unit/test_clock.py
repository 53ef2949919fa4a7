"""The clock that does not jump."""

from __future__ import annotations

import subprocess
import sys
import time

from slaunch.clock import wall_s


def test_it_tells_the_time_of_day() -> None:
    assert abs(wall_s() - time.time()) < 5
    assert wall_s() <= wall_s()


def test_setting_the_system_clock_does_not_move_it() -> None:
    """The system clock is set, as far as this process can see it, by replacing the function that asks for it."""
    code = """
import time
from slaunch.clock import wall_s
before = wall_s()
time.time = lambda: 0.0
assert 0 <= wall_s() - before < 60
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
