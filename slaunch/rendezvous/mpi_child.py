"""The short-lived process that is an MPI process in the agent's place; the only module that imports mpi4py.

    python -m slaunch.rendezvous.mpi_child SECONDS      it ends itself after SECONDS (0: never), even inside MPI

It writes a greeting (the size of its world, and how the MPI library describes itself), then answers each frame on its input with
the frames of all ranks, until the input ends. A frame is a 4-byte length and as many bytes. The agent itself thus never holds MPI
state: it may fork, and no MPI abort can end it. Every node waits for this process, so it imports as little as it can.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from array import array
from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

LENGTH = struct.Struct(">I")


def main() -> None:
    """Serve the agent until it closes our input."""
    signal.alarm(int(sys.argv[1]))
    source, sink = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get among the frames
    end_with_parent()

    import mpi4py

    mpi4py.rc.threads = False
    mpi4py.rc.finalize = False
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    write(sink, f"{world.size} {MPI.Get_library_version()}".encode())
    while (payload := read(source)) is not None:
        write(sink, *allgather(MPI, world, payload))
    MPI.Finalize()


def allgather(mpi: Any, world: Any, payload: bytes) -> list[bytes]:
    """Everybody's payload, in rank order."""
    sizes = array("i", [0] * world.size)
    world.Allgather(array("i", [len(payload)]), sizes)
    everything = bytearray(sum(sizes))
    world.Allgatherv([payload, mpi.BYTE], [everything, sizes, mpi.BYTE])
    view = memoryview(everything)
    return [bytes(view[end - size : end]) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def end_with_parent() -> None:
    """Let the kernel end this process when the agent ends (prctl(2))."""
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def read(source: IO[bytes]) -> bytes | None:
    """One frame; None at the end."""
    head = source.read(LENGTH.size)
    return source.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


def write(sink: IO[bytes], *parts: bytes) -> None:
    """One frame for each part; the agent may have stopped listening, which is no reason to leave MPI without a goodbye."""
    try:
        for part in parts:
            sink.write(LENGTH.pack(len(part)))
            sink.write(part)
        sink.flush()
    except BrokenPipeError:
        pass


if __name__ == "__main__":
    main()
