"""How the command line shows an error."""

from __future__ import annotations

from slaunch.errors import SlaunchError
from slaunch.report.style import BOLD, RED, paint


def render_error(error: SlaunchError, colour: bool = False) -> str:
    """The three parts of an error, each on its own line."""
    return "\n".join(
        (
            paint(f"slaunch: cannot {error.wanted}", RED + BOLD, colour),
            f"  seen: {_indent(error.seen)}",
            f"  do:   {_indent(error.todo)}",
        )
    )


def _indent(text: str) -> str:
    """Further lines below the first one."""
    return text.replace("\n", "\n        ")
