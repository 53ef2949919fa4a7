"""Runs looks in processes of their own, each with its deadline: one that hangs, crashes or prints harms nobody else."""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from slaunch.agent.linux import die_with_parent
from slaunch.doctor.values import Outcome
from slaunch.frozen import dataclass

Job = tuple[Callable[[], dict[str, Any]], float]
"""A look, and its limit in seconds."""
LAST_WORDS_S = 0.5
"""How long a killed look may take to go; one that waits inside the kernel stays, and is left behind."""


@dataclass(frozen=True)
class Running:
    """A look under way: its process, the descriptor that its answer comes from, and when it began and must have ended."""

    name: str
    pid: int
    answer: int
    begun: float
    deadline: float


def run_all(jobs: Mapping[str, Job], width: int = 0) -> dict[str, Outcome]:
    """What each look saw, by name; no longer than the limits of those that run one after the other.

    Args:
        jobs: the looks.
        width: how many run at the same time; 0 = as many as there are CPUs, and at least 4.
    """
    waiting = list(jobs.items())
    width = width or max(4, os.cpu_count() or 1)
    found: dict[str, Outcome] = {}
    parts: dict[str, list[bytes]] = {name: [] for name in jobs}
    with selectors.DefaultSelector() as ears:
        while waiting or ears.get_map():
            while waiting and len(ears.get_map()) < width:
                name, (look, limit_s) = waiting.pop(0)
                begun = start(name, look, limit_s)
                ears.register(begun.answer, selectors.EVENT_READ, begun)
            for each in hear(ears, parts):
                ears.unregister(each.answer)
                found[each.name] = finish(each, b"".join(parts[each.name]))
    return {name: found[name] for name in jobs}


def start(name: str, look: Callable[[], dict[str, Any]], limit_s: float) -> Running:
    """Begin a look."""
    answer, mouth = os.pipe()
    own, now = os.getpid(), time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(answer)
        speak(look, mouth, own)
    os.close(mouth)
    return Running(name, pid, answer, now, now + limit_s)


def speak(look: Callable[[], dict[str, Any]], mouth: int, parent: int) -> NoReturn:
    """In the child: look, and write down what was seen. Nothing of the parent must run on, hence `os._exit`."""
    try:
        os.setpgid(0, 0)
        die_with_parent(parent)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        told: dict[str, Any]
        try:
            told = {"facts": look()}
        except Exception as error:  # whatever happens is the result of the look
            told = {"fault": f"{type(error).__name__}: {error}"}
        text = json.dumps(told).encode()
        while text:
            text = text[os.write(mouth, text) :]
    finally:
        os._exit(0)


def hear(ears: selectors.DefaultSelector, parts: Mapping[str, list[bytes]]) -> list[Running]:
    """Take what has been written; those looks that have ended, or had to."""
    running: list[Running] = [key.data for key in ears.get_map().values()]
    patience = min(each.deadline for each in running) - time.monotonic()
    ended = []
    for key, _ in ears.select(max(0.0, patience)):
        data = os.read(key.fd, 1 << 16)
        parts[key.data.name].append(data)
        ended += [] if data else [key.data]
    now = time.monotonic()
    return ended + [each for each in running if each not in ended and now >= each.deadline]


def finish(each: Running, text: bytes) -> Outcome:
    """End a look with all that it started; what it saw."""
    os.close(each.answer)
    took_s = time.monotonic() - each.begun
    late = took_s >= each.deadline - each.begun
    try:
        os.killpg(each.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it has ended by itself, or not come so far
        pass
    number = reap(each.pid)
    try:
        told = json.loads(text)
        return Outcome(told.get("facts", {}), told.get("fault", ""), round(took_s, 3))
    except ValueError:
        limit = f"it did not end within {each.deadline - each.begun:g} s"
        crash = f"it was ended by signal {number}" if number else "it ended without a word"
        return Outcome({}, limit if late else crash, round(took_s, 3))


def reap(pid: int) -> int:
    """Wait for a process that is about to end; the signal that ended it, 0 if none did or it cannot be waited for."""
    until = time.monotonic() + LAST_WORDS_S
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if time.monotonic() > until:
            return 0
        time.sleep(0.005)
