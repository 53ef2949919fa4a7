"""Meeting by MPI: an allgather in a short-lived child (see `mpi_child`), so that this process never becomes an MPI process."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import time
import zlib
from collections.abc import Iterator, Mapping

from slaunch.channel.star import Star
from slaunch.rendezvous.gatherer import Ground, UnusableError

LENGTH = struct.Struct(">I")
CHUNK = 1 << 20
NOISE_BYTES, LINES = 4000, 20
"""So much of the child's last words is shown in an error."""
END_S = 5.0
"""Time for MPI_Finalize; after it the child is ended."""
LOOK_S = 0.002
"""Pause between two looks whether it has ended."""


def meet_by_mpi(ground: Ground, deadline: float) -> MpiGatherer:
    """Start the child, and check that its MPI world is the launcher's set of tasks.

    Raises:
        UnusableError: MPI does not start here, or not as one world.
    """
    child = Child(ground.env, deadline)
    try:
        greeting = json.loads(child.read(deadline))
        slot = ground.task.slot
        if greeting["size"] != slot.size:
            raise UnusableError(
                f"its world has {count(greeting['size'], 'process')}, but {count(slot.size, 'task')} were started"
                f" ({library(greeting)} does not understand the launcher's process manager)"
            )
        return MpiGatherer(child, slot.rank, slot.size, library(greeting))
    except BaseException:
        child.kill()
        raise


class MpiGatherer:
    """Allgather by the child's MPI world.

    Attributes:
        library: name and version of the MPI library.
    """

    secret = b""

    def __init__(self, child: Child, rank: int, size: int, library: str) -> None:
        self.library = library
        self._child: Child | None = child
        self._rank, self._size = rank, size

    def allgather(self, payload: bytes, deadline: float) -> list[bytes]:
        """Everybody's payload, in the order of the launcher's ranks, which MPI's need not be.

        Raises:
            UnusableError: not everybody's has come in time, or MPI has failed.
        """
        assert self._child
        self._child.write(LENGTH.pack(self._rank) + zlib.compress(payload, 1), deadline)
        packed = [self._child.read(deadline) for _ in range(self._size)]
        parts = {LENGTH.unpack_from(part)[0]: part for part in packed}
        if len(parts) != self._size:
            raise UnusableError(f"two of its processes have the same rank: {sorted(parts)}")
        return [zlib.decompress(parts[rank][LENGTH.size :]) for rank in range(self._size)]

    def star(self) -> Star | None:
        """MPI is no channel."""
        return None

    def close(self) -> None:
        """Let the child finalize MPI and end."""
        child, self._child = self._child, None
        if child:
            child.end()


class Child:
    """The child process, its pipes, and its last words."""

    def __init__(self, env: Mapping[str, str], deadline: float) -> None:
        seconds = max(1, int(deadline - time.monotonic()) + 1)
        child_in, self._to = os.pipe()
        self._from, child_out = os.pipe()
        self._noise = os.memfd_create("mpi-stderr")
        argv = [sys.executable, "-m", "slaunch.rendezvous.mpi_child", str(seconds)]
        duplicate = os.POSIX_SPAWN_DUP2
        actions = [(duplicate, child_in, 0), (duplicate, child_out, 1), (duplicate, self._noise, 2)]
        # descriptors that the process manager gave us (PMI_FD) stay open in the child, because they are inheritable here as well
        self._pid = os.posix_spawn(sys.executable, argv, dict(env), file_actions=actions)
        self._status: int | None = None
        os.close(child_in)
        os.close(child_out)
        os.set_blocking(self._to, False)

    def read(self, deadline: float) -> bytes:
        """One frame from the child.

        Raises:
            UnusableError: it has ended, or nothing came in time.
        """
        length = LENGTH.unpack(b"".join(self._read(LENGTH.size, deadline)))[0]
        return b"".join(self._read(length, deadline))

    def _read(self, length: int, deadline: float) -> Iterator[bytes]:
        while length:
            self._wait_for(self._from, select.POLLIN, deadline)
            data = os.read(self._from, min(length, CHUNK))
            if not data:
                raise self._ended()
            length -= len(data)
            yield data

    def write(self, payload: bytes, deadline: float) -> None:
        """One frame to the child.

        Raises:
            UnusableError: it has ended, or does not read.
        """
        data = memoryview(LENGTH.pack(len(payload)) + payload)
        while data:
            self._wait_for(self._to, select.POLLOUT, deadline)
            try:
                data = data[os.write(self._to, data) :]
            except BrokenPipeError:
                raise self._ended() from None

    def _wait_for(self, handle: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(handle, event)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise UnusableError(f"MPI did not answer in time{self._words()}")

    def end(self) -> None:
        """Close its input and wait for its end, but not for long.

        Its whole end: MPICH says goodbye to the process manager only at exit, and Hydra takes a process without a goodbye for a
        crashed one and ends all the others.
        """
        os.close(self._to)
        self._to = -1
        end = time.monotonic() + END_S
        while not self._reap(os.WNOHANG) and time.monotonic() < end:
            time.sleep(LOOK_S)
        self.kill()

    def kill(self) -> None:
        """End it now, and leave nothing behind. Calling it again does nothing."""
        if not self._reap(os.WNOHANG):
            os.kill(self._pid, signal.SIGKILL)
            self._reap(0)
        for handle in (self._to, self._from, self._noise):
            if handle >= 0:
                os.close(handle)
        self._to = self._from = self._noise = -1

    def _reap(self, flags: int) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self._pid, flags)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is not None

    def _ended(self) -> UnusableError:
        self._reap(0)
        code = self._status or 0
        fate = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return UnusableError(f"the process that called MPI_Init {fate}{self._words()}")

    def _words(self) -> str:
        size = os.fstat(self._noise).st_size
        words = os.pread(self._noise, NOISE_BYTES, max(0, size - NOISE_BYTES)).decode("utf-8", "replace").strip()
        return "; it said:\n" + "\n".join(f"        {line}" for line in words.splitlines()[-LINES:]) if words else ""


def library(greeting: Mapping[str, str]) -> str:
    """Name and version of an MPI library, from the first words of its own description."""
    first = greeting["library"].splitlines()[0]
    return " ".join(first.replace(",", " ").replace("Version:", "").split()[:3])


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"
