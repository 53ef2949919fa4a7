"""All options with their values and where they come from, one line each."""

from __future__ import annotations

from slaunch.options import Options
from slaunch.report.explanation import option_values


def configuration(options: Options) -> tuple[str, ...]:
    """The lines, by name, between two lines of dashes; secrets are hidden."""
    tree = option_values(options)
    lines = (f"{name} = {entry['value']} ({entry['origin']})" for name, entry in sorted(tree.items()))
    return ("-- configuration --", *lines, "-------------------")
