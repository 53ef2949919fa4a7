"""Where the sbatch templates are. `slaunch/sbatch_templates` is a link to the folder at the top of the source tree; an installed
package has copies there, so that one path is right everywhere."""

from __future__ import annotations

import os

from slaunch.errors import MissingToolError

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sbatch_templates")


def names() -> tuple[str, ...]:
    """Names of the templates, without their `.sbatch`."""
    return tuple(sorted(file[: -len(".sbatch")] for file in os.listdir(FOLDER) if file.endswith(".sbatch")))


def path(name: str) -> str:
    """Path of a template's file.

    Args:
        name: e.g. "collective".

    Raises:
        MissingToolError: there is no template of that name.
    """
    if name not in names():
        raise MissingToolError(f"find the sbatch template '{name}'", f"{FOLDER} has {', '.join(names())}", "choose one of these")
    return os.path.join(FOLDER, f"{name}.sbatch")
