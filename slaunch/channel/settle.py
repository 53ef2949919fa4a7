"""Waiting until what was sent has arrived."""

from __future__ import annotations

import selectors
import time

from slaunch.channel.link import Link
from slaunch.channel.wire import WireError

PAUSE_S = 0.002


def settle(links: list[Link], deadline_s: float, arrived: bool = True) -> list[tuple[Link, Exception]]:
    """Write all that is queued and wait until the peers' machines have acknowledged it, for at most `deadline_s` seconds.

    Args:
        links: to the peers.
        deadline_s: how long it may take.
        arrived: whether to wait for the acknowledgement, which a machine with nothing to send puts off by up to 40 ms.

    Returns:
        The links that broke meanwhile, each with what it broke of.
    """
    end = time.monotonic() + deadline_s
    broken: list[tuple[Link, Exception]] = []
    with selectors.DefaultSelector() as selector:
        for link in links:
            if link.waiting:
                selector.register(link.sock, selectors.EVENT_WRITE, link)
        while selector.get_map() and time.monotonic() < end:
            for key, _ in selector.select(max(0.0, end - time.monotonic())):
                broken += write_some(selector, key.data)
    lost = {link for link, _ in broken}
    left = [link for link in links if link not in lost] if arrived else []
    while left and time.monotonic() < end:
        if left[-1].unacknowledged():
            time.sleep(PAUSE_S)
        else:
            left.pop()
    return broken


def write_some(selector: selectors.BaseSelector, link: Link) -> list[tuple[Link, Exception]]:
    """Write to one link; leave the selector when there is nothing left, or when it broke."""
    try:
        link.write()
    except (OSError, WireError) as error:
        selector.unregister(link.sock)
        return [(link, error)]
    if not link.waiting:
        selector.unregister(link.sock)
    return []
