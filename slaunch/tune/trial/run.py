"""Runs the command of one trial, with its deadlines, and leaves nothing of it behind.

Only processes that the tuner started itself are ever ended: the trial's own job step, by its id, and the process group of the
trial's own command.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable

from slaunch.agent.linux import die_with_parent
from slaunch.errors import MissingToolError
from slaunch.tune.measure.logs import has_logs
from slaunch.tune.trial.steps import ask_steps, end_steps
from slaunch.tune.trial.values import Ended, Order

POLL_S = 0.1
OUTPUT = "slaunch.out"
"""File in a trial's folder with what its own launcher said."""
KILL_S = 20.0
"""Beyond the grace: what slaunch may take to kill its workers and to tell so, and Slurm to end the step."""

Asked = Callable[[], bool]


def run_order(order: Order, asked: Asked, started: Callable[[int], None] = lambda pid: None) -> Ended:
    """Run a trial to its end.

    Args:
        order: what to run; its folder is there.
        asked: whether the tuner itself has been asked to stop.
        started: is told the process id of the trial's command.

    Raises:
        MissingToolError: the command cannot be found.
    """
    process = start(order)
    started(process.pid)
    try:
        return watch(order, process, asked)
    except BaseException:
        stop(order, process)
        raise


def start(order: Order) -> subprocess.Popen[bytes]:
    """Start the trial's command in a process group of its own; it is asked to stop when this process ends."""
    tuner = os.getpid()
    try:
        with open(os.path.join(order.folder, OUTPUT), "ab") as output:
            return subprocess.Popen(
                order.call.argv,
                env=dict(order.call.env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(tuner, signal.SIGTERM),  # noqa: PLW1509 - the tuner has no threads
            )
    except FileNotFoundError:
        seen = f"no program {order.call.argv[0]} on PATH"
        raise MissingToolError("start a trial", seen, "put the scheduler's tools there") from None


def watch(order: Order, process: subprocess.Popen[bytes], asked: Asked) -> Ended:
    """Wait for the end, or for the first of the deadlines."""
    began = time.monotonic()
    first_log = 0.0
    while True:
        code = wait(process, POLL_S)
        now = time.monotonic()
        if not first_log and has_logs(order.folder):
            first_log = now
        if code is not None:
            return ended("exit", shell_code(code), began, first_log, "")
        why = reason_to_stop(order, now, began, first_log, asked)
        if why:
            left = stop(order, process)
            return ended(why, shell_code(process.returncode or 0), began, first_log, left)


def reason_to_stop(order: Order, now: float, began: float, first_log: float, asked: Asked) -> str:
    """Why the trial has to end now; "" if it may go on."""
    if asked():
        return "asked"
    if first_log:
        return "limit" if now - first_log > order.limit_s else ""
    return "start" if now - began > order.start_s else ""


def ended(why: str, code: int, began: float, first_log: float, left: str) -> Ended:
    """The end, as a value."""
    now = time.monotonic()
    return Ended(why, code, bool(first_log), (first_log or now) - began, now - first_log if first_log else 0.0, left)


def stop(order: Order, process: subprocess.Popen[bytes]) -> str:
    """End the trial: ask its agents to stop, and kill after their grace. What is left in words; "" if nothing is."""
    if process.poll() is None:
        if not (order.step and ask_steps(order.slurm_job, order.step)):
            send(process, signal.SIGTERM)
        if wait(process, order.grace_s + KILL_S) is None:
            left = end_steps(order.slurm_job, order.step) if order.step else ""
            kill_group(process)
            if wait(process, KILL_S) is None:
                return left or f"process {process.pid} cannot be killed"
    return end_steps(order.slurm_job, order.step) if order.step else ""


def wait(process: subprocess.Popen[bytes], patience_s: float) -> int | None:
    """Its exit code; None if it has not ended by then. This returns at the moment of its end."""
    if process.poll() is None:
        try:
            pidfd = os.pidfd_open(process.pid)
        except OSError:  # a kernel before 5.3
            return poll(process, patience_s)
        try:
            select.select([pidfd], [], [], patience_s)
        finally:
            os.close(pidfd)
    return process.poll()


def poll(process: subprocess.Popen[bytes], patience_s: float) -> int | None:
    """The same by asking again and again."""
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return None


def send(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the command itself."""
    try:
        process.send_signal(number)
    except ProcessLookupError:
        pass


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the command's own process group; the guardian of its agent ends the workers."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def shell_code(code: int) -> int:
    """An exit code as a shell gives it."""
    return code if code >= 0 else 128 - code


def last_line(folder: str) -> str:
    """The last thing that the trial's launcher said, in one line."""
    try:
        with open(os.path.join(folder, OUTPUT), encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError:
        return ""
    headline = next((line for line in lines if line.startswith(("slaunch: cannot", "srun: error: Unable"))), "")
    seen = next((line for line in lines if line.startswith("seen:")), "")
    own = [line for line in lines if not line.startswith(("srun:", "slurmstepd"))]
    return "; ".join(part for part in (headline, seen) if part) or (own or lines or [""])[-1]
