"""The short-lived process that is an MPI process in the agent's place; the only module that imports mpi4py.

It writes a greeting (the size of its world, and how the MPI library describes itself), then answers each frame on its input with
the frames of all ranks, until the input ends. A frame is a 4-byte length and as many bytes. The agent itself thus never holds MPI
state: it may fork, and no MPI abort can end it.

It is a fork of the agent, before MPI is in it: every node waits for this process, and a new interpreter would take as long as
loading the MPI library does. Of the agent it keeps what a program executed by it would get: its environment, and descriptors that
are inheritable (PMI_FD is).
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from array import array
from collections.abc import Mapping
from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, NoReturn

LENGTH = struct.Struct(">I")


def become(files: tuple[int, int, int], env: Mapping[str, str], seconds: int) -> NoReturn:
    """In the fork: serve the agent until it closes our input, and end.

    Args:
        files: descriptors for input, output, and whatever is said beside.
        env: the environment.
        seconds: it ends itself after so long, even inside MPI; 0 = never.
    """
    import ctypes

    libc, code = ctypes.CDLL(None), 1
    try:
        signal.alarm(seconds)
        end_with_parent(libc)
        plug(files)
        os.environ.clear()
        os.environ.update(env)
        serve()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:  # nothing of the agent must run on; by exit(3), for which MPICH has registered its goodbye to the process manager
        libc.exit(code)
        os._exit(code)


def serve() -> None:
    """Be an MPI process until our input ends."""
    source, sink = os.fdopen(0, "rb", closefd=False), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get among the frames

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


def end_with_parent(libc: Any) -> None:
    """Let the kernel end this process when the agent ends (prctl(2)), and show what it is."""
    pr_set_pdeathsig, pr_set_name = 1, 15
    libc.prctl(pr_set_pdeathsig, signal.SIGKILL)
    libc.prctl(pr_set_name, b"slaunch-mpi")


def plug(files: tuple[int, int, int]) -> None:
    """Make these our standard files, and close what a program that the agent executes would not get."""
    for number, handle in enumerate(files):
        os.dup2(handle, number)
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.get_inheritable(int(name)):
                os.close(int(name))
        except OSError:  # the listing's own
            pass


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
