"""`slaunch logs JOB`: the output of a job, or of some of its workers, now or as it comes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence

from slaunch.errors import AllocationError, MissingToolError
from slaunch.jobs import Run, find
from slaunch.slurm.records import Record, look
from slaunch.submit.follow import Way
from slaunch.submit.main import code_at_the_end, follow
from slaunch.submit.send import recall
from slaunch.submit.tail import Tail


def show(job: str, ranks: Sequence[int] | None, way: Way, env: Mapping[str, str]) -> int:
    """Print the output of a job, and if asked go on until it ends, with its exit code.

    Args:
        job: its id, or the name of a run.
        ranks: the workers whose logs to show; -1 = all; None = the job's own output.
        way: how to follow it; `way.show` = follow it.
        env: for the folder where runs are remembered.

    Raises:
        AllocationError: nothing is known of the job.
    """
    cluster = made.cluster if (made := recall(job, env)) else ""
    records = records_of(job, cluster)
    files = own_files(job, records, env) if ranks is None else worker_logs(job, ranks, env)
    tails = [Tail(path, sys.stdout.buffer, prefix) for path, prefix in files]
    if way.show and records and not all(record.ended for record in records):
        return follow(job.partition(".")[0], cluster, way, env, tails=tails if ranks is not None else ())
    if not any([tail.copy() for tail in tails]) and not tails:
        seen = "Slurm's controller does not know it (any more), and no run of that id or name is remembered"
        raise AllocationError(f"find the output of job {job}", seen, "name the directory of its logs, or read the files there")
    for tail in tails:
        tail.close()
    return code_at_the_end(job.partition(".")[0], cluster, records, env) if way.show else 0


def records_of(job: str, cluster: str) -> tuple[Record, ...]:
    """What Slurm knows of the job; () if nothing, or if there is no Slurm here."""
    if not re.match(r"\d", job):
        return ()
    try:
        return look(job.partition(".")[0], cluster)
    except (MissingToolError, AllocationError):
        return ()


def own_files(job: str, records: Sequence[Record], env: Mapping[str, str]) -> list[tuple[str, bytes]]:
    """The job's output files, with what goes before each line; where Slurm has forgotten them, the logs of the first worker."""
    shown = [record for record in records if "[" not in record.id and "+" not in record.id.removesuffix("+0")]
    files = {path: record.id for record in shown for path in (record.output, record.errors) if path}
    several = len(set(files.values())) > 1
    found = [(path, f"[{task.partition('_')[2]}] ".encode() if several else b"") for path, task in files.items()]
    return found or worker_logs(job, (0,), env)


def worker_logs(job: str, ranks: Sequence[int], env: Mapping[str, str]) -> list[tuple[str, bytes]]:
    """The logs of some workers, with what goes before each line."""
    found = []
    runs = find(job, env, os.getcwd())
    for run in runs:
        for rank, path in logs_in(run):
            if -1 in ranks or rank in ranks:
                found.append((path, run.id if len(runs) > 1 else "", rank))
    several = len(found) > 1
    return [(path, f"[{' '.join(filter(None, (name, str(rank))))}] ".encode() if several else b"") for path, name, rank in found]


def logs_in(run: Run) -> list[tuple[int, str]]:
    """The logs of a run's workers, by rank: as the agents' journals name them, else by their usual names."""
    found = {(rank, path): None for node in journals(run) for rank, path in named_in(node)}
    if not found:
        entries = os.listdir(run.log_dir) if os.path.isdir(run.log_dir) else []
        usual = ((re.fullmatch(r"workerlog\.(\d+)", name), name) for name in entries)
        found = {(int(match[1]), os.path.join(run.log_dir, name)): None for match, name in usual if match}
    return sorted(found, key=lambda each: each[0])


def journals(run: Run) -> list[str]:
    """The journals of a run's agents that can be read here."""
    import glob

    return sorted(glob.glob(os.path.join(glob.escape(run.log_dir), "agent.*.jsonl")))


def named_in(journal: str) -> list[tuple[int, str]]:
    """Ranks and log files of the workers that an agent has started."""
    import json

    found = []
    try:
        with open(journal, encoding="utf-8", errors="replace") as file:
            lines = [json.loads(line) for line in file if '"kind":"started"' in line and line.endswith("}\n")]
    except (OSError, ValueError):
        return []
    for line in lines:
        found += [(int(line["rank"]), str(line[name])) for name in ("log", "err_log") if line.get(name)]
    return found
