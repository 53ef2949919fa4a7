"""Jobs at an etcd whose entry is kept for seconds instead of minutes, and a proof that no two worlds run at once."""

from __future__ import annotations

import os
import re

from slaunch.node.netlink import raw_addresses

FAST = """
import os, sys
from slaunch.agent import keeper
from slaunch.rendezvous import enrol, etcd_late
keeper.RENEW_S, keeper.TRUST_S, keeper.FIRST_S, etcd_late.LEASE_S = 0.5, 6.0, 4.0, 9
if "PATIENT" in os.environ:
    keeper.TRUST_S, keeper.FIRST_S, etcd_late.LEASE_S = 45.0, 45.0, 60
enrol.LAST_CALL_S = float(os.environ.get("LAST_CALL", 10))
from slaunch.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""slaunch, as a program. In real life a hub trusts its entry for 90 s, a new one for 25 s, and etcd keeps it for 120 s."""

WORLD = """
import fcntl, glob, os, signal, time
if "STUBBORN" in os.environ: signal.signal(signal.SIGTERM, signal.SIG_IGN)
place, rank = os.environ["PLACE"], os.environ["RANK"]
world = f"{os.environ['WHO']}.{os.environ['SLAUNCH_ATTEMPT']}"
alive = open(f"{place}/alive.{world}.{rank}", "w")
fcntl.flock(alive, fcntl.LOCK_EX)

def lives(other):
    with open(other) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

others = [path for path in glob.glob(f"{place}/alive.*") if not path.startswith(f"{place}/alive.{world}.") and lives(path)]
if rank == "0" or others:
    said = f"runs beside {sorted(map(os.path.basename, others))}" if others else "begins"
    with open(f"{place}/world", "a") as file:
        print(world.replace(".", " "), said, file=file, flush=True)
open(f"{place}/up.{world}.{os.environ['WORLD_SIZE']}.{rank}", "w").close()
while not os.path.exists(f"{place}/done"): time.sleep(0.02)
"""
"""A worker. As long as it lives it holds a lock, which the kernel takes from it when it is gone and not before. It looks at those
of all other worlds once it has its own, so of two that run at once one sees the other."""


def steady_network() -> list[str]:
    """Options for agents on this machine: not by the bridges of virtual clusters, which come and go while other tests run."""
    steady = [raw.interface for raw in raw_addresses() if raw.wide and not re.match(r"vc\d*-|x\d+", raw.interface)]
    return ["--network", steady[0]] if steady else []


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
