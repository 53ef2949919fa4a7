"""Peak memory of a trial in MiB, from the best source there is. Unknown stays unknown: it is None, never 0."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slaunch.node.devices.sampler import SAMPLES, TABLE
from slaunch.tune.config.kinds import objects

PROCESSES = TABLE.split(",")
DEVICES = SAMPLES.split(",")
MIB = 1 << 20


def peak_memory(report: Mapping[str, object], folder: str, told: float | None, on_host: bool) -> float | None:
    """The most memory on a device, in MiB.

    Args:
        report: slaunch's report of the run.
        folder: the trial's folder.
        told: what the program itself says, in MiB.
        on_host: there are no devices, so that the workers' memory is the machine's.
    """
    sources = (reported_peak(report, "device_bytes"), sampled_peak(folder), told)
    known = next((peak for peak in sources if peak is not None), None)
    return reported_peak(report, "host_bytes") if known is None and on_host else known


def reported_peak(report: Mapping[str, object], name: str) -> float | None:
    """The largest figure of a worker in slaunch's report; there, 0 means not known."""
    peaks = report.get("peaks")
    found = [objects(peak).get(name) for peak in peaks] if isinstance(peaks, list) else []
    most = max((figure for figure in found if isinstance(figure, int)), default=0)
    return round(most / MIB, 2) if most else None


def peak_of_workers(rows: Iterable[Sequence[str]]) -> float | None:
    """From the table of devices: the largest sum, on one device at one moment, over the workers' own processes (with a rank)."""
    sums: dict[tuple[str, str], float] = {}
    for row in rows:
        if len(row) == len(PROCESSES):
            cells = dict(zip(PROCESSES, row, strict=True))
            if cells["rank"].strip().isdecimal() and number(cells["process_memory_mib"]) is not None:
                place = cells["time_s"], cells["uuid"]
                sums[place] = sums.get(place, 0.0) + (number(cells["process_memory_mib"]) or 0.0)
    return max(sums.values(), default=None)


def peak_of_devices(rows: Iterable[Sequence[str]]) -> float | None:
    """From Paddle's device log: the largest memory in use on a device, whoever uses it."""
    used = DEVICES.index("memory_used")
    wide = [row for row in rows if len(row) == len(DEVICES)]
    return max((value for value in (number(row[used]) for row in wide) if value is not None), default=None)


def sampled_peak(folder: str) -> float | None:
    """The peak from the files that samplers left in a trial's folder: of the workers' processes, else of the devices."""
    found = list(tables(folder))
    workers = [peak for path, head in found if head == PROCESSES and (peak := peak_of_workers(rows_of(path))) is not None]
    if workers:
        return max(workers)
    devices = [peak for path, _ in found if path.endswith(".gpu.log") and (peak := peak_of_devices(rows_of(path))) is not None]
    return max(devices, default=None)


def tables(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Files that may be a sampler's, and their first row."""
    for above, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith((".csv", ".gpu.log")):
                path = os.path.join(above, name)
                yield path, next(iter(rows_of(path)), [])


def rows_of(path: str) -> list[list[str]]:
    """The rows of a file; none if it cannot be read."""
    try:
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            return list(csv.reader(file))
    except (OSError, csv.Error):
        return []


def number(text: str) -> float | None:
    """A cell's number; None if it has none."""
    try:
        return float(text)
    except ValueError:
        return None
