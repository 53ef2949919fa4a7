"""One agent as a process of its own: `python one_agent.py SETTINGS.json`. The agents of a job meet over 127.0.0.1."""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import time
from importlib import import_module
from typing import Any

from slaunch.agent.attempts import Again
from slaunch.agent.policy import active_of, policy_of, restarts
from slaunch.agent.run import run
from slaunch.channel.dial import Caller, Dialer
from slaunch.channel.door import Door
from slaunch.channel.hub import Hub
from slaunch.channel.listen import listen
from slaunch.channel.spoke import Spoke
from slaunch.channel.star import Solo, Star
from slaunch.channel.succession import Dynasty, Line
from slaunch.frozen import dataclass, replace
from slaunch.node.health import Health, Subject, look
from slaunch.node.ports import reserve
from slaunch.node.values import Address, Device
from slaunch.options import Options, Program
from slaunch.plan.values import EnvFile, NodePlan, Plan, WorkerSpec
from slaunch.rendezvous.values import Membership
from slaunch.report.json import render_json
from slaunch.report.text import render

SECRET = b"a secret of thirty-two bytes ...."


def open_star(index: int, size: int, port_file: str) -> Star:
    """The channel, which survives its hub; each agent writes the port where it listens to a file."""
    if size == 1:
        return Solo()
    own = listen(("127.0.0.1",), 0)
    tell_port(own, f"{port_file}.{index}")
    first = open_hub(size, port_file) if index == 0 else open_spoke(index, size, port_file)
    targets = tuple((("127.0.0.1", read_port(f"{port_file}.{each}")),) for each in range(size))
    return Dynasty(first, Line("test", SECRET, targets, f"n{index}"), own)


def tell_port(sockets: list[socket.socket], path: str) -> None:
    with open(path + ".part", "w") as file:
        file.write(str(sockets[0].getsockname()[1]))
    os.rename(path + ".part", path)


def read_port(path: str) -> int:
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path) as file:
        return int(file.read())


def open_spoke(index: int, size: int, port_file: str) -> Spoke:
    port = read_port(port_file)
    caller = Caller("test", index, size, f"n{index}", os.getpid(), os.urandom(8).hex())
    link = Dialer([("127.0.0.1", port)], caller, lambda by, hint: SECRET).dial(time.monotonic() + 20)
    assert link is not None
    return Spoke(link, index, size)


def open_hub(size: int, port_file: str) -> Hub:
    sockets = listen(("127.0.0.1",), 0)
    tell_port(sockets, port_file)
    hub = Hub(sockets, 0, size, Door("test", SECRET))
    with selectors.DefaultSelector() as selector:
        hub.register(selector)
        while hub.missing():
            for key, _ in selector.select(0.1):
                key.data()
    hub.close_door()
    return hub


def make_plan(settings: dict[str, Any]) -> Plan:
    commands = settings["commands"]
    nodes, first = [], 0
    for index, here in enumerate(commands):
        n = len(here)
        ranks = tuple(range(first, first + n))
        host, address = f"n{index}", Address("127.0.0.1", "lo", 8)
        nodes.append(NodePlan(index, host, address, first, ranks, (0,) * n, (), ((),) * n, ((),) * n, (1,) * n, ""))
        first += n
    return Plan("job", 0, "collective", "agent", first, tuple(nodes), (), (), settings["log_dir"], "digest")


def make_spec(plan: Plan, index: int, local_rank: int, settings: dict[str, Any]) -> WorkerSpec:
    rank = plan.nodes[index].ranks[local_rank]
    env = {"RANK": str(rank), "LOCAL_RANK": str(local_rank), **settings.get("worker_env", {})}
    files = tuple(EnvFile(*file) for file in settings.get("files", ()))
    argv = tuple(settings["commands"][index][local_rank])
    cpus = tuple(settings.get("cpus", ()))
    spec = WorkerSpec(rank, local_rank, index, argv, env, ("DROP_ME",), cpus, (), f"workerlog.{rank}", files)
    return replace(spec, err_name=f"workerlog.{rank}.err") if settings.get("apart") else spec


@dataclass(frozen=True)
class Fact:
    """All that these tests' plans need to know of a node: its number and its ports."""

    node: int
    ports: tuple[int, ...]


def again(settings: dict[str, Any], own: int, options: Options, active: int) -> Again:
    """Further attempts: as many workers on each node that is left, and ports of their own."""
    commands = settings["commands"]

    def plan(members: Any, attempt: int) -> Plan:
        left = {**settings, "commands": [commands[fact.node] for fact in members.facts]}
        made = make_plan(left)
        nodes = tuple(replace(node, ports=fact.ports) for node, fact in zip(made.nodes, members.facts, strict=True))
        return replace(made, attempt=attempt, nodes=nodes, digest=f"{attempt} {[node.ports for node in nodes]}")

    def specs(made: Plan, index: int) -> tuple[WorkerSpec, ...]:
        mine = {**settings, "commands": [commands[own]] * len(made.nodes)}
        return tuple(told(make_spec(made, index, i, mine), made) for i in range(len(made.nodes[index].ranks)))

    facts: Any = tuple(Fact(node, ()) for node in range(len(commands)))
    membership = Membership(facts, own, 0, "test", "", b"")
    health = (lambda: look_at(settings, own)) if "health" in settings else None
    policy = replace(policy_of(options, active), new_ports=True)
    return Again(membership, lambda: reserve(len(commands[own]), {}), plan, specs, health, policy)


def look_at(settings: dict[str, Any], own: int) -> Health:
    """A real look at a folder of this node's; a file "hangs" in it makes it take for ever."""
    folder = f"{settings['health']}.{own}"
    while os.path.exists(f"{folder}/hangs"):
        time.sleep(0.02)
    return look(Subject((), (), (), (folder,)), {})


def told(spec: WorkerSpec, plan: Plan) -> WorkerSpec:
    node = plan.nodes[spec.node]
    own = {"ATTEMPT": str(plan.attempt), "WORLD": str(plan.world), "PORT": str(node.ports[spec.local_rank])}
    return replace(spec, set_env={**spec.set_env, **own})


def main(settings: dict[str, Any]) -> int:
    index = settings["index"]
    options = Options(Program("x"), **settings.get("options", {}))
    size = len(settings["commands"])
    active = active_of(size, options)
    plan = make_plan({**settings, "commands": settings["commands"][:active]})
    specs = tuple(make_spec(plan, index, i, settings) for i in range(len(plan.nodes[index].ranks))) if index < active else ()
    star = open_star(index, size, settings["port_file"])
    devices = tuple(Device(**device) for device in settings.get("devices", ()))
    for name, seconds in settings.get("limits", {}).items():
        module, _, constant = name.rpartition(".")
        assert hasattr(import_module(f"slaunch.agent.{module}"), constant)
        setattr(import_module(f"slaunch.agent.{module}"), constant, seconds)
    further = again(settings, index, options, active) if restarts(options) or settings.get("new_ports") else None
    hosts = tuple(f"n{each}" for each in range(size))
    report = run(plan, index, specs, star, dict(os.environ), options, devices, further, hosts=hosts)
    with open(settings["report"], "w") as file:
        file.write(render_json(report))
    if report.speaks:
        print(render(report), file=sys.stderr, flush=True)
    return report.code


if __name__ == "__main__":
    with open(sys.argv[1]) as settings_file:
        sys.exit(main(json.load(settings_file)))
