"""`slaunch explain --bind`: a node as a small map, as text for people or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from slaunch.node.cpulist import render
from slaunch.node.devices.links import Links
from slaunch.plan.values import Plan
from slaunch.rendezvous.values import Membership
from slaunch.report.bindtree import UNKNOWN, Tree, trees
from slaunch.report.style import counted

FORMAT = 1
"""Raised when a field changes its meaning or goes; new fields may come at any time."""

SIGNS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Sign of a core, by the local rank of its worker; further workers have the last one."""
IDLE, SHARED = ".", "+"
NO_LINKS: Links = {}


def map_json(plan: Plan, membership: Membership, links: Links = NO_LINKS) -> str:
    """All different nodes as one JSON object. `links`: of the devices of this machine."""
    return json.dumps({"format": FORMAT, "nodes": trees(plan, membership, links)}, indent=2)


def map_text(plan: Plan, membership: Membership, links: Links = NO_LINKS) -> str:
    """All different nodes for people."""
    return "\n\n".join("\n".join(node_lines(tree)) for tree in trees(plan, membership, links))


def node_lines(tree: Tree) -> list[str]:
    """A node for people."""
    hosts, workers = tree["hosts"], tree["workers"]
    others = f" and {counted(len(hosts) - 1, 'node')} like it" if len(hosts) > 1 else ""
    cores = sum(len(numa["cores"]) for place in tree["packages"] for numa in place["numa"])
    cpus = f"{len(tree['cpus'])} of {tree['online']} CPUs, {counted(cores, 'core')}"
    head = f"{hosts[0]}{others}: {cpus}, {counted(len(workers), 'worker')}"
    lines = [head, *(f"  {line}" for place in tree["packages"] for line in package_lines(place, workers))]
    lines += [f"  {line}" for line in worker_table(workers)]
    lines.append(f"  each sign is a core, by its worker's local rank; {IDLE} = nobody's, {SHARED} = several workers'")
    return lines + [f"  note: {note}" for note in tree["notes"]]


def package_lines(tree: Tree, workers: Sequence[Tree]) -> list[str]:
    """A package's lines."""
    cores = any(numa["cores"] for numa in tree["numa"])
    title = f"package {tree['package']}" if tree["package"] != UNKNOWN else "package ?" if cores else "elsewhere"
    return [title, *(f"  {line}" for numa in tree["numa"] for line in numa_lines(numa, workers))]


def numa_lines(tree: Tree, workers: Sequence[Tree]) -> list[str]:
    """A NUMA node's lines: its cores as signs, then what is near."""
    name = "NUMA ?" if tree["numa"] == UNKNOWN else f"NUMA {tree['numa']}"
    cpus = render(cpu for core in tree["cores"] for cpu in core["cpus"])
    lines = [f"{name}  {drawn(tree['cores'])}  CPUs {cpus}" if cpus else f"{name}  no core of ours"]
    for device in tree["devices"]:
        name = f"{device['kind']} {device['label']}"
        words = (name, device["pci"], device["name"], whose(device["workers"], workers), linked(device["links"]))
        lines.append("  " + "  ".join(word for word in words if word))
    for nic in tree["nics"]:
        speed = f"{nic['kind']} {nic['speed_mbps'] // 1000} Gbit/s" if nic["speed_mbps"] else nic["kind"]
        lines.append(f"  {nic['name']}  {speed}  {whose(nic['workers'], workers)}")
    return lines


def linked(links: Mapping[str, int]) -> str:
    """ "links: 4 to gpu 1, 4 to gpu 2"; "" for none."""
    return f"links: {', '.join(f'{count} to {far}' for far, count in links.items())}" if links else ""


def whose(local: Sequence[int], workers: Sequence[Tree]) -> str:
    """ "rank 3", "ranks 4-7", "nobody's", of these local ranks."""
    ranks = [workers[at]["rank"] for at in local]
    if not ranks:
        return "nobody's"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {render(ranks)}"


def drawn(cores: Sequence[Tree]) -> str:
    """A sign for each core, with a gap between caches."""
    text, cache = "", None
    for core in cores:
        gap = " " if cache not in (None, core["cache"]) else ""
        text, cache = text + gap + sign(core["workers"]), core["cache"]
    return text


def sign(workers: Sequence[int]) -> str:
    """A core's sign."""
    if len(workers) != 1:
        return SHARED if workers else IDLE
    return SIGNS[min(workers[0], len(SIGNS) - 1)]


def worker_table(workers: Sequence[Tree]) -> list[str]:
    """A line for each worker."""
    head = ("rank", "local", "threads", "NUMA", "memory", "devices", "network cards", "CPUs")
    rows = [head, *(worker_row(each) for each in workers)]
    used = [at for at in range(len(head)) if any(row[at] != "-" for row in rows[1:])]
    widths = [max(len(row[at]) for row in rows) for at in used]
    return ["  ".join(row[at].ljust(width) for at, width in zip(used, widths, strict=True)).rstrip() for row in rows]


def worker_row(tree: Tree) -> tuple[str, ...]:
    """A worker's cells; "-" where there is nothing to say."""
    memory = tree["memory"]
    return (
        str(tree["rank"]),
        str(tree["local_rank"]),
        str(tree["threads"]),
        render(tree["numa"]) or "-",
        f"{memory['policy']} {render(memory['nodes'])}" if memory else "-",
        ", ".join(tree["devices"]) or "-",
        ", ".join(tree["nics"]) or "-",
        render(tree["cpus"]) + {"slaunch": "", "launcher": " (its task's)", "": " (not bound)"}[tree["bound_by"]],
    )
