"""One worker's process: how it is started."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from slaunch.agent.linux import die_with_parent
from slaunch.node.mempolicy import set_policy
from slaunch.plan.values import WorkerSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MARK = "SLAUNCH_MARK"
"""Variable with a number of this agent alone: by it the guardian knows what stems from this agent's workers."""

CANNOT_EXECUTE, NOT_FOUND = 126, 127  # as the shell does


def worker_env(spec: WorkerSpec, base_env: Mapping[str, str], mark: str) -> dict[str, str]:
    """The environment of a worker."""
    env = dict(base_env)
    for name in spec.drop_env:
        env.pop(name, None)
    env.update(spec.set_env)
    env[MARK] = mark
    return env


def start(spec: WorkerSpec, env: Mapping[str, str], out: int, err: int) -> int:
    """Start a worker in a session of its own, its output and errors going straight to these descriptors; its process id.

    A program that cannot be executed ends like any failing worker: the reason is in its log, its exit code is 126 or 127.
    """
    agent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(spec, env, (out, err), agent)
    return pid


def _become(spec: WorkerSpec, env: Mapping[str, str], outlet: tuple[int, int], agent: int) -> NoReturn:
    """In the child: set everything up and execute the program. Nothing of the agent must run on, hence `os._exit`."""
    code = CANNOT_EXECUTE
    try:
        os.setsid()
        die_with_parent(agent)
        _plug(*outlet)
        _reset_signals()
        if spec.cpus:
            os.sched_setaffinity(0, spec.cpus)
        if spec.memory:
            set_policy(spec.memory_policy, spec.memory)
        os.execvpe(spec.argv[0], spec.argv, env)
    except FileNotFoundError:
        code = NOT_FOUND
        _complain(f"cannot start {spec.argv[0]}: not found")
    except BaseException as error:
        _complain(f"cannot start {spec.argv[0]}: {error}")
    finally:
        os._exit(code)


def _plug(out: int, err: int) -> None:
    """Standard input is empty; output and errors go to the log. Descriptors 0 to 2 are the agent's, so neither is one of them."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)


def _reset_signals() -> None:
    """Undo what Python ignores and what the agent blocks, as both would be inherited; and let no handler of the agent's take a
    signal that was meant for the program and arrives before it runs."""
    for number in signal.valid_signals():
        handled = signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN, None)
        if handled or number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _complain(text: str) -> None:
    os.write(2, f"slaunch: {text}\n".encode(errors="replace"))
