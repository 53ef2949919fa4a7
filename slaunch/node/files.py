"""Small text files of the kernel, read with as few system calls as possible."""

from __future__ import annotations

import os

from slaunch.errors import SlaunchError
from slaunch.node.values import Problem

LIMIT_BYTES = 65536


def read_text(path: str) -> str:
    """Content of a small file, stripped; "" if it is not there or its driver refuses to answer."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, LIMIT_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(fd)


def read_int(path: str, missing: int) -> int:
    """Content of a file that holds one number; `missing` if it does not."""
    try:
        return int(read_text(path))
    except ValueError:
        return missing


def names(path: str) -> tuple[str, ...]:
    """Names in a directory, sorted; () if it is not there."""
    try:
        return tuple(sorted(os.listdir(path)))
    except OSError:
        return ()


def problem(error: SlaunchError) -> Problem:
    """An error as data."""
    return Problem(error.exit_code, error.wanted, error.seen, error.todo)
