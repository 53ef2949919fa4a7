"""Nodes that have shown a fault: for how long to do without them, and the file that tells the next submission.

A node is left alone for ten minutes after its first fault, twice as long after each further one, and for good after the fifth
within a week. All times are in seconds since the epoch, so that the rule holds over attempts, jobs and restarts of slaunch.

The file that the user names has two parts, which concurrent jobs may share:

    FILE         the nodes to be left out now, as one host list: `sbatch --exclude="$(cat FILE)"`
    FILE.jsonl   a line for each fault; locked while one is added. Remove a node's lines to forgive it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from math import inf

from slaunch.allocation import hostlist
from slaunch.errors import OutputError
from slaunch.frozen import asdict, dataclass

FIRST_S = 600.0
MEMORY_S = 7 * 86400.0
FOR_GOOD = 5
LOCK_S = 5.0
"""How long another job may hold the file; adding a line takes milliseconds."""


@dataclass(frozen=True)
class Fault:
    """What a node has shown.

    Attributes:
        node: its host name.
        time_s: when, seconds since the epoch.
        why: one line.
        job: which job saw it.
    """

    node: str
    time_s: float
    why: str
    job: str = ""


def until_s(times_s: Iterable[float], now_s: float) -> float:
    """Until when to do without a node that has shown faults at these times; -inf = it may be used, inf = for good. Any clock."""
    times = sorted(time_s for time_s in times_s if time_s > now_s - MEMORY_S)
    if not times:
        return -inf
    return inf if len(times) >= FOR_GOOD else times[-1] + FIRST_S * 2.0 ** (len(times) - 1)


def out(faults: Sequence[Fault], now_s: float) -> tuple[str, ...]:
    """Nodes to do without now, sorted."""
    nodes = sorted({fault.node for fault in faults})
    return tuple(node for node in nodes if until_s((fault.time_s for fault in faults if fault.node == node), now_s) > now_s)


def read(path: str) -> tuple[Fault, ...]:
    """The faults in the user's file; () if there is none. A line that is no fault, as of an interrupted write, is left out.

    Raises:
        OutputError: it is there, and cannot be read.
    """
    try:
        with open(f"{path}.jsonl", encoding="utf-8") as file:
            return tuple(fault for line in file if (fault := fault_of(line)) is not None)
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise unusable(path, error) from None


def fault_of(line: str) -> Fault | None:
    """A line of the file."""
    try:
        fields = json.loads(line)
        return Fault(str(fields["node"]), float(fields["time_s"]), str(fields.get("why", "")), str(fields.get("job", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def add(path: str, faults: Sequence[Fault], now_s: float) -> tuple[str, ...]:
    """Add faults to those that other jobs have added, and list the nodes anew; returns the nodes that are out now.

    Raises:
        OutputError: the file cannot be written, or another job holds it for too long.
    """
    try:
        with open(f"{path}.jsonl", "a+b") as file:
            lock(file.fileno())
            file.write(b"".join(f"{json.dumps(asdict(fault))}\n".encode() for fault in faults))
            file.flush()
            listed = out(read(path), now_s)
            write_list(path, listed)
            return listed
    except OSError as error:
        raise unusable(path, error) from None


def lock(descriptor: int) -> None:
    """Keep other jobs from writing until the descriptor is closed; where the file system has no locks, appended lines still
    do not mix.

    Raises:
        TimeoutError: another one holds it.
    """
    import errno
    import fcntl

    give_up = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise TimeoutError(errno.ETIMEDOUT, "another job holds it") from None
            time.sleep(0.02)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                return
            raise


def write_list(path: str, nodes: Sequence[str]) -> None:
    """Put the list in place of the old one, at once for every reader."""
    part = f"{path}.{os.uname().nodename}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        file.write(f"{hostlist.compress(nodes)}\n" if nodes else "")
    os.replace(part, path)


def unusable(path: str, error: Exception) -> OutputError:
    """The error of a file that cannot be used."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return OutputError(f"keep the list of bad nodes in {path}", f"{why} at {path}.jsonl", "choose another --exclude-bad FILE")
