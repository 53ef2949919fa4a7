"""Where trials run, and the command of each.

In a Slurm job each is a job step of its own; under other schedulers an mpirun; on a plain machine a process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from slaunch.allocation.values import Shell, StepCall, StepShape, Task
from slaunch.channel.secret import VARIABLE, fresh_text
from slaunch.errors import AllocationError, UsageError
from slaunch.frozen import dataclass, replace
from slaunch.node.devices.choose import select
from slaunch.node.devices.table import find
from slaunch.node.devices.values import View
from slaunch.options import Options
from slaunch.selfcall import module_command
from slaunch.slurm.resized import as_it_is_now
from slaunch.slurm.start import start_call
from slaunch.slurm.step import step_call
from slaunch.tune.trial.carry import pack
from slaunch.tune.values import Cluster, Study

GPU_COUNT = re.compile(r"--gpus-per-node=(?:\w+:)?(\d+)|--gres=gpu(?::\w+)?:(\d+)")
INSIDE = "slaunch.tune.trial.inside"
UNNAMED = "device"
"""Name of devices that are there, but not on this machine."""
GPU_TOTAL = re.compile(r"--gpus=(?:\w+:)?(\d+)")


@dataclass(frozen=True)
class Place:
    """Where trials run.

    Attributes:
        shell: the allocation's shell, from which steps are started; None: on this machine, as processes.
        slurm_job: the Slurm job whose steps trials are; "" if they are none.
        cluster: nodes and devices.
    """

    shell: Shell | None
    slurm_job: str
    cluster: Cluster


def find_place(standing: Task | Shell, options: Options, env: Mapping[str, str], study: Study) -> Place:
    """Where trials run.

    Raises:
        UsageError: this is one of several tasks; a tuner decides alone.
        DeviceError: a device that the user named is not there.
    """
    if isinstance(standing, Task):
        if standing.slot.size > 1:
            raise UsageError(
                "tune",
                f"this is one of {standing.slot.size} tasks that {standing.allocation.launcher} started",
                "start `slaunch tune` once, in the batch script or the allocation's shell: it starts the trials' steps itself",
            )
        count, device = here(options, env)
        return Place(None, "", Cluster(study.nodes or 1, options.nproc_per_node or study.gpus_per_node or count or 1, device))
    job = env.get("SLURM_JOB_ID", "") if standing.allocation.launcher == "slurm" else ""
    cluster = cluster_of(standing, options, env, study)
    return Place(first_nodes(standing, cluster.nodes), job, cluster)


def first_nodes(shell: Shell, count: int) -> Shell:
    """The shell with the first so many of its nodes; the others are spare.

    Raises:
        AllocationError: it has not so many, or is a job of components that does not have exactly so many.
    """
    nodes, shape = shell.allocation.nodes, shell.shape
    if shape.nodes < count or (shape.het_groups and shape.nodes != count):
        raise too_few(count, shape.nodes)
    if shape.het_groups or count == shape.nodes == len(nodes):
        return shell
    gpus = tuple(share_of(word, count, shape.nodes) for word in shape.gpu_args)
    allocation = replace(shell.allocation, nodes=nodes[:count], tasks_per_node=())
    return Shell(allocation, replace(shape, nodes=count, gpu_args=gpus))


def share_of(word: str, count: int, nodes: int) -> str:
    """A request for devices: one in total becomes that of `count` of so many nodes."""
    total = GPU_TOTAL.fullmatch(word)
    return f"{word[: total.start(1)]}{int(total[1]) * count // nodes}" if total else word


def renewed(place: Place, now: Callable[[Shell], Shell] = as_it_is_now) -> Place:
    """The place with nodes that the job still has: spare ones come for those that it has lost.

    Args:
        place: where trials ran so far.
        now: asks Slurm for the nodes of a shell's job.

    Raises:
        AllocationError: it has too few.
    """
    shell = place.shell
    if shell is None or not place.slurm_job or shell.shape.het_groups:
        return place
    found = now(shell)
    here = found.allocation.nodes
    kept = [node for node in shell.allocation.nodes if node in here]
    if len(kept) == len(shell.allocation.nodes):
        return place
    nodes = (*kept, *(node for node in here if node not in kept))[: place.cluster.nodes]
    if len(nodes) < place.cluster.nodes:
        raise too_few(place.cluster.nodes, len(nodes))
    allocation = replace(shell.allocation, nodes=nodes)
    return replace(place, shell=Shell(allocation, replace(shell.shape, overlap=found.shape.overlap, resized=found.shape.resized)))


def too_few(count: int, nodes: int) -> AllocationError:
    """The error of an allocation that is too small, or a job of components that is no whole."""
    seen = f"the search counts on {count} nodes, the allocation has {nodes}"
    todo = 'correct "nodes" in the configuration, or ask the scheduler for so many; those beyond are spare ones'
    return AllocationError("find nodes for the trials", seen, todo)


def cluster_of(shell: Shell, options: Options, env: Mapping[str, str], study: Study) -> Cluster:
    """Nodes and devices of an allocation: what the user says, else what its request says, else what this machine has."""
    nodes = study.nodes or shell.shape.nodes
    asked = asked_gpus(shell.shape, env)
    inside = os.uname().nodename.split(".")[0] in {node.split(".")[0] for node in shell.allocation.nodes}
    count, device = here(options, env) if inside else (0, "")
    workers = options.nproc_per_node or study.gpus_per_node or len(options.devices) or asked or count or 1
    return Cluster(nodes, workers, device or UNNAMED * bool(asked))


def asked_gpus(shape: StepShape, env: Mapping[str, str]) -> int:
    """Devices of each node, as the allocation was asked for; 0 if that is not told."""
    request = " ".join(shape.gpu_args)
    each = GPU_COUNT.search(request)
    if each:
        return int(each[1] or each[2])
    total = GPU_TOTAL.search(request)
    if total:
        return int(total[1]) // shape.nodes
    told = env.get("SLURM_GPUS_ON_NODE", "")
    return int(told) if told.isdecimal() else 0


def here(options: Options, env: Mapping[str, str]) -> tuple[int, str]:
    """Number of workers that this machine's devices are for, and the devices' name."""
    devices = select(find(View(env)), options.devices)
    workers = len(devices) * options.workers_per_device // max(1, options.devices_per_worker)
    return workers, devices[0].name or UNNAMED if devices else ""


def part_of(place: Place, gpus: int, nodes: int) -> tuple[Place, int]:
    """The place narrowed to a trial's nodes, and the number of workers on each of them."""
    if gpus == place.cluster.gpus:
        return place, place.cluster.gpus_per_node
    each = gpus // nodes
    if place.shell is None:
        return place, each
    shape = replace(place.shell.shape, nodes=nodes, gpu_args=narrowed(place.shell.shape.gpu_args, each, nodes))
    allocation = replace(place.shell.allocation, nodes=place.shell.allocation.nodes[:nodes])
    return replace(place, shell=Shell(allocation, shape)), each


def narrowed(gpu_args: Sequence[str], each: int, nodes: int) -> tuple[str, ...]:
    """The request for devices with so many on each node, in the same form; () stays (), which is all of them."""
    found = []
    for word in gpu_args:
        total = word.startswith("--gpus=")
        found.append(re.sub(r"\d+$", str(each * nodes if total else each), word))
    return tuple(found)


def trial_call(place: Place, options: Options, env: Mapping[str, str], extra: Mapping[str, str], step: str) -> StepCall:
    """The command of a trial, and its environment.

    Args:
        place: where it runs.
        options: of the launch inside it.
        env: the tuner's own environment.
        extra: variables of the trial.
        step: name of its step.
    """
    inner = (*module_command(INSIDE), pack(options, extra))
    if place.shell is None:
        return StepCall(inner, env)
    if not place.slurm_job:
        return start_call(place.shell, env, inner, options.step_args)
    call = step_call(place.shell, env, inner, (*step_words(place.shell, step), *options.step_args))
    return StepCall(call.argv, {**call.env, VARIABLE: fresh_text()})


def step_words(shell: Shell, step: str) -> tuple[str, ...]:
    """What a trial's step asks for beside nodes, tasks, devices and memory, which are in its shape.

    Exactly these nodes; and exactly these CPUs, where their number is known: without it `--exact` would mean one CPU.
    """
    nodes = (f"--nodelist={','.join(shell.allocation.nodes)}",) if shell.allocation.nodes else ()
    exact = ("--exact",) if shell.shape.cpus_per_task and not shell.shape.het_groups else ()
    return (f"--job-name={step}", *exact, *(nodes if not shell.shape.het_groups else ()))
