"""Variables that have to cross the border of a container."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PREFIXES = {"apptainer": "APPTAINERENV_", "singularity": "SINGULARITYENV_"}
"""Both pass the environment on as it is, unless told otherwise; what has such a prefix is always set inside, without it
(Apptainer user guide, "Environment and Metadata")."""

CLOSED = ("-e", "--cleanenv", "-c", "--contain", "-C", "--containall")
"""Options that keep the environment, or everything, out."""


def across(container: Sequence[str], values: Mapping[str, str]) -> dict[str, str]:
    """The variables, and for a container that keeps the environment out a second time with the prefix that gets them in."""
    prefix = PREFIXES.get(container[0].rpartition("/")[2], "") if container else ""
    if not prefix or not any(word in CLOSED for word in container):
        return dict(values)
    return {**values, **{prefix + name: value for name, value in values.items()}}
