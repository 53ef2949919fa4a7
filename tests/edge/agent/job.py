"""A job of real agents and workers on this machine, as tests handle it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "SLAUNCH_TEST_MARK"
PATIENCE_S = 30.0
FOREVER = ["sleep", "600"]


def python(code: str) -> list[str]:
    """A worker that runs this Python text."""
    return [sys.executable, "-u", "-c", code]


def shell(code: str) -> list[str]:
    """A worker that runs this shell text."""
    return ["/bin/sh", "-c", code]


def wait_for(what: Callable[[], Any], name: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait until `what()` is true and return it."""
    give_up = time.monotonic() + patience_s
    while not (seen := what()):
        assert time.monotonic() < give_up, f"{name}: not within {patience_s} s"
        time.sleep(0.01)
    return seen


def state_of(pid: int) -> str:
    """State letter of a process; "" if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Job:
    """Agents of one job, one for each list of commands; ended and checked for left-overs at the end of the `with` block.

    Args:
        folder: for logs and everything else.
        commands: for each node, the command of each of its workers.
        options: fields of `Options`.
        settings: further settings of `one_agent.py`; and `log_dir`, `env`, `stdout`, `failpoints` by node, or a command to `wrap`
            the agents in.
    """

    def __init__(self, folder: Any, commands: Sequence[Sequence[Sequence[str]]], **settings: Any) -> None:
        self.folder = str(folder)
        self.log_dir = settings.pop("log_dir", f"{self.folder}/logs")
        self.mark = f"{os.getpid()}-{os.urandom(6).hex()}"
        self.env = settings.pop("env", {})
        self.stdout = settings.pop("stdout", None)
        self.wrap = settings.pop("wrap", [])
        self.agents: list[subprocess.Popen[bytes]] = []
        self.failpoints = settings.pop("failpoints", {})
        common = {"commands": commands, "log_dir": self.log_dir, "port_file": f"{self.folder}/port", **settings}
        for index in range(len(commands)):
            self.agents.append(self._start({**common, "index": index, "report": f"{self.folder}/report.{index}"}))

    def _start(self, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
        index = settings["index"]
        path = f"{self.folder}/settings.{index}"
        with open(path, "w") as file:
            json.dump(settings, file)
        with open(f"{self.folder}/out.{index}", "wb") as out, open(f"{self.folder}/err.{index}", "wb") as err:
            return subprocess.Popen(
                [*self.wrap, sys.executable, f"{HERE}/one_agent.py", path],
                env={**os.environ, MARK: self.mark, "DROP_ME": "1", **self._failpoint(index), **self.env},
                stdin=subprocess.DEVNULL,
                stdout=self.stdout or out,
                stderr=err,
            )

    def _failpoint(self, index: int) -> dict[str, str]:
        point = self.failpoints.get(str(index))
        return {"SLAUNCH_FAILPOINTS": point} if point else {}

    def wait(self, patience_s: float = PATIENCE_S) -> list[int]:
        """Exit codes of all agents."""
        give_up = time.monotonic() + patience_s
        return [agent.wait(max(0.1, give_up - time.monotonic())) for agent in self.agents]

    def report(self, index: int = 0) -> dict[str, Any]:
        with open(f"{self.folder}/report.{index}") as file:
            found: dict[str, Any] = json.load(file)
            return found

    def text(self, name: str) -> str:
        """A file of the job's folder, "" if there is none yet."""
        try:
            with open(f"{self.folder}/{name}", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def log(self, rank: int) -> str:
        return self.text(f"logs/workerlog.{rank}")

    def started(self, *files: str) -> None:
        """Wait until workers have made these files in the job's folder."""
        for file in files:
            wait_for(lambda file=file: os.path.exists(f"{self.folder}/{file}"), f"file {file}")  # type: ignore[misc]

    def left(self) -> list[str]:
        """Living processes of the job, guardians included, in words."""
        mark = f"{MARK}={self.mark}".encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and state_of(int(name)) not in ("", "Z"):
                try:
                    with open(f"/proc/{name}/environ", "rb") as file:
                        environ = file.read()
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        command = file.read()
                except (FileNotFoundError, ProcessLookupError, PermissionError):
                    continue
                if mark in environ.split(b"\0"):
                    found.append(f"{name} {command!r}")
        return found

    def nothing_left(self, patience_s: float = 5.0) -> None:
        """Every process of the job is gone, or goes soon."""
        give_up = time.monotonic() + patience_s
        while left := self.left():
            assert time.monotonic() < give_up, f"left behind: {left}"
            time.sleep(0.02)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
        try:
            if error is None:
                self.nothing_left()
        finally:
            for line in self.left():
                os.kill(int(line.split()[0]), signal.SIGKILL)
