"""The fingerprint that the nodes compare before a worker starts."""

from __future__ import annotations

import json
from dataclasses import fields

from slaunch.node.values import Device
from slaunch.plan.values import NodePlan, Plan

_PLAN = tuple(field.name for field in fields(Plan) if field.name not in ("nodes", "digest"))
_NODE = tuple(field.name for field in fields(NodePlan) if field.name not in ("address", "devices"))
_DEVICE = tuple(field.name for field in fields(Device))


def digest(plan: Plan) -> str:
    """SHA-256 over every field of the plan but the digest itself, in hexadecimal; the same on every machine and Python."""
    from hashlib import sha256

    encode = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
    found = sha256(encode([getattr(plan, name) for name in _PLAN]).encode())
    for node in plan.nodes:
        found.update(encode(_plain(node)).encode())
    return found.hexdigest()


def _plain(node: NodePlan) -> list[object]:
    """The node as nested lists of numbers and texts. `asdict` would copy every leaf and take ten times as long."""
    address = node.address
    return [
        *(getattr(node, name) for name in _NODE),
        (address.ip, address.interface, address.prefix, address.speed_mbps),
        [[[getattr(device, name) for name in _DEVICE] for device in devices] for devices in node.devices],
    ]
