"""Processes of this user that earlier jobs left behind.

Facts: `processes`, a list of `pid`, `name`, `job` and `step` (by its environment; ""), `age_s`, `marked` (slaunch started it),
`orphan` (its parent is gone). Left out: this process's own ancestors and descendants, zombies, and logins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from slaunch.agent.process import MARK
from slaunch.doctor.owners import variable
from slaunch.doctor.values import NOTE, WARNING, Check, Facts, Finding, Request
from slaunch.report.style import duration

NAME = "leftovers"
LOGIN = ("systemd", "(sd-pam)", "sshd", "dbus-daemon", "dbus-broker", "tmux", "tmux: server", "screen", "slurmstepd")
"""Names of processes that belong to a login, or to Slurm itself."""
SHOWN = 5


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Go through all processes."""
    with open("/proc/uptime") as file:
        up_s = float(file.read().split()[0])
    own = os.getuid()
    tick = os.sysconf("SC_CLK_TCK")
    family = ancestors(os.getpid())
    found = []
    for pid in filter(lambda pid: pid not in family, numbers()):
        try:
            if os.stat(f"/proc/{pid}").st_uid != own:
                continue
            name, state, parent, started = stat(pid)
        except OSError:  # it has just ended
            continue
        if state in "ZX" or parent in family or name in LOGIN:
            continue
        job, step, mark = variable(pid, "SLURM_JOB_ID", "SLURM_STEP_ID", MARK)
        owner = {"job": job, "step": step, "marked": bool(mark), "orphan": parent == 1}
        found.append({"pid": pid, "name": name, "age_s": max(0, round(up_s - started / tick)), **owner})
    return {"processes": found}


def numbers() -> Iterator[int]:
    """All processes."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def ancestors(pid: int) -> set[int]:
    """A process and those above it."""
    found: set[int] = set()
    while pid > 1:
        found.add(pid)
        try:
            pid = stat(pid)[2]
        except OSError:
            break
    return found


def stat(pid: int) -> tuple[str, str, int, int]:
    """Name, state, parent, and start in clock ticks after boot (proc_pid_stat(5)).

    Raises:
        OSError: it is gone.
    """
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        name, _, rest = file.read().partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, fields[0], int(fields[1]), int(fields[19])


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Processes of jobs that have ended; where Slurm does not tell which have, of jobs that are not this one."""
    own, running = site.get("job", ""), site.get("jobs")
    others = [each for each in facts["processes"] if each["job"] and each["job"] != own and each["job"] not in (running or ())]
    strays = [each for each in facts["processes"] if not each["job"] and own and (each["orphan"] or each["marked"])]
    ended = ("which ended", WARNING) if running is not None else ("which may have ended", NOTE)
    return [*told(others, *ended), *told(strays, "", NOTE)]


def told(processes: list[Facts], ended: str, severity: str) -> list[Finding]:
    """One finding for all of a kind."""
    if not processes:
        return []
    jobs = sorted({each["job"] for each in processes if each["job"]})
    what = f"of {'job' if len(jobs) == 1 else 'jobs'} {', '.join(jobs)}, {ended}" if jobs else "of no job"
    shown = ", ".join(f"{each['pid']} ({each['name']}, {duration(each['age_s'])} old)" for each in processes[:SHOWN])
    more = f" and {len(processes) - SHOWN} more" if len(processes) > SHOWN else ""
    seen = f"left on the node {what}: {shown}{more}"
    means = "they may hold memory, GPUs, ports and CPU time that the job needs"
    todo = f"on that node: kill {' '.join(str(each['pid']) for each in processes[:SHOWN])}{more}"
    return [Finding(NAME, severity, seen, means, todo)]


CHECK = Check(NAME, look, judge)
