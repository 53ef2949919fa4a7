"""Further networks of the cluster's nodes, some of which lead nowhere."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

from support.cluster import Cluster


@contextlib.contextmanager
def network(cluster: Cluster, interface: str, prefix: str, dead: str = "") -> Iterator[None]:
    """One more network of all nodes: `prefix`.1 on n1, and so on. The card of the node `dead` is up, but leads nowhere."""
    tag = f"x{cluster._instance}{interface}"
    ip("link", "add", tag, "type", "bridge")
    try:
        ip("link", "set", tag, "up")
        for number, node in enumerate(cluster.nodes, 1):
            space = f"vc{cluster._instance}-{node}"
            ip("link", "add", f"{tag}{node}", "type", "veth", "peer", "name", interface, "netns", space)
            if node != dead:
                ip("link", "set", f"{tag}{node}", "master", tag)
            ip("link", "set", f"{tag}{node}", "up")
            ip("-n", space, "addr", "add", f"{prefix}.{number}/24", "dev", interface)
            ip("-n", space, "link", "set", interface, "up")
        yield
    finally:
        for node in cluster.nodes:
            ip("link", "del", f"{tag}{node}", check=False)
        ip("link", "del", tag)


def ip(*args: str, check: bool = True) -> None:
    subprocess.run(["ip", *args], check=check, capture_output=True, timeout=20)
