"""Where a job's run keeps its files: found by the job's id, from any machine that shares the home directory.

The first node's agent writes one small file for each run to `~/.slaunch/jobs` (or `$SLAUNCH_STATE_DIR/jobs`), readable by its
user only. It names the directory of the logs, and nothing else has to be asked: no controller, no accounting database. A requeued
job writes the same file anew; the tasks of an array, and the steps of a job, have files of their own; a heterogeneous job has
that of its leader. Where the home directory cannot be written the runs are still found from the folder that the job was
started in.

    runs = find("123", env, os.getcwd())       # () = nothing is known; "123_4" one task of an array; "" = all of this user's
    run = runs[-1]                             # the latest: its last step, or the array's task that began last
    run.log_dir, run.report, run.journal, run.status, run.host
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from slaunch.frozen import asdict, dataclass, names

FOLDER_VARIABLE = "SLAUNCH_STATE_DIR"
LOGS = "slaunch-logs"
"""Where logs go unless the user says otherwise: one folder per job below it, in the working directory."""
KEPT = 1000
"""Runs that are remembered; older ones are forgotten, their logs are not."""
SURPLUS = 100
"""So many more may be there: to find the oldest, the file server is asked for the age of each, which is not for each start."""


@dataclass(frozen=True)
class Run:
    """One run of a job.

    Attributes:
        id: job and step as the scheduler's tools take them, e.g. "123.0", "123_4.1"; the job's name where there is no scheduler.
        log_dir: absolute directory of the logs; on the nodes themselves if they do not share it.
        name: the job's name, if the user gave one; else `id`.
        cluster: the scheduler's name of the cluster; "" if it does not tell.
        host, pid: the first node's agent, which is the hub of the agents' channel; "" and 0 = not known.
        started_s: when it began, seconds since the epoch.
        restarts: how often the scheduler has requeued the job.
        nodes, world: number of nodes and of workers at the start; 0 = not known.
    """

    id: str
    log_dir: str
    name: str = ""
    cluster: str = ""
    host: str = ""
    pid: int = 0
    started_s: float = 0.0
    restarts: int = 0
    nodes: int = 0
    world: int = 0

    @property
    def job(self) -> str:
        """The job without its step: what scancel and sbatch's dependencies take."""
        return self.id.partition(".")[0] if self.id[:1].isdigit() else self.id

    @property
    def report(self) -> str:
        """The report of the last run, in JSON; it is there when that has ended."""
        return os.path.join(self.log_dir, "report.json")

    @property
    def journal(self) -> str:
        """The log of the first node's agent; that of node n is `agent.<n>.jsonl`."""
        return os.path.join(self.log_dir, "agent.0.jsonl")

    @property
    def status(self) -> str:
        """What the hub's agent knows of all workers, refreshed every few seconds while they run."""
        return os.path.join(self.log_dir, "status.json")


def folder(env: Mapping[str, str]) -> str:
    """The folder of this user's runs; "" where there is no home directory."""
    state = env.get(FOLDER_VARIABLE) or (os.path.join(env["HOME"], ".slaunch") if env.get("HOME") else "")
    return os.path.join(state, "jobs") if state else ""


def remember(run: Run, env: Mapping[str, str]) -> str:
    """Write the run down. What kept it from being written, in a line; "" if nothing did."""
    place = folder(env)
    if not place:
        return "no home directory"
    path = os.path.join(place, _file_name(run))
    part = f"{path}.{run.host}.{run.pid}.part"
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(run), file)
        os.replace(part, path)
        _forget(place)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def find(wanted: str, env: Mapping[str, str], cwd: str) -> tuple[Run, ...]:
    """The runs of a job, in the order in which they began.

    Args:
        wanted: a job's id ("123": all its steps, or all tasks of the array; "123.1"; "123_4"), the name that the user gave it,
            or a directory of logs; "" = all runs.
        env: for the folder where they are remembered.
        cwd: where else to look: in its `slaunch-logs`.
    """
    if "/" in wanted and os.path.isdir(wanted):
        return (known_by_logs(os.path.abspath(wanted), env),)
    known = [run for run in remembered(env) if not wanted or matches(run, wanted)]
    there = {run.log_dir for run in known}
    seen = [run for run in _beside(cwd) if run.log_dir not in there and (not wanted or matches(run, wanted))]
    return tuple(sorted([*known, *seen], key=lambda run: run.started_s))


def remembered(env: Mapping[str, str]) -> list[Run]:
    """All runs that have been written down."""
    place = folder(env)
    try:
        entries = os.listdir(place) if place else []
    except OSError:
        return []
    read = (_read(os.path.join(place, name)) for name in entries if name.endswith(".json"))
    return [run for run in read if run is not None]


def known_by_logs(log_dir: str, env: Mapping[str, str]) -> Run:
    """The run that has its logs there."""
    runs = sorted((run for run in remembered(env) if run.log_dir == log_dir), key=lambda run: run.started_s)
    return runs[-1] if runs else Run(os.path.basename(log_dir), log_dir, started_s=_began_s(log_dir))


def matches(run: Run, wanted: str) -> bool:
    """Whether a run is one of the job, step or task that the user means."""
    return wanted in (run.id, run.name) or run.id.startswith((f"{wanted}.", f"{wanted}_"))


def _beside(cwd: str) -> Iterable[Run]:
    """Runs whose logs are in the usual place below `cwd`."""
    place = os.path.join(cwd, LOGS)
    try:
        found = [entry.path for entry in os.scandir(place) if entry.is_dir()]
    except OSError:
        return []
    return [Run(os.path.basename(path), path, started_s=_began_s(path)) for path in found]


def _began_s(log_dir: str) -> float:
    """About when a run began of which nothing is written down: when its directory was changed last."""
    try:
        return os.stat(log_dir).st_mtime
    except OSError:
        return 0.0


def _file_name(run: Run) -> str:
    """A file name that differs where the run does, whatever characters the job's name has."""
    plain = "".join(char if char.isalnum() or char in "._-[]" else f"%{ord(char):x}" for char in run.id)
    return f"{plain[:200]}{'@' + run.cluster if run.cluster.isalnum() else ''}.json"


def _read(path: str) -> Run | None:
    """A run as it was written down; None if the file has gone, or is none of ours."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        return Run(**{name: fields[name] for name in names(Run) if name in fields})
    except (OSError, ValueError, TypeError):
        return None


def _forget(place: str) -> None:
    """Remove the oldest files where there are too many."""
    entries = os.listdir(place)
    if len(entries) <= KEPT + SURPLUS:
        return
    by_age = sorted((os.stat(os.path.join(place, name)).st_mtime, name) for name in entries)
    for _, name in by_age[: len(entries) - KEPT]:
        try:
            os.unlink(os.path.join(place, name))
        except FileNotFoundError:  # another job has forgotten it just now
            pass
