"""What nodes that were started one by one go on: the user's words, and a number for the time being."""

from __future__ import annotations

import os
import shlex
import sys

from slaunch.channel import secret
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.seats import Wish

BY_HAND_S = 600.0
"""Default deadline: people need longer than schedulers to start something on several machines."""
SLOWEST_TELL_S = 60.0
TOKEN_BYTES = 6


def by_hand_deadline(ground: Ground, deadline: float) -> float:
    """A later deadline, unless the user has chosen one."""
    chosen = ground.options.origins.get("rendezvous_timeout_s", "default") != "default"
    return deadline if chosen else deadline + BY_HAND_S - ground.options.rendezvous_timeout_s


def bounds(ground: Ground) -> tuple[int, int]:
    """Least and most number of nodes: the user's, else the launcher's number of tasks."""
    least, most = ground.options.nnodes
    size = ground.task.slot.size
    return (least, most + ground.options.spares) if most else (size, size)


def own_wish(ground: Ground, serves: bool) -> Wish:
    """What this node says of itself. Where a launcher has numbered the tasks, its number is the wish."""
    slot = ground.task.slot
    rank = slot.rank if slot.size > 1 else ground.options.node_rank
    return Wish(rank, ground.facts.addresses[0].ip, ground.facts.host, serves)


def identity(ground: Ground) -> str:
    """What distinguishes this meeting from others at the same address: the user's name for the job."""
    return f"by hand/{ground.options.job_id or ground.task.allocation.job}"


def new_token() -> int:
    """A number to come under before the ranks are known."""
    return int.from_bytes(os.urandom(TOKEN_BYTES), "big")


def tell_how_to_join(ground: Ground, endpoint: str) -> None:
    """Print the command for the other nodes, ready to be copied into a shell."""
    command = shlex.join([sys.executable, "-m", "slaunch", "--master", endpoint, *sys.argv[1:]])
    ground.say(f"start on each other node:  cd {shlex.quote(os.getcwd())} && {command}")
    if secret.VARIABLE in ground.env:
        ground.say(f"with {secret.VARIABLE} set as here")
