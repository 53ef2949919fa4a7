"""From a setting to a trial's order: its options, variables, private files and command."""

from __future__ import annotations

import os
from collections.abc import Mapping

from slaunch.errors import OutputError, UsageError
from slaunch.frozen import dataclass, replace
from slaunch.options import Options
from slaunch.tune.inject.apply import TRIAL, Change, Injection, copies, files_of, inject, redirect
from slaunch.tune.inject.files import write_copies
from slaunch.tune.measure.logs import METRICS
from slaunch.tune.space.grid import whole
from slaunch.tune.trial.place import Place, part_of, trial_call
from slaunch.tune.trial.values import Order
from slaunch.tune.values import Setting, Study

METRIC_FILE = "SLAUNCH_METRIC_FILE"
"""Variable that names the file into which a program may write lines with its metric, instead of printing them."""
BYPASS = "FLAGS_shard_bypass_dygraph_optimizer"
CONFIG = "config"
"""Folder with the copies of edited files, in a trial's folder."""


@dataclass(frozen=True)
class Run:
    """One run of a setting.

    Attributes:
        number: of the trial; 0 for the best run.
        name: of its folder, and in its step's name.
        job: job id that the program sees.
        folder: its log directory.
        stage: "search" or "best".
        step: name of its step.
    """

    number: int
    name: str
    job: str
    folder: str
    stage: str = "search"
    step: str = ""


@dataclass(frozen=True)
class Plan:
    """What to run, and the files that have to be there before."""

    order: Order
    changes: tuple[Change, ...]
    copies: Mapping[str, str]


def make_files(plan: Plan) -> Order:
    """Make the trial's folder and its copies of edited files, and return what to run.

    Raises:
        UsageError: a file cannot be read, or a path leads nowhere in it.
        MissingToolError: it is YAML, and ruamel.yaml is not installed.
        OutputError: the folder or a copy cannot be written.
    """
    make_folder(plan.order.folder)
    if plan.copies:
        make_folder(os.path.join(plan.order.folder, CONFIG))
        write_copies(plan.changes, plan.copies)
    return plan.order


def prepare(study: Study, place: Place, options: Options, env: Mapping[str, str], setting: Setting, run: Run) -> Plan:  # noqa: PLR0917
    """What to run for a setting. Nothing is written yet.

    Raises:
        UsageError: a file that is edited is not named by the program's arguments.
    """
    injection = inject(study, place.cluster, setting, run.stage)
    paths = copies(files_of(study), os.path.join(run.folder, CONFIG))
    args, unnamed = redirect((*options.program.args, *injection.args), paths)
    if unnamed and study.inject.get("config_files", "arguments") != "environment":
        raise not_named(unnamed[0])
    narrow, each = part_of(place, whole(setting, "num_gpus", place.cluster.gpus), whole(setting, "nodes", place.cluster.nodes))
    extra = {**injection.env, TRIAL: with_files(injection, paths), METRIC_FILE: os.path.join(run.folder, METRICS)}
    extra |= bypass(study, setting)
    inner = inner_options(options, run, args, tuple(extra), each, place.cluster.gpus_per_node)
    call = trial_call(narrow, inner, env, extra, run.step)
    step = run.step if place.slurm_job else ""
    limits = study.limits.trial_s, study.limits.start_s, options.grace_s
    order = Order(run.number, run.name, run.job, run.folder, call, step, place.slurm_job, *limits)
    return Plan(order, injection.changes, paths)


def inner_options(  # noqa: PLR0917 - all that differs
    options: Options, run: Run, args: tuple[str, ...], variables: tuple[str, ...], each: int, whole_node: int
) -> Options:
    """The options of the launch inside the trial: the user's, but for name, folder, arguments and part of the machine.

    It has as many workers on `each` node as its setting counts on, of a `whole_node`'s. The outer command has counted nodes
    already. A trial is not restarted, nor is the job for its sake: a failure is its result. Its output goes to files, whose names
    the tuner must know and which it reads as a whole, and to the console only if the user asks for ranks there.
    """
    quiet = run.stage == "search" and options.origins.get("tee", "default") == "default"
    found = replace(
        options,
        program=replace(options.program, args=args),
        job_id=run.job,
        log_dir=run.folder,
        log_name="",
        log_timestamps=False,
        log_max_bytes=0,
        metrics_port=0,
        nnodes=(0, 0),
        spares=0,
        master="",
        node_rank=-1,
        keep_env=(*options.keep_env, *variables),
        tee=() if quiet else options.tee,
        tee_local=() if quiet else options.tee_local,
        max_restarts=0 if run.stage == "search" else options.max_restarts,
        requeue=() if run.stage == "search" else options.requeue,
        nproc_per_node=each,
    )
    return replace(found, devices=options.devices[:each]) if each < whole_node else found


def with_files(injection: Injection, paths: Mapping[str, str]) -> str:
    """The trial's settings as JSON, with the copies of files."""
    import json

    return json.dumps({**json.loads(injection.env[TRIAL]), "files": dict(paths)})


def bypass(study: Study, setting: Setting) -> dict[str, str]:
    """A switch of Paddle's optimizer that estimation of many replicas from one needs where nothing is sharded."""
    if study.algorithm.name in ("grid", "random"):
        return {}
    return {BYPASS: str(int(bool(study.algorithm.estimated_gpus) and whole(setting, "sharding_degree") == 1))}


def make_folder(path: str) -> None:
    """Make a folder.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise OutputError("keep the logs of a trial", f"{path}: {error.strerror}", "make this folder writable") from None


def not_named(file: str) -> UsageError:
    """The error of a file that the program would not read."""
    return UsageError(
        f"give each trial its own copy of {file}",
        "run_cmd edits it, but no argument of the program names it, so that the program would read the unchanged file",
        f'pass its path to the program (train.py --config {file}), or set run_cmd.config_files to "environment" and read the '
        'path of the copy from json.loads(os.environ["SLAUNCH_TRIAL"])["files"]',
    )
