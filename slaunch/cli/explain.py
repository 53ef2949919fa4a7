"""`slaunch explain`: everything slaunch would do, and why, without starting anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from slaunch.allocation.claims import heed
from slaunch.allocation.select import read, read_file, sightings
from slaunch.allocation.values import Shell, Task
from slaunch.cli.options import read_options
from slaunch.errors import UsageError
from slaunch.frozen import dataclass, replace
from slaunch.launch import current, look
from slaunch.making import plan_for
from slaunch.node.devices.links import read_links
from slaunch.options import Options
from slaunch.plan.assume import as_components, assume
from slaunch.plan.binding import POLICIES
from slaunch.plan.prelude import crew, lone
from slaunch.plan.values import Plan, WorkerSpec
from slaunch.rendezvous.meet import meet
from slaunch.rendezvous.values import Membership
from slaunch.report.bindmap import map_json, map_text
from slaunch.report.explain import explain_json, explain_text
from slaunch.selfcall import own_command
from slaunch.slurm.start import start_call


@dataclass(frozen=True)
class Request:
    """What `slaunch explain` was asked: the form of the answer, whose environment, the launch to explain, and what of it."""

    json: bool
    step: bool
    env_file: str
    rest: tuple[str, ...]
    bind: bool = False


@dataclass(frozen=True)
class Scene:
    """Where the launch would happen: the environment, the host's name ("" = unknown), and how to read files."""

    env: Mapping[str, str]
    host: str
    read_text: Callable[[str], str]


def explain(args: Sequence[str], env: Mapping[str, str]) -> int:
    """Print the explanation on the first task and return 0.

    Raises:
        SlaunchError: as a launch of the same command line would.
    """
    request = parse(args)
    scene = read_scene(request.env_file) if request.env_file else Scene(env, os.uname().nodename, read_file)
    options = read_options(request.rest, scene.env)
    standing = read(scene.env, options.scheduler, scene.host, scene.read_text)
    live = not request.env_file
    standing, options = heed(current(standing) if live else standing, options)
    text = answer(request, options, standing, scene.env, live)
    if isinstance(standing, Shell) or standing.slot.rank == 0 or not live:
        print(text)
    return 0


def parse(args: Sequence[str]) -> Request:
    """Take explain's own flags off the front of `args`; the rest is a launch's command line."""
    rest = list(args)
    json = step = bind = False
    env_file = ""
    policy: list[str] = []
    while rest and rest[0] in ("--json", "--step", "--env", "--bind"):
        flag = rest.pop(0)
        json, step, bind = json or flag == "--json", step or flag == "--step", bind or flag == "--bind"
        if flag == "--bind" and rest and rest[0].partition(":")[0] in POLICIES:
            policy = [flag, rest.pop(0)]  # the launch's option of that name asks for the map as well
        if flag == "--env":
            if not rest:
                raise UsageError("replay a recorded environment", "--env without a file", "write --env FILE")
            env_file = rest.pop(0)
    return Request(json, step, env_file, (*policy, *rest), bind)


def read_scene(path: str) -> Scene:
    """A recorded environment: lines NAME=VALUE as `env` prints them, a JSON object of variables, or a recording of this project's
    tests ("tasks", each with "host" and "env", and the "files" that variables name), of which the first task is taken.

    Raises:
        UsageError: if the file cannot be read or is none of these.
    """
    import json

    try:
        text = read_file(path)
        if not text.lstrip().startswith("{"):
            return Scene(dict(line.split("=", 1) for line in text.splitlines() if "=" in line), "", read_file)
        data = json.loads(text)
        first = data["tasks"][0] if "tasks" in data else {"env": data.get("env", data)}
        env = {str(name): str(value) for name, value in first["env"].items()}
        return Scene(env, str(first.get("host", "")), recorded_files(data.get("files", {})))
    except (OSError, ValueError, AttributeError, LookupError, TypeError) as error:
        todo = "give a file made by `env`, or a JSON object of variables"
        raise UsageError("replay a recorded environment", f"{path}: {error}", todo) from None


def recorded_files(contents: Mapping[str, str]) -> Callable[[str], str]:
    """Reads the files of a recording, and those of this machine where it has none of that name."""
    return lambda path: contents[path] if path in contents else read_file(path)


def answer(request: Request, options: Options, standing: Task | Shell, env: Mapping[str, str], live: bool) -> str:
    """The whole explanation as text or JSON."""
    call = None
    if isinstance(standing, Shell):
        call = start_call(standing, env, (*own_command(sys.argv[0]), *request.rest), options.step_args)
        if request.step:
            import shlex

            return shlex.join(call.argv)
    plan, membership = foresee(options, standing, env, live)
    if request.bind:
        draw = map_json if request.json else map_text
        return draw(plan, membership, read_links(membership.facts[membership.rank].devices) if live else {})
    specs = everything(plan, options, env)
    render = explain_json if request.json else explain_text
    return render(standing, sightings(env), membership, plan, specs, options, call)


def everything(plan: Plan, options: Options, env: Mapping[str, str]) -> tuple[WorkerSpec, ...]:
    """All processes of the plan, by rank; a step before the workers comes last, as its rank is beyond theirs."""
    if plan.layout == "task":
        return tuple(lone(plan, rank, env, options) for rank in range(plan.world))
    found = [spec for node in plan.nodes for spec in crew(plan, node.index, env, options)]
    return tuple(sorted(found, key=lambda spec: spec.rank))


def foresee(options: Options, standing: Task | Shell, env: Mapping[str, str], live: bool) -> tuple[Plan, Membership]:
    """The plan: from a real meeting where all tasks of a step are here, else with every node taken to be like this one."""
    facts, reserved = look(env, replace(options, log_dir=""))
    reserved.release()
    if live and isinstance(standing, Task) and standing.slot.size > 1:
        with meet(standing, facts, options, env, lambda line: None) as meeting:
            return plan_for(meeting.membership, options, standing.allocation, env), meeting.membership
    everyone = as_components(standing, options, assume(standing, facts))
    rank = standing.slot.rank if isinstance(standing, Task) else 0
    membership = Membership(everyone, rank, 0, "none", "assumed: every node like this one, ports chosen at the start", b"")
    return plan_for(membership, options, standing.allocation, env), membership
