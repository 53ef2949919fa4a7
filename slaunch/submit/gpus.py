"""The form in which a site takes a request for GPUs: `--gpus-per-node` or `--gres`, with a type or without. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slaunch.errors import DeviceError, UsageError
from slaunch.frozen import dataclass

CONS_TRES = "select/cons_tres"
"""The only selection plug-in that knows --gpus-per-node and its kin (Slurm's guide to generic resources)."""


@dataclass(frozen=True)
class Offer:
    """GPUs of some nodes of a partition.

    Attributes:
        partition: its name.
        default: whether jobs that name no partition go there.
        type: e.g. "a100"; "" = the site names none.
        count: how many a node has.
    """

    partition: str
    default: bool
    type: str
    count: int


@dataclass(frozen=True)
class Site:
    """What Slurm's controller says of a site: the selection plug-in, and the GPUs that its nodes have."""

    select: str
    offers: tuple[Offer, ...]


def read_site(config: str, nodes: str) -> Site:
    """The site, from `scontrol show config` and `sinfo --noheader --format=%P|%G`."""
    match = re.search(r"^SelectType\s*=\s*(\S+)", config, re.MULTILINE)
    lines = (line.partition("|") for line in nodes.splitlines() if "|" in line)
    found = (offer for partition, _, gres in lines for offer in offers(partition.strip(), gres.strip()))
    return Site(match[1] if match else "", tuple(dict.fromkeys(found)))


def offers(partition: str, gres: str) -> Iterable[Offer]:
    """The GPUs in a list of generic resources, e.g. "gpu:a100:4(S:0-1),nvme:1"."""
    for entry in re.sub(r"\([^)]*\)", "", gres).split(","):
        name, _, rest = entry.partition(":")
        kind, _, count = rest.rpartition(":")
        if name == "gpu" and count.isdecimal():
            yield Offer(partition.rstrip("*"), partition.endswith("*"), kind, int(count))


def gpu_option(wanted: str, partitions: str, site: Site, form: str = "auto", kind: str = "") -> tuple[str, str]:
    """sbatch's option, without its dashes, and its value.

    Args:
        wanted: GPUs of each node, "N" or "TYPE:N", as the user gives it.
        partitions: the user's partition or partitions; "" = the default.
        site: what the controller says.
        form: "gpus-per-node", "gres", or "auto": the former where the site knows it.
        kind: type to name where the user names none; "" = none.

    Raises:
        UsageError: `wanted` is no request.
        DeviceError: no node there has such GPUs.
    """
    match = re.fullmatch(r"(?:([A-Za-z][\w.-]*):)?([0-9]+)", wanted)
    if not match:
        raise UsageError("ask for GPUs", f"--gpus-per-node={wanted}", "write --gpus-per-node=N or TYPE:N")
    kind, count = match[1] or kind, int(match[2])
    check(kind, count, partitions, site)
    value = f"{kind}:{count}" if kind else str(count)
    if form == "gres" or (form == "auto" and site.select not in ("", CONS_TRES)):
        return "gres", f"gpu:{value}"
    return "gpus-per-node", value


def check(kind: str, count: int, partitions: str, site: Site) -> None:
    """Make sure that some nodes have such GPUs. A controller that tells of no GPU at all is not believed: a federation, say."""
    there = offered(partitions, site)
    if not site.offers or any(offer.count >= count and kind in ("", offer.type) for offer in there):
        return
    where = f"partition {partitions}" if partitions else "the default partition"
    have = ", ".join(map(named, there)) or "none"
    if not there or (kind and kind not in {offer.type for offer in there}):
        others = sorted({offer.partition for offer in site.offers if kind in ("", offer.type)} - set(partitions.split(",")))
        todo = f"choose a partition: {', '.join(others)}" if others else "see `sinfo -o '%P %G'` for what there is"
    else:
        todo = "ask for fewer GPUs on each node, and for more nodes"
    asked = f"{kind}:{count}" if kind else str(count)
    raise DeviceError(f"ask for {asked} GPUs on each node", f"nodes of {where} have {have}", todo)


def offered(partitions: str, site: Site) -> tuple[Offer, ...]:
    """What the nodes of these partitions have; of the default one if none is named."""
    chosen = partitions.split(",")
    return tuple(offer for offer in site.offers if (offer.partition in chosen if partitions else offer.default))


def named(offer: Offer) -> str:
    """ "4 GPUs", "4 of type a100"."""
    return f"{offer.count} of type {offer.type}" if offer.type else f"{offer.count} GPUs"


def hint(wanted: str, partitions: str, site: Site) -> str:
    """A line for a user who may get GPUs of several types; "" if that cannot be."""
    types = sorted({offer.type for offer in offered(partitions, site) if offer.type})
    if ":" in wanted or len(types) < 2:
        return ""
    return f"nodes there have GPUs of several types ({', '.join(types)}): --gpus-per-node={types[0]}:{wanted} would choose one"
