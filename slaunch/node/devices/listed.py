"""Accelerators of which slaunch needs no more than their number: a visible list, else device files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slaunch.errors import DeviceError
from slaunch.node.devices.values import Found, View
from slaunch.node.devices.visible import first_set, repeated, tokens
from slaunch.node.files import names, problem
from slaunch.node.values import Device, Problem


def look_at(view: View, kind: str, variables: tuple[str, ...], folder: str = "", pattern: str = "") -> Found:
    """Devices of the first visible list that is set; else one for each device file.

    Args:
        view: where to look.
        kind: as in `Device.kind`.
        variables: its visible lists, the strongest first.
        folder, pattern: where its device files are, and their names with the ordinal as a group.
    """
    files = ordinals(view, folder, pattern)
    variable = first_set(view.env, variables)
    listed = tokens(view.env[variable]) if variable else None
    labels = tuple(map(str, files)) if listed is None else listed
    devices = tuple(Device(kind, position, label) for position, label in enumerate(labels))
    return Found(kind, devices, variable if listed is not None else "", problems=twice(variable, labels))


def ordinals(view: View, folder: str, pattern: str) -> tuple[int, ...]:
    """Numbers of the device files, ascending."""
    if not folder:
        return ()
    found = (re.fullmatch(pattern, name) for name in names(view.path(folder)))
    return tuple(sorted(int(match[1]) for match in found if match))


def twice(variable: str, labels: Sequence[str]) -> tuple[Problem, ...]:
    """A device named more than once."""
    found = repeated(labels)
    seen = f"{variable} names {', '.join(found)} twice"
    return (problem(DeviceError("use the visible devices", seen, "name each device once")),) if found else ()
