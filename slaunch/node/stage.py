"""Copies on this node's own disk for one job: made before the workers start, removed when they have ended.

Everything of a job is in one folder that only its user may enter, apart from copies whose place the user fixes; the folder's list
names those. Whoever holds the lock on that list is at work: folders of jobs whose agents were killed are found by their free
lock, and removed before the next copy is made.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Sequence

from slaunch.errors import OutputError

LIST = ".slaunch-staged"
PREFIX = "slaunch-stage-"


class Place:
    """This node's folder for a job's copies. Use it as a context manager: it is removed in the end.

    Args:
        folder: the folder, absolute.
        targets: where copies will be; those outside of the folder must not be there yet.

    Raises:
        OutputError: it cannot be made, or a target is there already.
    """

    def __init__(self, folder: str, targets: Sequence[str]) -> None:
        self.folder = folder
        self._outside = tuple(target for target in targets if not target.startswith(folder + os.sep))
        remove_stale(os.path.dirname(folder))
        there = next(filter(os.path.lexists, (folder, *self._outside)), "")
        if there:
            seen = f"{there} on {os.uname().nodename} is there already"
            raise OutputError("make a copy on this node", seen, "remove it there, or choose another place: --stage SRC:DST")
        try:
            os.makedirs(folder, mode=0o700)
            self._lock = os.open(os.path.join(folder, LIST), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._lock, "\n".join(self._outside).encode())
        except OSError as error:
            todo = "choose a local disk with room: --stage-to DIR"
            raise OutputError("make a folder for copies", f"{folder}: {error.strerror}", todo) from None

    def rename(self, folder: str) -> None:
        """Give the folder the name that workers look for.

        Raises:
            OutputError: there is such a folder already.
        """
        try:
            os.rename(self.folder, folder)
        except OSError as error:
            raise OutputError(f"name a folder for copies {folder}", str(error), "remove that one on this node") from None
        self.folder = folder

    def close(self) -> None:
        """Remove all copies."""
        remove((*self._outside, self.folder))
        os.close(self._lock)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def remove_stale(base: str) -> None:
    """Remove this user's folders, and what their lists name, whose agents are gone."""
    try:
        names = [name for name in os.listdir(base) if name.startswith(f"{PREFIX}{os.getuid()}-")]
    except OSError:
        return
    for name in names:
        path = os.path.join(base, name)
        try:
            lock = os.open(os.path.join(path, LIST), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # none of ours, or just being made or removed
            continue
        try:
            if os.fstat(lock).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                outside = os.read(lock, 1 << 16).decode(errors="replace").splitlines()
                remove((*outside, path))
        except BlockingIOError:  # its agent is at work
            pass
        finally:
            os.close(lock)


def remove(paths: Iterable[str]) -> None:
    """Remove files and folders, as far as that is possible."""
    from shutil import rmtree

    for path in paths:
        try:
            os.unlink(path)
        except IsADirectoryError:
            rmtree(path, ignore_errors=True)
        except OSError:
            pass


def pack(source: str, archive: str, end: float) -> None:
    """Put the content of a folder into an archive.

    Raises:
        OutputError: it does not work, or not until `end` (`time.monotonic()`).
    """
    run(("tar", "--create", f"--file={archive}", f"--directory={source}", "."), end)


def unpack(archive: str, target: str, end: float) -> None:
    """Put what is in an archive into a new folder.

    Raises:
        OutputError: it does not work, or not in time.
    """
    make(target)
    run(("tar", "--extract", f"--file={archive}", f"--directory={target}", "--no-same-owner"), end)


def copy(source: str, target: str, end: float) -> None:
    """Copy a file, or a folder with all that is in it.

    Raises:
        OutputError: it does not work, or not in time.
    """
    make(os.path.dirname(target))
    run(("cp", "--recursive", "--preserve=mode,timestamps,links", "--no-target-directory", source, target), end)


def move(source: str, target: str) -> None:
    """Give a file that is on this node its name and place.

    Raises:
        OutputError: it does not work.
    """
    import shutil

    make(os.path.dirname(target))
    try:
        shutil.move(source, target)
    except OSError as error:
        raise OutputError(f"put a copy to {target}", str(error), "choose another place: --stage SRC:DST") from None


def make(folder: str) -> None:
    """Make a folder and those above it."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise OutputError("make a folder for copies", f"{folder}: {error.strerror}", "choose another: --stage SRC:DST") from None


def run(command: Sequence[str], end: float) -> None:
    """Run a command that makes a copy.

    Raises:
        OutputError: it failed, or is not done in time.
    """
    import subprocess

    wanted, left_s = f"run `{' '.join(command)}`", max(end - time.monotonic(), 0.01)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=left_s, check=False)
    except FileNotFoundError:
        raise OutputError(wanted, f"no program {command[0]} on PATH", "install it on the nodes") from None
    except subprocess.TimeoutExpired:
        raise OutputError(wanted, "not done in time", "give more: --stage-timeout SECONDS") from None
    if done.returncode:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise OutputError(wanted, said, "see whether source and disk are as they should be")


def size_bytes(path: str) -> int:
    """Size of a file; of a folder and what is not there, -1."""
    try:
        return os.stat(path).st_size if os.path.isfile(path) else -1
    except OSError:
        return -1
