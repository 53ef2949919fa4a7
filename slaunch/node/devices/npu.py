"""Huawei Ascend NPUs. Source: CANN documentation, ASCEND_RT_VISIBLE_DEVICES; Ascend Docker Runtime, ASCEND_VISIBLE_DEVICES."""

from __future__ import annotations

from slaunch.frozen import replace
from slaunch.node.cpulist import parse, render
from slaunch.node.devices.listed import look_at
from slaunch.node.devices.values import Found, View

VARIABLES = ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES")


def look(view: View) -> Found:
    """NPUs of the visible list, else all `/dev/davinci<n>`."""
    return look_at(unfolded(view), "npu", VARIABLES, "dev", r"davinci(\d+)")


def unfolded(view: View) -> View:
    """The container runtime's list may hold ranges, "0-3,6": written out."""
    text = view.env.get(VARIABLES[1], "")
    try:
        numbers = parse(text)
    except ValueError:
        return view
    if not numbers or render(numbers) == text == ",".join(map(str, numbers)):
        return view
    return replace(view, env={**view.env, VARIABLES[1]: ",".join(map(str, numbers))})
