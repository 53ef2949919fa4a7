"""Which of the visible devices are used, and by which worker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from slaunch.errors import DeviceError
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


def assign(devices: Sequence[Device], workers: int, several: bool = False) -> tuple[tuple[Device, ...], ...]:
    """Devices of each worker.

    A lone worker gets all. Otherwise each gets the one at its own index, and the rest stays unused; with `several`, all are dealt
    out in contiguous groups, the first ones larger by one where the numbers do not divide.

    Raises:
        DeviceError: there are devices, but fewer than workers.
    """
    if not devices:
        return ((),) * workers
    if len(devices) < workers:
        raise DeviceError(
            f"give each of {workers} workers a device",
            f"{len(devices)} visible: {','.join(device.label for device in devices)}",
            "start fewer workers (--nproc_per_node), ask for more devices, or hide them all (an empty visible list) to use none",
        )
    if workers > 1 and not several:
        return tuple((device,) for device in devices[:workers])
    size, larger = divmod(len(devices), workers)
    cuts = [index * size + min(index, larger) for index in range(workers + 1)]
    return tuple(tuple(devices[low:high]) for low, high in pairwise(cuts))
