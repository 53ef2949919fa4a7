"""The end of a step whose node is dead: srun would wait for its tasks there until Slurm gives the node up (SlurmdTimeout, five
minutes by default), long after all others have ended.

What makes srun end sooner, with the exit code of those that have ended, is to cancel the step. No task of it can do that, as it
would be killed by it, or with it; so a tiny step of the job's own waits until the others should have ended, and does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import time
from collections.abc import Mapping

STDERR = 2
READY = b"ready\n"
READY_S = 8.0
"""How long the tiny step may take to begin."""
LOOKS, LOOK_S = 4, 2
"""The step's tasks that live have so often so many seconds to end."""
SCRIPT = """echo ready
for look in $(seq $3); do
  sleep $4
  squeue --noheader --steps --jobs=$1 --format=%i | grep -q "\\.$2\\$" || exit 0
done
exec scancel --quiet $1.$2
"""
UNREAD_S, ON_ITS_WAY_S = 2.0, 0.3
"""How long slurmstepd may take to read the last output, and then srun."""
KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "SLURM_CONF")
"""Of the task's variables: others of Slurm's tell srun about the step that it is in."""
NOTE = "srun would wait until Slurm gives the lost node up; its step is cancelled in {s} s, and srun ends after Slurm's KillWait"


def arrange(env: Mapping[str, str]) -> str:
    """Have the step that this process is in cancelled soon, if it is still there then.

    Args:
        env: this process's environment, a task's that srun has started.

    Returns:
        What the user should know; "" if it could not be arranged, and srun waits.
    """
    job, step, node = (env.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURMD_NODENAME"))
    if not job or not step or env.get("SLURM_HET_SIZE"):
        return ""
    here = (f"--nodelist={node}",) if node else ()
    options = ("--overlap", "--nodes=1", "--ntasks=1", *here, "--input=none", "--mpi=none", "--chdir=/", "--job-name=slaunch-end")
    script = ("/bin/sh", "-c", SCRIPT, "slaunch-end", job, step, str(LOOKS), str(LOOK_S))
    own = {name: env[name] for name in KEPT if name in env}
    return NOTE.format(s=LOOKS * LOOK_S) if _begins(("srun", f"--jobid={job}", *options, *script), own) else ""


def linger() -> None:
    """Wait until what this process has written to its standard error has got to srun.

    An srun that has seen a task killed does not wait for the output of the others once they have all ended; what slurmstepd sends
    at that moment is lost.
    """
    import fcntl
    import struct

    give_up = time.monotonic() + UNREAD_S
    try:
        while struct.unpack("i", fcntl.ioctl(STDERR, termios.FIONREAD, bytes(4)))[0] and time.monotonic() < give_up:
            time.sleep(0.01)
    except OSError:  # no pipe
        return
    time.sleep(ON_ITS_WAY_S)


def _begins(argv: tuple[str, ...], env: Mapping[str, str]) -> bool:
    """Start a step, and let go of it once it runs: killed, its srun cannot take it along."""
    import select
    import subprocess

    try:
        srun = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError:
        return False
    assert srun.stdout is not None
    try:
        return bool(select.select([srun.stdout], [], [], READY_S)[0]) and os.read(srun.stdout.fileno(), 64) == READY
    finally:
        os.killpg(srun.pid, signal.SIGKILL)
        srun.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the kernel
            srun.wait(UNREAD_S)
