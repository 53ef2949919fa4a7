"""Devices whose drivers tell through a vendor's tool: Ascend's `npu-smi info`, Kunlun's `xpu-smi -m`.

A tool is run once for each round of samples. One that fails, or hangs, is asked again later and later.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from slaunch.node.devices.meters import UNKNOWN, Identity, Sample, Use, process_name
from slaunch.node.devices.values import View
from slaunch.node.values import Device

MIB = 1 << 20
TIMEOUT_S = 3.0
LONGEST_WAIT_S = 60.0
NUMBER = re.compile(r"\d+(?:\.\d+)?")
BUS_ID = re.compile(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")

Table = Mapping[str, Sample]
"""Samples by ordinal of the device."""


def open_meter(devices: Sequence[Device], view: View) -> ToolMeter | None:
    """The meter; None where the tool is not installed. Intel's XPUs, which have a place on the PCI bus here, have no meter."""
    import shutil

    argv, read = TOOLS[devices[0].kind]
    return ToolMeter(argv, read) if shutil.which(argv[0]) and not devices[0].pci else None


class ToolMeter:
    """Runs a tool and keeps its table until the next round."""

    def __init__(self, argv: tuple[str, ...], read: Callable[[str], Table]) -> None:
        self._argv = argv
        self._read = read
        self._table: Table = {}
        self._wait_s = 0.0
        self._next = 0.0

    def begin(self) -> None:
        """Run the tool, unless it has failed lately."""
        if time.monotonic() < self._next:
            return
        self._table = self._read(self._output())
        self._wait_s = 0.0 if self._table else min(LONGEST_WAIT_S, max(1.0, self._wait_s * 2))
        self._next = time.monotonic() + self._wait_s

    def close(self) -> None:
        """Nothing is held."""

    def identity(self, device: Device) -> Identity:
        """What it is."""
        return Identity(device.uuid, "", device.name)

    def sample(self, device: Device) -> Sample | None:
        """What it does now."""
        return self._table.get(device.label)

    def _output(self) -> str:
        import subprocess

        try:
            done = subprocess.run(self._argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout if done.returncode == 0 else ""


def read_npu_smi(text: str) -> Table:
    """Samples from the tables of `npu-smi info`: two lines for each chip, then one for each process.

    Chips are numbered in their order, as ASCEND_RT_VISIBLE_DEVICES counts. Memory is HBM, or where there is none, the other.
    """
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line.startswith("|")]
    chips: dict[tuple[str, str], Sample] = {}
    card, watts, celsius = "", UNKNOWN, UNKNOWN
    uses: dict[tuple[str, str], list[Use]] = {}
    for cells in rows:
        head, numbers = cells[0].split(), [whole(word) for word in cells[-1].replace("/", " ").split()]
        if not head or not head[0].isdecimal():
            continue
        if len(cells) == 3 and BUS_ID.fullmatch(cells[1]):
            used, total = numbers[3:5] if numbers[4] > 0 else numbers[1:3]
            chips[card, head[0]] = Sample(numbers[0], total * MIB, used * MIB, (), watts, celsius)
        elif len(cells) == 3:
            card, watts, celsius = head[0], numbers[0], numbers[1]
        elif len(cells) >= 4 and cells[1].isdecimal():
            pid = int(cells[1])
            uses.setdefault((head[0], head[1]), []).append(Use(pid, process_name(pid), int(cells[3]) * MIB))
    return dict(numbered(chips, uses))


def whole(word: str) -> int:
    """A number without its fraction; `UNKNOWN` for another word."""
    return int(float(word)) if NUMBER.fullmatch(word) else UNKNOWN


def numbered(
    chips: Mapping[tuple[str, str], Sample], uses: Mapping[tuple[str, str], Sequence[Use]]
) -> Iterator[tuple[str, Sample]]:
    """Chips by ordinal, with the processes on them."""
    from slaunch.frozen import replace

    for ordinal, (place, sample) in enumerate(chips.items()):
        yield str(ordinal), replace(sample, uses=tuple(uses.get(place, ())))


def read_xpu_smi(text: str) -> Table:
    """Samples from `xpu-smi -m`: a line of blank-separated fields for each device, names in quotes."""
    found: dict[str, Sample] = {}
    for line in text.splitlines():
        fields = shlex.split(line)
        if len(fields) > 19 and all(fields[at].isdecimal() for at in (1, 17, 18, 19)):
            used, total, percent = (int(fields[at]) for at in (17, 18, 19))
            found[fields[1]] = Sample(percent, total * MIB, used * MIB, (), whole(fields[8]), whole(fields[4]))
    return found


TOOLS: Mapping[str, tuple[tuple[str, ...], Callable[[str], Table]]] = {
    "npu": (("npu-smi", "info"), read_npu_smi),
    "xpu": (("xpu-smi", "-m"), read_xpu_smi),
}
