"""What `slaunch submit` was asked for, and what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.frozen import dataclass, field


@dataclass(frozen=True)
class Request:
    """A job to submit.

    Attributes:
        components: sbatch's long options without their dashes, with their values ("" = an option without a value), for each
            component of the job; an ordinary job has one.
        template: name or path of the template.
        arguments: the command line of slaunch inside the job: its options, the program and its arguments.
        setup: lines of shell before it.
        fields: further fields of the template, by name.
        folders: where templates are looked for before slaunch's own, nearest first.
        extra: further words for sbatch itself.
        gpu_form: how this site asks for GPUs: "auto" (found out), "gpus-per-node" or "gres".
        gpu_type: the type of GPU that this site wants to have named where the user does not; "" = none.
        program: the script or executable that slaunch starts, as the user wrote it; "" = none that is a file.
    """

    components: tuple[Mapping[str, str], ...]
    template: str
    arguments: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    gpu_form: str = "auto"
    gpu_type: str = ""
    program: str = ""


@dataclass(frozen=True)
class Submitted:
    """A job that is in the queue.

    Attributes:
        id: as sbatch names it; of an array or a heterogeneous job the leading one.
        cluster: the cluster that took it, where the user named several; "" = the only one.
        name: its name.
        folder: its working directory, absolute.
        command: how `slaunch submit` was called.
        sbatch: the command that took the script, which came by standard input.
        script: the script's text.
        submitted_s: when, seconds since the epoch.
        saved: where the script was put, absolute; "" = nowhere.
    """

    id: str
    cluster: str
    name: str
    folder: str
    command: tuple[str, ...]
    sbatch: tuple[str, ...]
    script: str
    submitted_s: float
    saved: str = ""
