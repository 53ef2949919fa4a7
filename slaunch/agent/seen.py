"""What an agent tells of its workers while they run."""

from __future__ import annotations

from slaunch.frozen import dataclass


@dataclass(frozen=True)
class Sight:
    """One worker at one moment.

    Attributes:
        rank, local_rank, role, pid: which worker.
        state: "running", "stopped", "waiting" (for a device or file server) or "ended".
        cpus: CPUs in use since the last look, of all its processes.
        host_bytes: memory of all its processes; shared pages count in each of them.
        device_bytes: the most memory of its devices that it has held so far; 0 = not known.
        device_now_bytes, device_percent: what it holds now, and how busy they are; -1 = not known.
        out_bytes, out_lines: its output in this attempt; lines -1 = not counted.
        silent_s: seconds since its last output.
        last: the last line of it.
    """

    rank: int
    local_rank: int
    role: str
    pid: int
    state: str
    cpus: float = 0.0
    host_bytes: int = 0
    device_bytes: int = 0
    device_now_bytes: int = -1
    device_percent: int = -1
    out_bytes: int = 0
    out_lines: int = -1
    silent_s: float = 0.0
    last: str = ""
