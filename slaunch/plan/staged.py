"""Where staged copies go: the same on every node. Pure."""

from __future__ import annotations

import os

from slaunch.frozen import dataclass
from slaunch.options import Options

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
"""Endings of files that are unpacked."""


@dataclass(frozen=True)
class Item:
    """One thing to copy.

    Attributes:
        source: the file, archive or folder, absolute.
        target: where its copy is on each node, absolute: the file, or the folder with the content.
        unpack: it is an archive, and what is in it is wanted.
    """

    source: str
    target: str
    unpack: bool


def folder(options: Options, job: str) -> str:
    """The folder of this job's copies on each node, told to workers as SLAUNCH_STAGE_DIR."""
    plain = "".join(char if char.isalnum() or char in "._-" else "_" for char in job)
    return os.path.join(options.stage_to, f"slaunch-stage-{os.getuid()}-{plain}")


def items(options: Options, job: str) -> tuple[Item, ...]:
    """What to copy, and where to."""
    return tuple(item(text, folder(options, job)) for text in options.stage)


def item(text: str, place: str) -> Item:
    """One entry of the option, SRC or SRC:DST."""
    source, _, target = text.partition(":")
    ending = next((each for each in ARCHIVES if source.endswith(each)), "")
    name = os.path.basename(source.rstrip("/")).removesuffix(ending)
    return Item(os.path.abspath(source), os.path.normpath(os.path.join(place, target or name)), bool(ending))
