"""IPU jobs: one process on one node, `poprun`, which starts the workers itself. Its command line is made by `cli.ipu`."""

from __future__ import annotations

from slaunch.node.values import Wish
from slaunch.options import Options
from slaunch.plan.modes import Mode


def wish(options: Options, own: str) -> Wish:
    """One process; it asks for IPUs by number, not by a visible list."""
    return Wish(workers=1, devices=False)


MODE = Mode("ipu", wish=wish)
