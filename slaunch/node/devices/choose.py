"""Which of the visible devices are used, and by which worker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from slaunch.errors import DeviceError, UsageError
from slaunch.node.devices.values import Found
from slaunch.node.values import Device


def select(found: Found, labels: Sequence[str]) -> tuple[Device, ...]:
    """The devices that the user named, in that order; all for no names. Their positions in the visible list stay as they are.

    Raises:
        DeviceError: a label is not in the visible list, or is named twice.
    """
    if not labels:
        return found.devices
    if found.kind == "ipu":
        return first_few(found, labels)
    by_label = {device.label: device for device in found.devices}
    unknown = [label for label in labels if label not in by_label]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if unknown or twice:
        wrong = f"{', '.join(unknown)} not there" if unknown else f"{', '.join(twice)} named twice"
        raise DeviceError(
            f"use the devices {','.join(labels)}",
            f"{wrong}; {found.variable or 'this machine'} has {','.join(by_label) or 'no device'}",
            "name devices of that list in --devices",
        )
    return tuple(by_label[label] for label in labels)


def first_few(found: Found, labels: Sequence[str]) -> tuple[Device, ...]:
    """IPUs are asked for by number: `--devices 4` means four of them."""
    count = int(labels[0]) if len(labels) == 1 and labels[0].isdecimal() else 0
    if 0 < count <= len(found.devices):
        return found.devices[:count]
    raise DeviceError(
        f"use the IPUs {','.join(labels)}",
        f"this machine has {len(found.devices)}",
        "give their number in --devices, e.g. --devices 4",
    )


def assign(devices: Sequence[Device], workers: int, each: int = 0, sharing: int = 1) -> tuple[tuple[Device, ...], ...]:
    """Devices of each worker, in contiguous groups.

    Args:
        devices: those to share out, in order.
        workers: number of workers.
        each: devices of each worker; 0 = one, and the rest stays unused, but a lone worker gets all; -1 = all are dealt out, the
            first groups larger by one where the numbers do not divide.
        sharing: how many workers may have the same device.

    Raises:
        DeviceError: there are devices, but fewer than that takes.
        UsageError: workers are to share devices and to have several.
    """
    if sharing > 1 and each:
        seen = f"--workers-per-device {sharing} and --devices-per-worker {each if each > 0 else 'all'}"
        raise UsageError("share out devices", seen, "give one of them")
    if not devices:
        return ((),) * workers
    if len(devices) * sharing < workers * max(1, each):
        raise too_few(devices, workers, each, sharing)
    if sharing > 1:
        return tuple((devices[worker // sharing],) for worker in range(workers))
    if each > 0 or (workers > 1 and not each):
        size = max(1, each)
        return tuple(tuple(devices[worker * size : (worker + 1) * size]) for worker in range(workers))
    size, larger = divmod(len(devices), workers)
    cuts = [index * size + min(index, larger) for index in range(workers + 1)]
    return tuple(tuple(devices[low:high]) for low, high in pairwise(cuts))


def too_few(devices: Sequence[Device], workers: int, each: int, sharing: int) -> DeviceError:
    """The error of more workers than the devices are for."""
    share = f"{each} devices" if each > 1 else "a device"
    wanted = f"give each of {workers} workers {share}" + (f", {sharing} to a device" if sharing > 1 else "")
    return DeviceError(
        wanted,
        f"{len(devices)} visible: {','.join(device.label for device in devices)}",
        "start fewer workers (--nproc_per_node), ask for more devices, let workers share them (--workers-per-device), or hide "
        "them all (an empty visible list) to use none",
    )
