"""Variables that keep communication libraries on the chosen network."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Interface names for Gloo, TensorPipe and NCCL, unless the user set them.

    Gloo otherwise binds to what the host name resolves to, often loopback (P23); names differ between nodes, so that each node
    tells its own (P25). NCCL prefers InfiniBand by itself and only needs its bootstrap network, on more than one node. `=` asks
    it for exactly this name; Gloo and TensorPipe know names only, so that a value in NCCL's syntax is replaced (P24).
    """
    interface = seat.node.address.interface
    if not interface:
        return {}
    values = {name: interface for name in ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME") if not plain(env.get(name, ""))}
    if len(seat.plan.nodes) > 1 and not env.get("NCCL_SOCKET_IFNAME"):
        values["NCCL_SOCKET_IFNAME"] = f"={interface}"
    return values


def plain(text: str) -> bool:
    """Whether it is a list of names, without NCCL's signs for "all but" and "exactly"."""
    return bool(text) and text[0] not in "^="
