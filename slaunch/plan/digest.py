"""The fingerprint that the nodes compare before a worker starts."""

from __future__ import annotations

from operator import attrgetter

from slaunch.frozen import names
from slaunch.hashing import sha256
from slaunch.node.values import Address, Device
from slaunch.plan.values import NodePlan, Plan

# The value of every field as one tuple. `dataclasses.astuple` copies each leaf and takes ten times as long.
_plan = attrgetter(*(name for name in names(Plan) if name not in ("nodes", "digest")))
_node = attrgetter(*(name for name in names(NodePlan) if name not in ("address", "devices")))
_address = attrgetter(*names(Address))
_device = attrgetter(*names(Device))


def digest(plan: Plan) -> str:
    """SHA-256 over every field of the plan but the digest itself, in hexadecimal; the same on every machine and Python.

    The fields are numbers, texts and tuples of them, whose `ascii` form is unambiguous.
    """
    found = sha256(ascii(_plan(plan)).encode())
    for node in plan.nodes:
        found.update(_text(node).encode())
    return found.hexdigest()


def _text(node: NodePlan) -> str:
    devices = ";".join([",".join([ascii(_device(device)) for device in own]) for own in node.devices])
    return f"{_node(node)!a}{_address(node.address)!a}{devices}\n"
