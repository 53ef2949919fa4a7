"""A device that a framework knows by a plug-in of its own: type T has its visible list in <T>_VISIBLE_DEVICES."""

from __future__ import annotations

from slaunch.node.devices.listed import look_at
from slaunch.node.devices.values import TYPE, Found, View


def look(view: View) -> Found:
    """Devices of the type's visible list."""
    kind = view.env[TYPE]
    return look_at(view, kind, (f"{kind.upper()}_VISIBLE_DEVICES",))
