"""The few system calls that Python does not offer: prctl(2) and signalfd(2)."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Iterable

from slaunch.frozen import dataclass

_libc = ctypes.CDLL(None, use_errno=True)

# <linux/prctl.h>
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

SFD_NONBLOCK, SFD_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
_SIGINFO_BYTES = 128  # sizeof(struct signalfd_siginfo), fixed by signalfd(2)
_SIGINFO_HEAD = struct.Struct("=IiiII")  # ssi_signo, ssi_errno, ssi_code, ssi_pid, ssi_uid


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel send a signal to this process when its parent ends; exit at once if that has happened already."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(1)


def become_subreaper(on: bool = True) -> None:
    """Make orphaned descendants children of this process, so that none of them escapes by a double fork."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def set_name(name: str) -> None:
    """The name that `ps` and `top` show for this process (15 bytes at most)."""
    _libc.prctl(PR_SET_NAME, name.encode()[:15] + b"\0", 0, 0, 0)


@dataclass(frozen=True)
class Arrived:
    """A signal that this process got. `pid` sent it (0: the kernel, or a process outside our pid namespace), as user `uid`."""

    number: int
    pid: int
    uid: int


def open_signalfd(numbers: Iterable[int]) -> int:
    """A descriptor that is readable when one of these signals, which must be blocked, is pending."""
    mask = (ctypes.c_ulong * 16)()  # sigset_t is 1024 bits
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    for number in numbers:
        mask[(number - 1) // bits] |= 1 << ((number - 1) % bits)
    return _check(_libc.signalfd(-1, ctypes.byref(mask), SFD_NONBLOCK | SFD_CLOEXEC), "signalfd")


def read_signalfd(descriptor: int) -> list[Arrived]:
    """All signals that are pending on the descriptor, in the kernel's order."""
    arrived: list[Arrived] = []
    while True:
        try:
            data = os.read(descriptor, 32 * _SIGINFO_BYTES)
        except BlockingIOError:
            return arrived
        for start in range(0, len(data), _SIGINFO_BYTES):
            number, _, _, pid, uid = _SIGINFO_HEAD.unpack_from(data, start)
            arrived.append(Arrived(number, pid, uid))
