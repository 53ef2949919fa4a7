"""Memory policies: of which NUMA nodes a process gets its memory. set_mempolicy(2), get_mempolicy(2), `numa_maps` of proc(5).

A process hands its policy on to the program that it executes and to its children. Containers often forbid the calls (Docker's
seccomp filter does without CAP_SYS_NICE).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable

from slaunch.frozen import dataclass
from slaunch.node.cpulist import parse, render
from slaunch.node.files import read_text

WORDS = ("default", "prefer", "bind", "interleave", "local", "prefer (many)", "weighted interleave")
"""The kernel's words for policies, by their numbers in <linux/mempolicy.h>."""
MODES = {"preferred": 1, "bind": 2}

CALLS = {"x86_64": (238, 239), "aarch64": (237, 236), "riscv64": (237, 236), "ppc64le": (261, 260), "s390x": (270, 269)}
"""Numbers of set_mempolicy and get_mempolicy by machine, from the kernel's system call tables."""
REFUSED = "refused"

_libc = ctypes.CDLL(None, use_errno=True)
_LONG_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


@dataclass(frozen=True)
class MemoryFacts:
    """Memory of this task.

    Attributes:
        nodes: NUMA nodes with memory that the task may use, ascending.
        policy: the policy that the task has been started with: one of `WORDS`; `REFUSED` where the kernel gives no answer.
    """

    nodes: tuple[int, ...]
    policy: str


def read_memory(root: str = "/") -> MemoryFacts:
    """Memory of this task on this machine; where it has one NUMA node, the kernel is not asked for the policy."""
    base = root.rstrip("/")
    nodes = parse(read_text(f"{base}/sys/devices/system/node/has_memory"))
    status = read_text(f"{base}/proc/self/status").partition("Mems_allowed_list:")[2].split()
    allowed = parse(status[0]) if status else nodes
    usable = tuple(node for node in nodes if node in allowed)
    return MemoryFacts(usable, own_policy() if len(nodes) > 1 else WORDS[0])


def set_policy(policy: str, nodes: Iterable[int]) -> None:
    """Give this process a policy: "preferred" (of the one node as long as it has room) or "bind" (of these nodes only).

    Raises:
        OSError: the kernel refuses "bind". A mere preference that it refuses is left out.
    """
    try:
        _set(MODES[policy], tuple(nodes))
    except OSError:
        if policy == "bind":
            raise


def own_policy() -> str:
    """The kernel's word for this process's policy; `REFUSED` if it gives none."""
    mode = ctypes.c_int()
    try:
        _call(1, ctypes.byref(mode), None, ctypes.c_ulong(0), None, ctypes.c_ulong(0))
    except OSError:
        return REFUSED
    return WORDS[mode.value & 0xFF] if mode.value & 0xFF < len(WORDS) else f"policy {mode.value}"


def policy_of(pid: int, root: str = "/") -> str:
    """The policy of another process, as `told` writes it; "" if the system does not say, or the process has ended.

    One line is enough: it is of the program's own text, which has no policy apart from the process's. Each line costs the kernel
    a walk over that mapping's pages, so that a read of the whole file could stop a large process for seconds.
    """
    try:
        file = os.open(f"{root.rstrip('/')}/proc/{pid}/numa_maps", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        words = os.read(file, 64).decode(errors="replace").split()
    except OSError:
        return ""
    finally:
        os.close(file)
    return words[1] if len(words) > 1 else ""


def told(policy: str, nodes: Iterable[int]) -> str:
    """A policy as the kernel writes it in `numa_maps`, e.g. "prefer:1"."""
    return f"{WORDS[MODES[policy]]}:{render(nodes)}"


def _set(mode: int, nodes: tuple[int, ...]) -> None:
    words = (max(nodes) // _LONG_BITS + 1) if nodes else 1
    mask = (ctypes.c_ulong * words)()
    for node in nodes:
        mask[node // _LONG_BITS] |= 1 << (node % _LONG_BITS)
    # the kernel reads one bit less than it is told
    _call(0, ctypes.c_int(mode), ctypes.byref(mask), ctypes.c_ulong(words * _LONG_BITS + 1))


def _call(which: int, *args: object) -> None:
    numbers = CALLS.get(os.uname().machine)
    if numbers is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if _libc.syscall(ctypes.c_long(numbers[which]), *args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{'get' if which else 'set'}_mempolicy: {os.strerror(number)}")
