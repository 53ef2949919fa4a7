"""From a request to the script for sbatch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from slaunch.errors import MissingToolError, UsageError
from slaunch.frozen import replace
from slaunch.submit.gpus import Site, gpu_option
from slaunch.submit.render import arguments, directives, render
from slaunch.submit.values import Request
from slaunch.templates import find, text_of

GPUS = "gpus-per-node"


def script_of(request: Request, site: Callable[[], Site], command: Sequence[str], place: str) -> str:
    """The script of a job.

    Args:
        request: the job.
        site: asks what the site has; called only where the request has GPUs in it.
        command: the user's command line, to be told in the script.
        place: the folder of the program slaunch, which the job finds there whatever its PATH says.

    Raises:
        MissingToolError: there is no such template, or no Jinja2.
        UsageError: the template cannot be filled in.
        DeviceError: no node has the GPUs.
    """
    path = find(request.template, request.folders)
    text = text_of(path)
    parts = tuple(directives(component) for component in spread(in_the_sites_form(request, site)).components)
    if len(parts) == 1 and "components[1]" in text:
        seen = f"the template {request.template} has two components, the command line one"
        raise UsageError("fill in a template", seen, "put a colon between the options of the two: -N2 : -N1 --gpus-per-node=4")
    fields: dict[str, object] = {
        **request.fields,
        "directives": "\n#SBATCH hetjob\n".join(parts),
        "components": parts,
        "setup": "\n".join((f"export PATH={arguments((place,))}:$PATH", *request.setup)),
        "arguments": arguments(request.arguments),
    }
    head, _, body = render(text, path, fields).partition("\n")
    return f"{head}\n# Made by: {arguments(command)}\n{body}"


def in_the_sites_form(request: Request, site: Callable[[], Site]) -> Request:
    """The request with its GPUs as the site takes them."""
    if not any(GPUS in component for component in request.components):
        return request
    there = site()

    def formed(component: Mapping[str, str]) -> Mapping[str, str]:
        rest = {name: value for name, value in component.items() if name != GPUS}
        if GPUS not in component:
            return rest
        partition = component.get("partition", "")
        name, value = gpu_option(component[GPUS], partition, there, request.gpu_form, request.gpu_type)
        return {**rest, name: f"{rest[name]},{value}" if name in rest else value}

    return replace(request, components=tuple(map(formed, request.components)))


def spread(request: Request) -> Request:
    """The request with one task per node also in further components: a template says so for the first only."""
    first, *others = request.components
    tasks = {"ntasks-per-node": "1"}
    return replace(request, components=(first, *({**tasks, **other} for other in others)))


def own_folder() -> str:
    """The folder of the program slaunch.

    Raises:
        MissingToolError: it is not installed as a command.
    """
    called = os.path.abspath(sys.argv[0])
    places = (os.path.dirname(called) if os.path.basename(called) == "slaunch" else "", os.path.dirname(sys.executable))
    for folder in filter(None, places):
        if os.access(os.path.join(folder, "slaunch"), os.X_OK):
            return folder
    seen = f"no program slaunch beside {sys.executable}"
    raise MissingToolError("name slaunch in a script", seen, "pip install slaunch, and submit with the command of that name")
