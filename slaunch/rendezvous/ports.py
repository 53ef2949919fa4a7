"""Where a job's tasks look for each other before they know anything but the job: a short sequence of ports."""

from __future__ import annotations

import struct

from slaunch.hashing import sha256

LOWEST, HIGHEST = 20000, 32767
"""Outside the kernel's usual range for outgoing connections (32768 to 60999), so that none of those takes one of ours."""
CANDIDATES = 16
"""Enough that one is free even where many jobs share a node."""


def candidate_ports(identity: str) -> tuple[int, ...]:
    """Distinct ports to try in this order; other jobs, steps and attempts get others, but for accidents that do no harm.

    Args:
        identity: names the meeting.
    """
    span = HIGHEST - LOWEST + 1
    found: dict[int, None] = {}
    for turn in range(100):
        words = struct.unpack(">16H", sha256(f"{identity} {turn}".encode()).digest())
        found.update(dict.fromkeys(LOWEST + word % span for word in words))
        if len(found) >= CANDIDATES:
            break
    return tuple(found)[:CANDIDATES]
