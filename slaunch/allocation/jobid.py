"""Job ids: what may stand in a command that slaunch builds, and what squeue and sbatch print.

A job id goes into commands (scontrol, srun) and file names, so anything but the scheduler's own form is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from slaunch.errors import AllocationError

_LISTED = r"([0-9]+)(?:_(?:([0-9]+)|\[([0-9,-]+)(?:%[0-9]+)?\]))?"


def checked(env: Mapping[str, str], form: str, *names: str) -> str:
    """Return the first of these variables that is set, "" if none is; refuse a value that has not this form (a pattern).

    Raises:
        AllocationError: the value has another form.
    """
    for name in names:
        value = env.get(name, "")
        if value and not re.fullmatch(form, value):
            raise AllocationError("read the job's id", f"{name}={value!r} is no job id", f"unset {name} or start a new job")
        if value:
            return value
    return ""


def digits(env: Mapping[str, str], *names: str) -> str:
    """Return the first of these variables that is set, "" if none is; refuse anything but digits."""
    return checked(env, "[0-9]+", *names)


def slurm_job(env: Mapping[str, str]) -> str:
    """Return the job's id as Slurm's tools take it: "123", or "41_7" for task 7 of array 41; "" outside a job.

    Inside a heterogeneous job SLURM_JOB_ID is the leader's id in every component; requeue and state belong to the leader.
    """
    job = digits(env, "SLURM_JOB_ID", "SLURM_JOBID")
    array, index = digits(env, "SLURM_ARRAY_JOB_ID"), digits(env, "SLURM_ARRAY_TASK_ID")
    return f"{array}_{index}" if job and array and index else job


def pbs_job(env: Mapping[str, str]) -> str:
    """Return the id of a PBS job as qstat takes it, e.g. "123.pbs01" or "123[4].pbs01"; "" outside one."""
    return checked(env, r"[0-9]+(\[[0-9]*\])?(\.[A-Za-z0-9._-]+)?", "PBS_JOBID")


def lsf_job(env: Mapping[str, str]) -> str:
    """Return the id of an LSF job as bjobs takes it, e.g. "123" or "123[4]"; "" outside one. Index 0 means no array."""
    job, index = digits(env, "LSB_JOBID"), digits(env, "LSB_JOBINDEX")
    return f"{job}[{index}]" if job and index.strip("0") else job


def flux_job(env: Mapping[str, str]) -> str:
    """Return the id of a Flux job in F58 form, e.g. "ƒ2WAB3z" or "f2WAB3z" (Flux RFC 19); "" outside one."""
    return checked(env, "[ƒf]?[1-9A-HJ-NP-Za-km-z]+", "FLUX_JOB_ID")


def listed(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the ids behind an id that squeue or sacct printed, e.g. "20_[2-7,22%56]" -> ("20", "2", "7"), ("20", "22").

    Raises:
        AllocationError: the text is no job id.
    """
    match = re.fullmatch(_LISTED, text.strip())
    if not match:
        raise AllocationError("read a job id", f"{text!r}", "expected 123, 123_4 or 123_[1-4,7%2]")
    job, index, ranges = match.groups()
    if ranges:
        return tuple((job, *part.split("-")) for part in ranges.split(","))
    return ((job, index),) if index else ((job,),)


def submitted(text: str) -> str:
    """Return the id in sbatch's answer, "Submitted batch job 123" or, with --parsable, "123;cluster".

    Raises:
        AllocationError: there is no id in the answer.
    """
    match = re.search(r"Submitted batch job ([0-9]+)|^([0-9]+)(?:;\S+)?\s*$", text)
    if not match:
        raise AllocationError("read the submitted job's id", f"sbatch answered {text.strip()!r}", "run sbatch by hand")
    return match[1] or match[2]
