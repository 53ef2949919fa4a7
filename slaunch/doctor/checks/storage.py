"""Folders that jobs write to: /tmp (and $TMPDIR), /dev/shm, the working directory and further scratch.

Each is a check of its own, since a file system that hangs must not hide the others. Facts: `folders`, a list of `path`, `kind`
(of file system), `total`, `free` (bytes for this user), `inodes` (free ones; -1 = it does not count them), `error`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from slaunch.doctor.values import ERROR, WARNING, Check, Facts, Finding, Request, Trait
from slaunch.report.style import size

FULL_BYTES = 64 << 20
LOW_BYTES = 1 << 30
FEW_INODES = 1000
USES = {
    "tmp": "temporary files of PyTorch, compilers and MPI fail, often without a word about the disk",
    "shm": "data loaders and collective libraries exchange data there: workers die with a bus error (SIGBUS)",
    "scratch": "logs, checkpoints and data are written there",
}
TODOS = {
    "tmp": "remove what is old there (see `du -xs /tmp/*`), or set TMPDIR to another folder",
    "shm": "remove what is old there (`ls -la /dev/shm`); in a container, make it larger (--shm-size, --ipc=host)",
    "scratch": "remove what is old, or choose another folder; see your quota",
}


def tmp(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """The places of temporary files."""
    return folders(dict.fromkeys(["/tmp", *filter(None, [env.get("TMPDIR", "").rstrip("/")])]))  # noqa: S108 - to look at


def shm(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """The place of shared memory."""
    return folders(["/dev/shm"])  # noqa: S108 - to look at


def scratch(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """The working directory, and what the user and the site call scratch."""
    return folders(dict.fromkeys([os.getcwd(), *filter(None, [env.get("SCRATCH", "")]), *request.scratch]))


def folders(paths: Any) -> dict[str, Any]:
    """Look at each of these."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:  # hundreds of lines on some machines
        mounts = read_mounts(file.read())
    return {"folders": [folder(path, mounts) for path in paths]}


def read_mounts(text: str) -> dict[str, str]:
    """Kind of file system by its device's number ("8:1") and by mount point (proc_pid_mountinfo(5)).

    The order of the lines does not tell which of several mounts on one point is seen; the number does.
    """
    mounts = {}
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        _, _, device, _, point = left.split()[:5]
        mounts[device] = mounts[point.replace("\\040", " ")] = right.split()[0]
    return mounts


def folder(path: str, mounts: Mapping[str, str]) -> dict[str, Any]:
    """Room in a folder, and whether a small file can be written."""
    try:
        room, number = os.statvfs(path), os.stat(path).st_dev
    except OSError as error:
        return {"path": path, "kind": "", "total": 0, "free": 0, "inodes": -1, "error": error.strerror}
    return {
        "path": path,
        "kind": kind_of(os.path.realpath(path), f"{os.major(number)}:{os.minor(number)}", mounts),
        "total": room.f_blocks * room.f_frsize,
        "free": room.f_bavail * room.f_frsize,
        "inodes": room.f_favail if room.f_files else -1,
        "error": try_to_write(path),
    }


def kind_of(path: str, device: str, mounts: Mapping[str, str]) -> str:
    """Kind of the file system that a path is on; some, such as btrfs, show other numbers than they are mounted with."""
    while device not in mounts and path not in mounts and path != "/":
        path = os.path.dirname(path)
    return mounts.get(device) or mounts.get(path, "")


def try_to_write(path: str) -> str:
    """Write 64 KiB, and remove them; what kept it from that, "" if nothing did."""
    name = os.path.join(path, f".slaunch-doctor-{os.uname().nodename}-{os.getpid()}")
    try:
        with open(name, "xb") as file:
            try:
                file.write(bytes(1 << 16))
                file.flush()
            finally:
                os.unlink(name)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def judge(name: str) -> Callable[[Facts, Facts], list[Finding]]:
    """The judgement of a check of this name."""
    return lambda facts, site: [found for each in facts["folders"] if (found := fault(name, each))]


def fault(name: str, each: Facts) -> Finding | None:
    """What is wrong with a folder."""
    on = f" on {each['kind']}" if each["kind"] else ""
    where = f"{each['path']}{on}: {size(each['free'])} of {size(each['total'])} free"
    if each["error"]:
        return Finding(name, ERROR, f"{where}; cannot write: {each['error'].lower()}", USES[name], TODOS[name])
    if 0 <= each["inodes"] < FEW_INODES:
        return Finding(name, ERROR, f"{where}, but only {each['inodes']} more files", USES[name], TODOS[name])
    if each["free"] < FULL_BYTES:
        return Finding(name, ERROR, where, USES[name], TODOS[name])
    if each["free"] < LOW_BYTES:
        return Finding(name, WARNING, where, USES[name], TODOS[name])
    return None


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes: not the room, but what kind of place it is."""
    return [Trait(f"the file system of {each['path']}", each["kind"] or "none") for each in facts["folders"]]


DIFFERS = ("a folder that should be shared, or local, is not so on that node: a mount is missing", "tell the administrator")
CHECKS = (
    Check("tmp", tmp, judge("tmp"), traits, DIFFERS, asks="the file system of /tmp"),
    Check("shm", shm, judge("shm"), traits, DIFFERS, asks="the file system of /dev/shm"),
    Check("scratch", scratch, judge("scratch"), traits, DIFFERS, asks="the file system of the working directory or of scratch"),
)
