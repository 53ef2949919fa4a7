"""The job mode where the user does not name it, and what the mode and its options say of the nodes."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.cli.table import Value
from slaunch.errors import UsageError

PS = ("server_num", "trainer_num", "servers", "trainers", "coordinator_num", "coordinators")
"""Fields that only the modes with parameter servers have."""
HETER = ("heter_num", "heter_devices", "heters")
"""Fields that only the mode ps_heter has."""
MEETING_PORT = 6768
"""Where nodes meet whose endpoints are listed and that no scheduler started; Paddle's default port for a master."""
SERVING = {"ps": PS, "ps_heter": PS + HETER}


def with_mode(values: Mapping[str, Value]) -> dict[str, Value]:
    """The values, with the mode that they ask for, and the nodes that lists of endpoints name.

    Raises:
        UsageError: the mode is named and has no such options (W13: Paddle's launcher takes another mode without a word).
    """
    given = [field for field in PS + HETER if field in values and values[field].value]
    if "mode" not in values:
        implied = "ps_heter" if any(field in HETER for field in given) else "ps"
        values = {**values, "mode": Value(implied, values[given[0]].source)} if given else values
    elif stray := [field for field in given if field not in SERVING.get(str(values["mode"].value), ())]:
        mode = values["mode"]
        raise UsageError(
            "choose the mode of the job",
            f"{mode.source} {str(mode.value).replace('_', '-')}, and {', '.join(values[field].source for field in stray)}",
            "leave out the mode, or the options that it does not have",
        )
    return with_nodes(values)


def with_nodes(values: Mapping[str, Value]) -> dict[str, Value]:
    """Lists of endpoints and addresses tell the nodes, where nothing else does."""
    found = dict(values)
    listed = [entry for field in ("servers", "trainers", "coordinators") for entry in texts(values, field)]
    if listed and "ips" not in values:
        hosts = tuple(dict.fromkeys(entry.rpartition(":")[0] for entry in listed))
        source = values["servers" if "servers" in values else "trainers"].source
        found["ips"] = Value(hosts, source)
        if len(hosts) > 1:
            found.setdefault("master", Value(f"{hosts[0]}:{MEETING_PORT}", source))
    ips = texts(found, "ips")
    if ips and "nnodes" not in values:
        found["nnodes"] = Value((len(ips), len(ips)), found["ips"].source)
    return found


def texts(values: Mapping[str, Value], field: str) -> tuple[str, ...]:
    """A list of texts; () if it is not given."""
    value = values[field].value if field in values else ()
    return value if isinstance(value, tuple) else ()
