"""The layout of an application that PALS starts, from the file that PALS_APINFO names.

The file is C structures written as they are in memory: a header with size, offset and count of each table, then the tables.
Source of the layout, version 1: Slurm's src/plugins/mpi/cray_shasta/apinfo.c, which writes the same file for Cray PMI.
"""

from __future__ import annotations

import struct
from collections import Counter

from slaunch.errors import AllocationError
from slaunch.frozen import dataclass

_HEADER = struct.Struct("@iqqqiqqiqqiqqi")
"""version, total size, then (entry size, offset, count) of the tables: networks, commands, processes, nodes."""
_PROCESS = struct.Struct("@iii")
"""Local rank, command, node."""
_NODE = struct.Struct("@i64s")
"""Number and host name."""


@dataclass(frozen=True)
class Layout:
    """Where the ranks run.

    Attributes:
        hosts: host name of each node.
        places: node and local rank of each rank.
    """

    hosts: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of ranks on each node."""
        on = Counter(node for node, _ in self.places)
        return tuple(on[node] for node in range(len(self.hosts)))

    @property
    def root(self) -> str:
        """Host of rank 0."""
        return self.hosts[self.places[0][0]]


def parse(text: str, path: str) -> Layout:
    """Return the layout.

    Args:
        text: the file's bytes, decoded with surrogate escapes.
        path: its name, for the error.

    Raises:
        AllocationError: it is no such file.
    """
    data = text.encode("utf-8", "surrogateescape")
    try:
        *_, process_size, process_at, processes, node_size, node_at, nodes = _HEADER.unpack_from(data)
        ranks = [_PROCESS.unpack_from(data, process_at + i * process_size) for i in range(processes)]
        named = [_NODE.unpack_from(data, node_at + i * node_size)[1] for i in range(nodes)]
        hosts = tuple(name.split(b"\0", 1)[0].decode("ascii") for name in named)
        places = tuple((node, local) for local, _, node in ranks)
    except (struct.error, UnicodeDecodeError):
        raise _unreadable(path, "not in the known format") from None
    if not places or not all(0 <= node < len(hosts) for node, _ in places):
        raise _unreadable(path, f"{len(places)} ranks, {len(hosts)} nodes")
    return Layout(hosts, places)


def _unreadable(path: str, why: str) -> AllocationError:
    return AllocationError("read where the ranks run", f"PALS_APINFO={path}: {why}", "load Cray PMI, so that PMI_SIZE is set")
