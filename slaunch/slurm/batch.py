"""slaunch in the batch script, as srun's parent: passes signals on, and asks Slurm for a requeue where the agents want one.

It stays only for jobs with `--requeue`; else srun takes its place. It needs no more than the batch node's own tools, whatever the
steps run in.
"""

from __future__ import annotations

import os
import signal
import sys

from slaunch.allocation.values import StepCall
from slaunch.errors import AllocationError, MissingToolError
from slaunch.slurm.client import ask, field
from slaunch.slurm.requeue import ask_slurm, read

PASSED = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})
VARIABLE = "SLAUNCH_BATCH_SIDE"
"""Tells the agents that this process is there."""
ASK_S = 5.0


def run_step(call: StepCall, job: str, restarts: int, ledger: str) -> int:
    """Run srun to its end and return its exit code; then have the job requeued if its ledger says so.

    Args:
        call: srun's arguments and environment.
        job: the job, as Slurm's tools take it.
        restarts: how often it has been requeued.
        ledger: path of its ledger.

    Raises:
        FileNotFoundError: there is no srun.
    """
    handled = PASSED | {signal.SIGTERM, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    pid = os.posix_spawnp(call.argv[0], call.argv, {**call.env, VARIABLE: "1"}, setsigmask=before)
    code = follow(pid, job, frozenset(handled))
    found = read(ledger, job)
    if found is not None and found.asked == restarts:
        try:
            ask_slurm(job)
        except (AllocationError, MissingToolError) as error:  # the exit code is the steps' all the same
            print(f"slaunch: {error}", file=sys.stderr, flush=True)
    return code


def follow(pid: int, job: str, handled: frozenset[signal.Signals]) -> int:
    """Pass signals on until srun has ended; its exit code."""
    while True:
        number = signal.sigwait(handled)
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        elif number == signal.SIGTERM:
            terminate(pid, job)
        else:
            os.kill(pid, number)


def terminate(pid: int, job: str) -> None:
    """Have the agents end the job in good order. On SIGTERM srun itself would kill its step at once.

    A job that Slurm ends gets the signal everywhere; nothing is to be passed on then.
    """
    try:
        if field(ask(("scontrol", "--oneliner", "show", "job", job), ASK_S), "JobState") == "RUNNING":
            ask(("scancel", "--quiet", "--signal=TERM", job), ASK_S)
    except (AllocationError, MissingToolError):
        os.kill(pid, signal.SIGTERM)
