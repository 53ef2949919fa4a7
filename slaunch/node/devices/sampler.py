"""Writes what the devices of a node do, once a second, while its workers run; tells its starter how much memory each worker held.

It is a process of its own, so that a driver that hangs hangs nothing else. Its starter writes a line "PID RANK" for each worker
that it starts, of whatever attempt. It reads a line "RANK BYTES" whenever a worker holds more device memory than ever before, and
"now RANK BYTES PERCENT" whenever a worker's memory, or the use of its devices, has changed. The sampler ends when its standard
input does: when its starter closes that, or ends itself.

Two files. The first has the format of Paddle's `<job>.gpu.log`: the devices, then the processes on them at the start, then
samples (percent and MiB). The second is a table with a row for each worker's process on each device at each moment.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from slaunch.frozen import asdict, dataclass
from slaunch.node.devices.meters import UNKNOWN, Meter, Sample, open_meter
from slaunch.node.devices.values import View
from slaunch.node.files import read_text
from slaunch.node.values import Device

MIB = 1 << 20
STRANGER = -1
"""Rank of a process that is no worker's."""
LONGEST_WAIT_ROUNDS = 60
NOW, NO_METER = "now", "none"
"""What the starter reads in front of a present state, and where no driver answers."""
DEVICES = "index,uuid,driver_version,name,gpu_serial,display_active,display_mode"
PROCESSES = "pid,process_name,gpu_uuid,gpu_name,used_memory"
SAMPLES = "index,utilization_gpu,memory_total,memory_used,memory_free,timestamp"
TABLE = (
    "time_s,index,uuid,utilization_percent,memory_total_mib,memory_used_mib,power_w,temperature_c,rank,pid,process_memory_mib"
)


START = "import sys; sys.path.append(sys.path.pop(0)); from slaunch.node.devices.sampler import main; sys.exit(main(sys.argv[1]))"
"""The working directory is the user's and may have files named like modules: it comes last on the path."""


@dataclass(frozen=True)
class Order:
    """What to sample.

    Attributes:
        devices: these devices.
        log: path of the log in Paddle's format.
        table: path of the table.
        interval_s: seconds between samples.
        append: go on with files that are there; else they are written anew.
        root: root of the file tree.
    """

    devices: tuple[Device, ...]
    log: str
    table: str
    interval_s: float = 1.0
    append: bool = False
    root: str = "/"

    def command(self) -> tuple[str, ...]:
        """The command that carries it out until its standard input ends."""
        return (sys.executable, "-c", START, json.dumps(asdict(self)))


def read_order(text: str) -> Order:
    """The order on a command line."""
    raw = json.loads(text)
    raw["devices"] = tuple(Device(**each) for each in raw["devices"])
    return Order(**raw)


class Sampler:
    """One node's samples.

    Args:
        order: what to sample.
        meter: reads the devices.
        tell: takes a line for each peak that has grown.
    """

    def __init__(self, order: Order, meter: Meter, tell: IO[str]) -> None:
        self._order = order
        self._meter = meter
        self._tell = tell
        self._rest = ""
        self._round = 0
        self._silent: dict[int, tuple[int, int]] = {}
        self.workers: dict[int, int] = {}
        self.peaks: dict[int, int] = {}
        self._now: dict[int, tuple[int, int]] = {}

    def run(self, stop: int) -> None:
        """Sample until descriptor `stop` ends."""
        mode = "a" if self._order.append else "w"
        with open(self._order.log, mode) as log, open(self._order.table, mode) as table:
            self._meter.begin()
            self.write_head(log)
            if not table.tell():
                table.write(f"{TABLE}\n")
            due = time.monotonic()
            while self.heard(stop, due - time.monotonic()):
                if time.monotonic() >= due:
                    self.sample(log, table)
                    due = max(due + self._order.interval_s, time.monotonic())

    def heard(self, stop: int, patience_s: float) -> bool:
        """Wait for news of workers; False as soon as the starter has ended."""
        ready, _, _ = select.select([stop], [], [], max(0.0, patience_s))
        if not ready:
            return True
        data = os.read(stop, 4096)
        *lines, self._rest = (self._rest + data.decode()).split("\n")
        for line in lines:
            pid, rank = line.split()
            self.workers[int(pid)] = int(rank)
        return bool(data)

    def write_head(self, log: IO[str]) -> None:
        """The devices, and who is on them."""
        log.write(f"{chr(10) if log.tell() else ''}{DEVICES}\n")
        for device in self._order.devices:
            log.write(f"{device.label},{','.join(asdict(self._meter.identity(device)).values())}\n")
        log.write(f"\n{PROCESSES}\n")
        for device in self._order.devices:
            sample = self._meter.sample(device)
            for use in sample.uses if sample else ():
                log.write(f"{use.pid},{use.name},{device.uuid},{device.name},{use.bytes // MIB}\n")
        log.write(f"\n{SAMPLES}\n")
        log.flush()

    def sample(self, log: IO[str], table: IO[str]) -> None:
        """One sample of each device into both files, and the peaks that have grown to the starter."""
        now = time.time()
        held: dict[int, int] = {}
        busy: dict[int, list[int]] = {}
        self._round += 1
        self._meter.begin()
        for device in self._order.devices:
            sample = self._ask(device)
            if sample is None:
                continue
            ranks = [rank_of(use.pid, self.workers) for use in sample.uses]
            for rank, use in zip(ranks, sample.uses, strict=True):
                held[rank] = held.get(rank, 0) + use.bytes
                busy.setdefault(rank, []).append(sample.percent)
            log.write(f"{sample_row(device, sample, now)}\n")
            table.writelines(f"{row}\n" for row in table_rows(device, sample, ranks, now))
        log.flush()
        table.flush()
        self._tell_peaks(held)
        self._tell_now({rank: (held[rank], round(sum(used) / len(used))) for rank, used in busy.items() if rank != STRANGER})

    def _ask(self, device: Device) -> Sample | None:
        """A sample; a device that does not answer is asked again after one round, two, four …"""
        wait, due = self._silent.get(device.position, (0, 0))
        if self._round < due:
            return None
        sample = self._meter.sample(device)
        wait = 0 if sample else min(LONGEST_WAIT_ROUNDS, max(1, wait * 2))
        self._silent[device.position] = (wait, self._round + wait)
        return sample

    def _tell_peaks(self, held: Mapping[int, int]) -> None:
        grown = {rank: count for rank, count in held.items() if rank != STRANGER and count > self.peaks.get(rank, 0)}
        self.peaks.update(grown)
        self._tell.writelines(f"{rank} {count}\n" for rank, count in grown.items())
        self._tell.flush()


    def _tell_now(self, now: dict[int, tuple[int, int]]) -> None:
        """What has changed since the last time; of a worker that holds nothing any more, that too."""
        gone = {rank: (0, UNKNOWN) for rank in self._now if rank not in now}
        changed = {rank: state for rank, state in {**now, **gone}.items() if self._now.get(rank) != state}
        self._tell.writelines(f"{NOW} {rank} {count} {used}\n" for rank, (count, used) in changed.items())
        self._tell.flush()
        self._now = now


def sample_row(device: Device, sample: Sample, now: float) -> str:
    """A row of the log, its time as nvidia-smi writes it."""
    memory = f"{sample.total // MIB},{sample.used // MIB},{(sample.total - sample.used) // MIB}"
    stamp = f"{time.strftime('%Y/%m/%d %H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03d}"
    return f"{device.label},{percent(sample)},{memory},{stamp}"


def table_rows(device: Device, sample: Sample, ranks: Sequence[int], now: float) -> Iterable[str]:
    """Rows of the table: one for each process on the device; one without a process if there is none."""
    memory = f"{sample.total // MIB},{sample.used // MIB}"
    state = f"{percent(sample)},{memory},{known(sample.watts)},{known(sample.celsius)}"
    start = f"{now:.3f},{device.label},{device.uuid},{state}"
    for rank, use in zip(ranks, sample.uses, strict=True):
        yield f"{start},{known(rank)},{use.pid},{use.bytes // MIB}"
    if not sample.uses:
        yield f"{start},,,"


def known(number: int) -> str:
    """A number; "" for one that is not known."""
    return "" if number == UNKNOWN else str(number)


def percent(sample: Sample) -> str:
    """The utilization; nvidia-smi's word where there is none."""
    return known(sample.percent) or "[N/A]"


def rank_of(pid: int, workers: Mapping[int, int]) -> int:
    """Rank of the worker that a process is, or descends from; `STRANGER` for another's."""
    while pid > 1:
        if pid in workers:
            return workers[pid]
        pid = parent(pid)
    return STRANGER


def parent(pid: int) -> int:
    """A process's parent; 0 if it has ended."""
    fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def run(order: Order, stop: int = 0) -> int:
    """Sample until descriptor `stop` ends; the exit code. Devices without a meter leave no files, only a word to the starter."""
    meter = open_meter(order.devices, View({}, order.root))
    if meter is None:
        print(NO_METER, flush=True)
        return 0
    try:
        Sampler(order, meter, sys.stdout).run(stop)
    except BrokenPipeError:  # the starter has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError as error:  # the disk is full, say: the job goes on without
        print(f"slaunch: no more device samples: {error.strerror}: {error.filename or order.log}", file=sys.stderr)
        return 1
    finally:
        meter.close()
    return 0


def main(order: str) -> int:
    """Carry out an order. Signals to all processes of a job step do not end it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    return run(read_order(order))
