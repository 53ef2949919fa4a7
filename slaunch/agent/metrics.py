"""The job's state in Prometheus' text format (version 0.0.4): one family of figures for each thing that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATES = ("running", "stopped", "waiting", "ended")
PER_WORKER = (
    ("cpus", "slaunch_worker_cpus", "gauge", "CPUs that the worker's processes use"),
    ("host_bytes", "slaunch_worker_memory_bytes", "gauge", "Memory of the worker's processes"),
    ("device_bytes", "slaunch_worker_device_memory_peak_bytes", "gauge", "Most device memory that the worker has held"),
    ("device_now_bytes", "slaunch_worker_device_memory_bytes", "gauge", "Device memory that the worker holds"),
    ("device_percent", "slaunch_worker_device_utilization_percent", "gauge", "How busy the worker's devices are"),
    ("out_bytes", "slaunch_worker_output_bytes_total", "counter", "Output of the worker in this attempt"),
    ("out_lines", "slaunch_worker_output_lines_total", "counter", "Lines of output of the worker in this attempt"),
    ("silent_s", "slaunch_worker_silent_seconds", "gauge", "Time since the worker's last output"),
)
"""Field of `Sight`, and the name, kind and help of its family."""


def render(state: Mapping[str, Any]) -> str:
    """The state, as `Board.state` makes it, as text."""
    job = {"job": str(state["job"])}
    running = state["state"] == "running"
    lines = [
        *family("slaunch_up", "gauge", "Whether the job runs", [(job, int(running))]),
        *family("slaunch_attempt", "gauge", "Number of the attempt, from 0", [(job, state["attempt"])]),
        *family("slaunch_restarts_total", "counter", "How often the workers were started anew", [(job, state["attempt"])]),
        *family("slaunch_started_seconds", "gauge", "When the job began, seconds since the epoch", [(job, state["started_s"])]),
        *family("slaunch_world_size", "gauge", "Number of workers", [(job, state["world"])]),
    ]
    if state["left_s"] is not None:
        lines += family("slaunch_time_left_seconds", "gauge", "Time until the job's limit", [(job, state["left_s"])])
    return "\n".join([*lines, *of_nodes(state, job), *of_workers(state, job)]) + "\n"


def of_nodes(state: Mapping[str, Any], job: Mapping[str, str]) -> list[str]:
    """Figures of nodes, and of workers by their state."""
    count = Counter(worker["state"] for node in state["nodes"] for worker in node["workers"])
    ages = [({**job, **labels_of(node)}, node["heard_s"]) for node in state["nodes"] if node["heard_s"] is not None]
    return [
        *family("slaunch_workers", "gauge", "Workers by state", [({**job, "state": name}, count[name]) for name in STATES]),
        *family("slaunch_node_heard_seconds", "gauge", "Time since the node's agent was heard", ages),
    ]


def of_workers(state: Mapping[str, Any], job: Mapping[str, str]) -> list[str]:
    """Figures of each worker."""
    workers = [(node, worker) for node in state["nodes"] for worker in node["workers"]]
    lines: list[str] = []
    for field, name, kind, text in PER_WORKER:
        known = [(node, worker) for node, worker in workers if worker[field] >= (field == "device_bytes")]  # 0 is not known there
        samples = [({**job, **labels_of(node), "rank": str(worker["rank"])}, worker[field]) for node, worker in known]
        lines += family(name, kind, text, samples)
    return lines


def labels_of(node: Mapping[str, Any]) -> dict[str, str]:
    """A node's labels."""
    return {"node": str(node["node"]), "host": str(node["host"])}


def family(name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> list[str]:
    """One family of figures; nothing where there is no figure."""
    lines = [f"{name}{{{labels(sample)}}} {round(number, 3)}" for sample, number in samples]
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *lines] if lines else []


def labels(pairs: Mapping[str, str]) -> str:
    """Labels, their values escaped."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in pairs.items())


def escaped(value: str) -> str:
    """A label's value as the format wants it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
