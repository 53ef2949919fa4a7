"""The program that is to run, where one is named. Facts: `path`, `digest`, `problems` (wanted, seen, todo); empty without one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import ERROR, Check, Facts, Finding, Request, Trait
from slaunch.node.program import check_program, digest, script_path
from slaunch.options import Program

NAME = "script"


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Read the file, as a launch does."""
    if not request.program:
        return {}
    program = Program(request.program)
    return {
        "path": os.path.abspath(script_path(program.target, env) or program.target),
        "digest": digest(program, env, ""),
        "problems": [[each.wanted, each.seen, each.todo] for each in check_program(program, env)],
    }


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Whether it is there and can run."""
    problems = facts.get("problems", [])
    return [Finding(NAME, ERROR, f"cannot {wanted}: {seen}", "no worker would start", todo) for wanted, seen, todo in problems]


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    return [Trait(f"the content of {facts['path']}", facts["digest"], ERROR)] if facts else []


CHECK = Check(
    NAME,
    look,
    judge,
    traits,
    (
        "nodes would run different programs; slaunch refuses to start such a job (exit code 70)",
        "copy it again to that node, or wait until its file system shows the new content",
    ),
    asks="the file system of the program",
)
