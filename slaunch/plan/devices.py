"""Which devices each worker gets, and what its visible list says.

The rule, and why, is in docs/decisions/0003-device-visibility.md: the node's list stays whole and worker i's device stands at
position i, because `torch.cuda.set_device(LOCAL_RANK)` and Paddle's `FLAGS_selected_gpus` both count positions in the visible
list. World and ranks never come from visible devices (P48); labels are opaque tokens (P49).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.errors import DeviceError, SlaunchError
from slaunch.frozen import replace
from slaunch.node.devices.choose import assign
from slaunch.node.values import Device, NodeFacts
from slaunch.options import Options
from slaunch.plan.seat import Seat

Devices = tuple[Device, ...]

MASKS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("CUDA_VISIBLE_DEVICES",),
    "rocm": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    "xpu": ("XPU_VISIBLE_DEVICES", "XPULINK_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
    "npu": ("ASCEND_RT_VISIBLE_DEVICES", "NPU_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"),
}
"""Visible-list variables by kind of device. The first is used where the node had none; if one is written, the others go (P50)."""


HIDDEN = ("",)
"""The labels of a list that hides every device."""

Shares = tuple[tuple[Devices, ...], tuple[tuple[str, ...], ...]]
"""By local rank: the worker's devices, and the labels that its visible list is rewritten to; () = all lists stay as found."""


def shares_of_node(facts: NodeFacts, options: Options, wanted: Sequence[int] = ()) -> Shares:
    """Layout "agent": what each worker of this node gets. One worker gets all devices; of several, worker i gets the one at i.

    Args:
        facts: the node's facts.
        options: what the user asked for.
        wanted: number of devices of each worker, where roles differ; -1 = as the options say; () = roles say nothing.

    Raises:
        DeviceError: if there are devices, but fewer than workers.
    """
    if wanted:
        return _by_role(facts, options, wanted)
    dealt = _dealt(facts, facts.workers, options)
    if not _rewritten(facts.devices, options):
        return dealt, ()
    if _only_own(facts.devices, options):
        return dealt, tuple(_labels(own) for own in dealt)
    return dealt, (_labels(facts.devices),) * facts.workers


def shares_of_tasks(tasks: Sequence[NodeFacts], options: Options, wanted: Sequence[int] = ()) -> Shares:
    """Layout "task": what each task of one machine gets, in local-rank order.

    A task that sees exactly one device uses it (P47, P48). Tasks that see the same several deal them out in their own order. A
    task whose list nobody else has uses all of it. One whose role wants no device has none and sees none.

    Args:
        tasks: facts of the machine's tasks, by local rank.
        options: what the user asked for.
        wanted: as for `shares_of_node`; other numbers than 0 are for the scheduler to grant.

    Raises:
        DeviceError: if more tasks see the same several devices than there are devices.
    """
    without = {index for index, number in enumerate(wanted) if number == 0}
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, facts in enumerate(tasks):
        if index not in without:
            groups.setdefault(tuple(_identity(device) for device in facts.devices), []).append(index)
    dealt: list[Devices] = [()] * len(tasks)
    for alike, members in groups.items():
        for order, index in enumerate(members):
            dealt[index] = tasks[index].devices if len(alike) <= 1 else _dealt(tasks[index], len(members), options)[order]
    if not (without or any(_rewritten(facts.devices, options) for facts in tasks)):
        return tuple(dealt), ()
    if without:
        seen = zip(dealt, tasks, strict=True)
        return tuple(dealt), tuple(_labels(own) or (HIDDEN if facts.devices else ()) for own, facts in seen)
    own = any(_only_own(facts.devices, options) for facts in tasks)
    shown = dealt if own else [facts.devices for facts in tasks]
    return tuple(dealt), tuple(map(_labels, shown))


def _by_role(facts: NodeFacts, options: Options, wanted: Sequence[int]) -> Shares:
    """Every worker has as many as its role wants, those first that want a number; each sees its own only, as LOCAL_RANK is no
    index of them.
    """
    fixed = sum(number for number in wanted if number > 0)
    if fixed > len(facts.devices):
        raise DeviceError(
            f"give the roles on node {facts.host} {fixed} devices",
            f"{len(facts.devices)} visible: {','.join(_labels(facts.devices)) or 'none'}",
            "give the roles fewer devices or workers, or ask the scheduler for more",
        )
    left = list(facts.devices)
    numbered = {local: tuple(left.pop(0) for _ in range(number)) for local, number in enumerate(wanted) if number > 0}
    others = [local for local, number in enumerate(wanted) if number < 0]
    rest = dict(zip(others, _dealt(replace(facts, devices=tuple(left)), len(others), options), strict=True)) if others else {}
    dealt = tuple(numbered.get(local) or rest.get(local, ()) for local in range(len(wanted)))
    return dealt, tuple(_labels(own) or HIDDEN for own in dealt) if facts.devices else ()


def _dealt(facts: NodeFacts, workers: int, options: Options) -> tuple[Devices, ...]:
    try:
        return assign(facts.devices, workers, options.devices_per_worker, options.workers_per_device)
    except SlaunchError as error:
        raise type(error)(f"{error.wanted} on node {facts.host}", error.seen, error.todo) from None


def _identity(device: Device) -> str:
    """What makes it the same device for two tasks, whatever each calls it."""
    return device.uuid or device.pci or device.label


def _rewritten(devices: Devices, options: Options) -> bool:
    """Whether visible lists are written anew: where the user chose devices, where each worker sees only its own, and on ROCm,
    where two lists may be in force at once.
    """
    return bool(devices) and (bool(options.devices) or devices[0].kind == "rocm" or _only_own(devices, options))


def _only_own(devices: Devices, options: Options) -> bool:
    """Whether each worker sees its own devices only: where the user says so, where CUDA shows no more than one, and where workers
    do not have one device each, so that LOCAL_RANK is no index of a worker's own device.
    """
    one_each = options.workers_per_device == 1 and options.devices_per_worker == 0
    return options.visible != "all" or not one_each or _sliced(devices)


def _sliced(devices: Devices) -> bool:
    """Whether there are MIG instances: CUDA shows a process only the first one of its list (P49)."""
    return any(device.label.startswith("MIG-") for device in devices)


def _labels(devices: Devices) -> tuple[str, ...]:
    return tuple(device.label for device in devices)


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str | None]:
    """Changes to the visible-list variables: a text to set, None to remove. {} where the list is right as it is.

    Of a family of such variables exactly one is left in force: on ROCm a second one is applied after the first has renumbered the
    devices (P50), and a CUDA list left by the scheduler beside it hides devices (P51).
    """
    if not seat.view:
        return {}
    kind = next((device.kind for own in (seat.devices, *seat.node.devices) for device in own), "")
    family = MASKS.get(kind, ())
    name = seat.node.visible or next(iter(family), "")
    if not name:
        return {}
    changes: dict[str, str | None] = {other: None for other in family if other != name and other in env}
    return changes | {name: ",".join(seat.view)}
