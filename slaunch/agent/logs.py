"""The workers' log files."""

from __future__ import annotations

import errno
import os
import time

from slaunch.errors import OutputError

TAIL_BYTES = 16384
TAIL_LINES = 20
LINE_CHARS = 500


def prepare(directory: str) -> None:
    """Make the directory of the logs if needed.

    Raises:
        OutputError: if it cannot be made, or its disk is full: the workers would run, and leave no trace.
    """
    try:
        os.makedirs(directory, exist_ok=True)
        if os.statvfs(directory).f_bavail == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise _output_error(directory, error) from None


def open_log(directory: str, name: str, overwrite: bool, attempt: int) -> tuple[int, str, int]:
    """Open a worker's log file: file descriptor, path, and where this run's output starts.

    Raises:
        OutputError: if it cannot be written.
    """
    path = os.path.join(directory, name)
    if "/" in name:
        prepare(os.path.dirname(path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if overwrite else 0)
    try:
        log = os.open(path, flags, 0o644)
    except OSError as error:
        raise _output_error(path, error) from None
    try:
        return log, path, _mark_start(log, attempt)
    except OSError as error:
        os.close(log)
        raise _output_error(path, error) from None


def _mark_start(log: int, attempt: int) -> int:
    """In a file that has output already, a line that parts old from new."""
    size = os.fstat(log).st_size
    if size:
        at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        size += os.write(log, f"---- slaunch: attempt {attempt}, {at} ----\n".encode())
    return size


def _output_error(path: str, error: OSError) -> OutputError:
    return OutputError(
        "write the workers' output", f"{path}: {error.strerror}", "choose another place with --log_dir, or make this one writable"
    )


def _end_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return file.read(TAIL_BYTES)
    except OSError:
        return b""


def tail(path: str, start: int) -> tuple[str, ...]:
    """The last lines of a log file, none from before `start`; of a progress bar its last state. () if it cannot be read.

    A file that has just been rotated begins with those of the one before.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(start if start <= size else 0, size - TAIL_BYTES))
            data = file.read(TAIL_BYTES)
        if start > size:
            data = _end_of(f"{path}.1") + data
    except OSError:
        return ()
    lines = data.decode(errors="replace").replace("\r\n", "\n").split("\n")
    shown = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines]
    while shown and not shown[-1]:
        shown.pop()
    return tuple(line[:LINE_CHARS] for line in shown[-TAIL_LINES:])
