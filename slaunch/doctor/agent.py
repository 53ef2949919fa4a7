"""The doctor's hand on a node: started by srun, it looks when it is told to, and tells what it saw.

Orders come as lines of JSON on standard input, which srun gives to all tasks alike; each has a number, and is answered by one
value with that number. The end of the input, or of the time, ends it.

    {"do": "look", "request": …, "token": …}    run all checks
    {"do": "time"}                              the time of day
    {"do": "reach", "nodes": …, "credential"}   connect to all other nodes
    {"do": "send", "shift": n, "net": k}        send to the node that comes n places later
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from slaunch.channel.munge import MungeError, decode, encode
from slaunch.doctor.lines import pieces
from slaunch.doctor.looks import look_at_all, plain
from slaunch.doctor.reach import Doors, Neighbour, everybody, failures
from slaunch.doctor.send import send
from slaunch.doctor.values import Request
from slaunch.node.nics import read_addresses

LIFE_S = 90
"""No examination takes longer; whoever started this one is gone."""


def main() -> int:
    """Serve until the input ends."""
    signal.alarm(LIFE_S)
    agent = Agent(dict(os.environ))
    try:
        for line in sys.stdin:
            order = json.loads(line)
            agent.say({**agent.obey(order), "number": order["number"]})
    finally:
        agent.close()
    return 0


class Agent:
    """One node's agent; it knows who the others are once it has been told."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.name = env.get("SLURMD_NODENAME") or os.uname().nodename
        self.sender = f"{self.name}:{os.getpid()}"
        self.doors: Doors | None = None
        self.nodes: tuple[Neighbour, ...] = ()
        self.token = b""

    def say(self, value: dict[str, Any]) -> None:
        """Tell one value."""
        for line in pieces(self.sender, value):
            os.write(1, f"{line}\n".encode())  # in one piece, whatever Python buffers

    def obey(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an order."""
        return {"look": self.look, "time": self.time, "reach": self.reach, "send": self.send}[order["do"]](order)

    def look(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """All checks, and where this node listens."""
        self.token = order["token"].encode()
        asked = order["request"]
        request = Request(asked["quick"], tuple(asked["scratch"]), asked["program"])
        found = read_addresses()
        addresses = [[each.ip, each.interface, each.prefix, each.speed_mbps] for each in found]
        self.doors = Doors.open([each.ip for each in found], self.token)
        outcomes = {name: plain(outcome) for name, outcome in look_at_all(request, self.env).items()}
        return {"outcomes": outcomes, "addresses": addresses, "port": self.doors.port}

    def time(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """The time of day."""
        return {"time_s": time.time()}

    def reach(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Which nodes cannot be reached, and whether the doctor's credential is good here."""
        self.nodes = everybody(order["nodes"])
        return {"failures": failures(self.sender, self.nodes), "credential": judged(order["credential"])}

    def send(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """How fast another node can be sent to."""
        return send(self.sender, self.nodes, order["shift"], order["net"], self.token)

    def close(self) -> None:
        """Listen no more."""
        if self.doors:
            self.doors.close()


def credential() -> str:
    """A credential of the place where the doctor is; "" if none can be made."""
    try:
        return encode(b"slaunch doctor")
    except MungeError:
        return ""


def judged(text: str) -> str:
    """What is wrong with a credential of another node, "" if nothing is; where munge does not work here, its own check tells."""
    if not text or not credential():
        return ""
    try:
        decode(text)
    except MungeError as error:
        return str(error)
    return ""
