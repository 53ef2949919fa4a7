"""MUNGE, by which Slurm knows who asks. Facts: `works`, `error`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slaunch.channel.munge import MungeError, decode, encode
from slaunch.doctor.values import ERROR, Check, Facts, Finding, Request

NAME = "munge"


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Make a credential and read it."""
    try:
        decode(encode(b"slaunch doctor"))
    except MungeError as error:
        return {"works": False, "error": str(error)}
    return {"works": True, "error": ""}


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Whether it works, where this Slurm uses it."""
    if facts["works"] or not uses_munge(site):
        return []
    means = "Slurm's tools, and slaunch's own meeting of nodes, cannot prove there who you are: steps fail to start"
    todo = "on that node: `munge -n | unmunge`, `systemctl status munge`, rights of /run/munge; tell the administrator"
    return [Finding(NAME, ERROR, facts["error"], means, todo)]


def uses_munge(site: Facts) -> bool:
    """Whether Slurm trusts MUNGE; if its settings are unknown, most probably."""
    return bool(site) and "munge" in site.get("config", {}).get("AuthType", "munge")


def foreign(error: str, node: str) -> Finding:
    """A node that cannot read a credential of this one."""
    return Finding(
        NAME,
        ERROR,
        f"a credential made where `slaunch doctor` was called is not accepted: {error}",
        "that node has another munge key, or a clock far off: steps fail there",
        "compare /etc/munge/munge.key (its checksum) and the clocks; tell the administrator",
        (node,),
    )


CHECK = Check(NAME, look, judge, asks="munged")
