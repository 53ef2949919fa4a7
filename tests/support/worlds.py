"""Jobs at an etcd whose entry is kept for seconds instead of minutes, and a proof that no two worlds run at once."""

from __future__ import annotations

import os

FAST = """
import sys
from slaunch.agent import keeper
from slaunch.rendezvous import etcd_late
keeper.RENEW_S, keeper.TRUST_S, etcd_late.LEASE_S = 0.5, 6.0, 9
from slaunch.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""slaunch, as a program. In real life a hub trusts its entry for 90 s, and etcd keeps it for 120 s."""

WORLD = """
import fcntl, os, time
place, rank = os.environ["PLACE"], os.environ["RANK"]
if rank == "0":
    world = open(f"{place}/world", "a")
    try:
        fcntl.flock(world, fcntl.LOCK_EX | fcntl.LOCK_NB)
        said = "begins"
    except BlockingIOError:
        said = "runs beside another one"
    print(os.environ["WHO"], os.environ["SLAUNCH_ATTEMPT"], said, file=world, flush=True)
open(f"{place}/up.{os.environ['WHO']}.{os.environ['SLAUNCH_ATTEMPT']}.{os.environ['WORLD_SIZE']}.{rank}", "w").close()
while not os.path.exists(f"{place}/done"): time.sleep(0.02)
"""
"""A worker. As long as rank 0 lives it holds a lock, which the kernel takes from it when it is gone and not before."""


def worlds(place: str) -> list[str]:
    """What the first workers of all worlds have said."""
    try:
        with open(f"{place}/world") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def up(place: str, who: str, attempt: int, world: int) -> bool:
    """Whether all workers of a world have begun."""
    return all(os.path.exists(f"{place}/up.{who}.{attempt}.{world}.{rank}") for rank in range(world))
