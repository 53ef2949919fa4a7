"""Huawei Ascend NPUs. Source: CANN documentation, ASCEND_RT_VISIBLE_DEVICES; Ascend Docker Runtime, ASCEND_VISIBLE_DEVICES."""

from __future__ import annotations

import re

from slaunch.frozen import replace
from slaunch.node.cpulist import parse
from slaunch.node.devices.listed import look_at
from slaunch.node.devices.values import Found, View

VARIABLES = ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES")
RANGE = re.compile(r"\d+-\d+")


def look(view: View) -> Found:
    """NPUs of the visible list, else all `/dev/davinci<n>`."""
    return look_at(unfolded(view), "npu", VARIABLES, "dev", r"davinci(\d+)")


def unfolded(view: View) -> View:
    """The container runtime's list may hold ranges, "0-3,6": written out."""
    items = view.env.get(VARIABLES[1], "").split(",")
    if not any(RANGE.fullmatch(item) for item in items):
        return view
    numbers = (map(str, parse(item)) if RANGE.fullmatch(item) else (item,) for item in items)
    return replace(view, env={**view.env, VARIABLES[1]: ",".join(each for some in numbers for each in some)})
