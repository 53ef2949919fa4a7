"""Checks before a start what would otherwise fail on every worker: the program and the place for its output."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping

from slaunch.errors import OutputError, ScriptError, ScriptMissingError
from slaunch.hashing import sha256
from slaunch.node.files import problem
from slaunch.node.values import Problem
from slaunch.options import Program

HASHED_BYTES = 1 << 20
FILES = ("script", "python", "executable")
"""Kinds of program that are files."""
PYTHON = (".py", ".pyxes")
"""Endings of scripts that the interpreter runs."""


def check_program(program: Program, env: Mapping[str, str]) -> tuple[Problem, ...]:
    """Whether the program is there and can run: 127 if it is missing, 126 if it cannot be executed."""
    if program.kind == "module":
        return check_module(program.target, env)
    return check_file(program.target, env, program.kind) if program.kind in FILES else ()


def check_file(target: str, env: Mapping[str, str], kind: str) -> tuple[Problem, ...]:
    """A path, or the bare name of a program on PATH."""
    path = script_path(target, env)
    if not path:
        where = f", nor on PATH={env.get('PATH', '')}" if os.sep not in target else ""
        seen = f"no such file, seen from {os.getcwd()}{where}"
        return (problem(ScriptMissingError(f"run {target}", seen, "check the path, and that every node sees it")),)
    if os.path.isdir(path) and kind != "executable":
        main = os.path.isfile(os.path.join(path, "__main__.py"))
        return () if main else not_executable(target, "it is a directory", "name the script in it")
    by_python = kind == "python" or (kind == "script" and path.endswith(PYTHON))
    if not os.access(path, os.R_OK if by_python else os.X_OK):
        return not_executable(target, f"{path} may not be {'read' if by_python else 'executed'}", f"chmod a+rx {path}")
    return ()


def not_executable(target: str, seen: str, todo: str) -> tuple[Problem, ...]:
    """The program is there, but cannot run."""
    return (problem(ScriptError(f"run {target}", seen, todo)),)


def script_path(target: str, env: Mapping[str, str]) -> str:
    """The file that `target` names: itself, or (a name without a slash) the first match on PATH; "" if there is none."""
    if os.path.exists(target):
        return target
    if os.sep in target:
        return ""
    candidates = (os.path.join(folder or ".", target) for folder in env.get("PATH", os.defpath).split(os.pathsep))
    return next((path for path in candidates if os.path.isfile(path)), "")


def check_module(name: str, env: Mapping[str, str]) -> tuple[Problem, ...]:
    """A module for `python -m`. Only its outermost package is looked for: its parents are not imported."""
    from importlib.machinery import PathFinder

    top = name.partition(".")[0]
    folders = [os.getcwd(), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep)), *sys.path]
    if PathFinder.find_spec(top, folders) or any(finder.find_spec(top, None) for finder in sys.meta_path):
        return ()  # the second is for packages installed as "editable", which have finders of their own
    seen = f"no module or package {top!r} in {':'.join(folders)}"
    return (problem(ScriptMissingError(f"run the module {name}", seen, "check the name, the environment and PYTHONPATH")),)


def check_log_dir(path: str) -> tuple[Problem, ...]:
    """Create the directory if needed and try to write a small file into it."""
    trial = os.path.join(path, f".slaunch-{os.uname().nodename}-{os.getpid()}")
    try:
        os.makedirs(path, exist_ok=True)
        with open(trial, "wb") as file:
            file.write(bytes(4096))
        os.unlink(trial)
    except OSError as error:
        remove(trial)
        return (problem(output_error(path, error)),)
    return ()


def remove(path: str) -> None:
    """Remove a file if it is there."""
    try:
        os.unlink(path)
    except OSError:
        pass


def output_error(path: str, error: OSError) -> OutputError:
    """The error of a log directory, with what to do about its cause."""
    todo = {
        errno.ENOSPC: "make room, or choose another place with --log_dir",
        errno.EDQUOT: "your quota is used up: make room, or choose another place with --log_dir",
        errno.EROFS: "it is read-only here: choose another place with --log_dir",
        errno.EACCES: "you may not write there: choose another place with --log_dir",
    }.get(error.errno or 0, "choose another place with --log_dir")
    name = errno.errorcode.get(error.errno or 0, "")
    seen = f"{error.strerror} ({name}) at {error.filename or path}"
    return OutputError(f"write logs to {path}", seen, todo)


def digest(program: Program, env: Mapping[str, str], salt: str) -> str:
    """Short hash of the program's first megabyte, its size and arguments, and `salt`: equal on all nodes of a healthy job."""
    hashed = sha256(repr((program, salt)).encode())
    path = script_path(program.target, env) if program.kind in FILES else ""
    if path and os.path.isfile(path):
        try:
            with open(path, "rb") as file:
                hashed.update(file.read(HASHED_BYTES))
                hashed.update(str(os.fstat(file.fileno()).st_size).encode())
        except OSError:  # an unreadable program is a problem of its own
            pass
    return hashed.hexdigest()[:16]
