"""Where the sbatch templates are. `slaunch/sbatch_templates` is a link to the folder at the top of the source tree; an installed
package has copies there, so that one path is right everywhere. Users and sites may have folders of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from slaunch.errors import MissingToolError

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sbatch_templates")
ENDING = ".sbatch"


def names(folder: str = FOLDER) -> tuple[str, ...]:
    """Names of the templates in a folder, without their `.sbatch`; () if there is no such folder."""
    try:
        return tuple(sorted(file[: -len(ENDING)] for file in os.listdir(folder) if file.endswith(ENDING)))
    except OSError:
        return ()


def path(name: str) -> str:
    """Path of the file of one of slaunch's own templates.

    Args:
        name: e.g. "collective".

    Raises:
        MissingToolError: there is no template of that name.
    """
    return find(name, ())


def find(name: str, folders: Sequence[str]) -> str:
    """Path of a template's file: itself if `name` is a path, else the first of that name.

    Args:
        name: e.g. "collective", or "./mine.sbatch".
        folders: where to look before slaunch's own, nearest first.

    Raises:
        MissingToolError: there is no such template.
    """
    if os.sep in name or name.endswith(ENDING):
        if os.path.isfile(name):
            return name
        raise MissingToolError(f"find the sbatch template '{name}'", f"no such file, seen from {os.getcwd()}", "check the path")
    places = (*folders, FOLDER)
    for folder in places:
        if name in names(folder):
            return os.path.join(folder, name + ENDING)
    there = "; ".join(f"{folder} has {', '.join(found)}" for folder in places if (found := names(folder)))
    raise MissingToolError(f"find the sbatch template '{name}'", there, "choose one of these")


def own_folders(env: Mapping[str, str]) -> tuple[str, ...]:
    """Where a user and a site keep templates of their own, nearest first."""
    home = env.get("XDG_CONFIG_HOME") or (os.path.join(env["HOME"], ".config") if env.get("HOME") else "")
    return (*((os.path.join(home, "slaunch", "templates"),) if home else ()), "/etc/slaunch/templates")


def text_of(path: str) -> str:
    """A template's text.

    Raises:
        MissingToolError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise MissingToolError(f"read the sbatch template {path}", str(error), "make it a readable text") from None
