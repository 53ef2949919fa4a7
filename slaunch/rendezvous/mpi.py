"""Meeting by MPI: an allgather in a short-lived child (see `mpi_child`), so that this process never becomes an MPI process."""

from __future__ import annotations

import os
import select
import signal
import struct
import time
import zlib
from collections.abc import Iterator, Mapping

from slaunch.channel.star import Star
from slaunch.rendezvous.gatherer import Ground, UnusableError
from slaunch.rendezvous.mpi_child import become

LENGTH = struct.Struct(">I")
CHUNK = 1 << 20
NOISE_BYTES, LINES = 4000, 20
"""So much of the child's last words is shown in an error."""
END_S = 5.0
"""Time for MPI_Finalize; after it the child is ended."""
VOID = b""
"""The part of a task that has given MPI up; a real one is never empty."""
QUICK = {"UCX_MEM_MMAP_HOOK_MODE": "none"}
"""For the child, unless the user has set it: else UCX patches the C library to see memory being given back, which takes 20 ms."""
LOOK_S = 0.002
"""Pause between two looks whether it has ended."""


def meet_by_mpi(ground: Ground, deadline: float) -> MpiGatherer:
    """Start the child, and check that its MPI world is the launcher's set of tasks.

    Raises:
        UnusableError: MPI does not start here, or not as one world.
    """
    child = Child(ground.env, 0 if ground.fallback else int(deadline - time.monotonic()) + 2)
    slot = ground.task.slot
    try:
        size, _, description = child.read(deadline).decode("utf-8", "replace").partition(" ")
        if int(size) == slot.size:
            return MpiGatherer(child, slot.rank, slot.size, ground.fallback)
        child.end()
        raise UnusableError(
            f"its world has {count(int(size), 'process')}, but {count(slot.size, 'task')} were started"
            f" ({library(description)} does not understand the launcher's process manager)"
        )
    except UnusableError:
        child.give_up(ground.fallback)
        raise
    except BaseException:
        child.kill()
        raise


class MpiGatherer:
    """Allgather by the child's MPI world.

    Args:
        child: the process in that world.
        rank, size: this task's place, by the launcher's numbers.
        fallback: whether another way follows if this one fails.
    """

    secret = b""
    lasts = False

    def __init__(self, child: Child, rank: int, size: int, fallback: bool) -> None:
        self._child: Child | None = child
        self.rank, self.size = rank, size
        self._fallback = fallback

    def allgather(self, payload: bytes, deadline: float) -> list[bytes]:
        """Everybody's payload, in the order of the launcher's ranks, which MPI's need not be.

        Raises:
            UnusableError: not everybody's has come in time, or MPI has failed.
        """
        assert self._child
        try:
            return self._ordered(self._exchange(self._child, payload, deadline))
        except UnusableError:
            self._child.give_up(self._fallback)
            self._child = None
            raise

    def _exchange(self, child: Child, payload: bytes, deadline: float) -> list[bytes]:
        child.write(LENGTH.pack(self.rank) + zlib.compress(payload, 1), deadline)
        return [child.read(deadline) for _ in range(self.size)]

    def _ordered(self, parts: list[bytes]) -> list[bytes]:
        if VOID in parts:
            raise UnusableError("another task has given MPI up")
        by_rank = {LENGTH.unpack_from(part)[0]: part for part in parts}
        if len(by_rank) != self.size:
            raise UnusableError(f"two of its processes have the same rank: {sorted(by_rank)}")
        return [zlib.decompress(by_rank[rank][LENGTH.size :]) for rank in range(self.size)]

    def star(self) -> Star | None:
        """MPI is no channel."""
        return None

    def close(self) -> None:
        """Let the child finalize MPI and end."""
        child, self._child = self._child, None
        if child:
            child.end()


class Child:
    """The child process, its pipes, and its last words.

    Args:
        env: its environment.
        seconds: it ends itself after so long, even inside MPI; 0 = never (but with its parent).
    """

    def __init__(self, env: Mapping[str, str], seconds: int) -> None:
        child_in, self._to = os.pipe()
        self._from, child_out = os.pipe()
        self._noise = os.memfd_create("mpi-stderr")
        self._pid = os.fork()
        if self._pid == 0:
            become((child_in, child_out, self._noise), {**QUICK, **env}, seconds)
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
        self._wait_for_end()
        self.kill()

    def _wait_for_end(self) -> None:
        end = time.monotonic() + END_S
        while not self._reap(os.WNOHANG) and time.monotonic() < end:
            time.sleep(LOOK_S)

    def give_up(self, fallback: bool) -> None:
        """Have no more to do with it.

        Where another way of meeting follows, it must not be killed: Slurm's PMIx plug-in ends the whole step when a process
        vanishes that has not said goodbye. So it is left alone: if its MPI comes to life later, it gives the other tasks'
        allgather a void part, by which they know that this task is gone, says goodbye and ends; else it ends with this process.
        """
        if fallback and not self._reap(os.WNOHANG):
            try:
                self.write(VOID, time.monotonic())
            except UnusableError:  # it does not read: there is nothing to be said to it
                pass
            self._close()
        else:
            self.kill()

    def kill(self) -> None:
        """End it now, and leave nothing behind. Calling it again does nothing."""
        if not self._reap(os.WNOHANG):
            os.kill(self._pid, signal.SIGKILL)
            self._reap(0)
        self._close()

    def _close(self) -> None:
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
        self._wait_for_end()
        code = self._status or 0
        fate = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return UnusableError(f"the process that called MPI_Init {fate}{self._words()}")

    def _words(self) -> str:
        size = os.fstat(self._noise).st_size
        words = os.pread(self._noise, NOISE_BYTES, max(0, size - NOISE_BYTES)).decode("utf-8", "replace").strip()
        return "; it said:\n" + "\n".join(f"        {line}" for line in words.splitlines()[-LINES:]) if words else ""


def library(description: str) -> str:
    """Name and version of an MPI library, from the first words of its own description."""
    first = description.splitlines()[0]
    return " ".join(first.replace(",", " ").replace("Version:", "").split()[:3])


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"
