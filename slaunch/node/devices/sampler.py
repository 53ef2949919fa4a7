"""Writes what the devices of a node do, once a second, while its workers run.

It is a process of its own (`python -m slaunch.node.devices.sampler`), so that a driver that hangs hangs nothing else. It ends
when its standard input does: its starter holds the other end, and needs do no more than close it or end itself.

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
from typing import TextIO

from slaunch.frozen import asdict, dataclass
from slaunch.node.devices.meters import UNKNOWN, Meter, Sample, open_meter
from slaunch.node.devices.values import View
from slaunch.node.files import read_text
from slaunch.node.values import Device

MIB = 1 << 20
DEVICES = "index,uuid,driver_version,name,gpu_serial,display_active,display_mode"
PROCESSES = "pid,process_name,gpu_uuid,gpu_name,used_memory"
SAMPLES = "index,utilization_gpu,memory_total,memory_used,memory_free,timestamp"
TABLE = "time_s,index,uuid,utilization_percent,memory_total_mib,memory_used_mib,rank,pid,process_memory_mib"


@dataclass(frozen=True)
class Order:
    """What to sample.

    Attributes:
        devices: these devices.
        workers: rank of each worker's process id.
        log: path of the log in Paddle's format; written anew.
        table: path of the table; written anew.
        interval_s: seconds between samples.
        root: root of the file tree.
    """

    devices: tuple[Device, ...]
    workers: Mapping[int, int]
    log: str
    table: str
    interval_s: float = 1.0
    root: str = "/"

    def command(self) -> tuple[str, ...]:
        """The command that carries it out until its standard input ends."""
        return (sys.executable, "-m", "slaunch.node.devices.sampler", json.dumps(asdict(self)))


class Sampling:
    """The process that carries out an order, as its starter holds it."""

    def __init__(self, order: Order, env: Mapping[str, str]) -> None:
        """Start it, in a process group of its own: what the terminal or a scheduler signals is not for it."""
        inner, self._outer = os.pipe()
        argv = order.command()
        try:
            self._pid = os.posix_spawn(
                argv[0], argv, dict(env), file_actions=[(os.POSIX_SPAWN_DUP2, inner, 0)], setpgroup=0, setsigmask=()
            )
        except OSError:
            os.close(self._outer)
            raise
        finally:
            os.close(inner)

    def close(self, patience_s: float = 2.0) -> None:
        """Let it end, and kill it if it does not in time: a driver may hang, and even hold it back from dying for a while."""
        os.close(self._outer)
        if not self._ended_within(patience_s):
            os.kill(self._pid, signal.SIGKILL)
            self._ended_within(patience_s)

    def _ended_within(self, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        while not self._reaped():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def _reaped(self) -> bool:
        try:
            return os.waitpid(self._pid, os.WNOHANG)[0] != 0
        except ChildProcessError:  # someone else has waited for it
            return True


def read_order(text: str) -> Order:
    """The order on a command line."""
    raw = json.loads(text)
    raw["devices"] = tuple(Device(**each) for each in raw["devices"])
    raw["workers"] = {int(pid): rank for pid, rank in raw["workers"].items()}
    return Order(**raw)


def run(order: Order, stop: int = 0) -> int:
    """Sample until descriptor `stop` ends; the exit code. Devices without a meter leave no files."""
    meter = open_meter(order.devices, View({}, order.root))
    if meter is None:
        return 0
    try:
        with open(order.log, "w") as log, open(order.table, "w") as table:
            write_head(order, meter, log)
            table.write(f"{TABLE}\n")
            due = time.monotonic()
            while not ended(stop, due - time.monotonic()):
                write_samples(order, meter, log, table)
                due = max(due + order.interval_s, time.monotonic())
    except OSError as error:  # the disk is full, say: the job goes on without
        print(f"slaunch: no more device samples: {error.strerror}: {error.filename or order.log}", file=sys.stderr)
        return 1
    finally:
        meter.close()
    return 0


def ended(stop: int, patience_s: float) -> bool:
    """Wait; True as soon as the descriptor has ended."""
    ready, _, _ = select.select([stop], [], [], max(0.0, patience_s))
    return bool(ready) and not os.read(stop, 4096)


def write_head(order: Order, meter: Meter, log: TextIO) -> None:
    """The devices, and who is on them."""
    log.write(f"{DEVICES}\n")
    for device in order.devices:
        log.write(f"{device.label},{','.join(asdict(meter.identity(device)).values())}\n")
    log.write(f"\n{PROCESSES}\n")
    for device in order.devices:
        sample = meter.sample(device)
        for use in sample.uses if sample else ():
            log.write(f"{use.pid},{use.name},{device.uuid},{device.name},{use.bytes // MIB}\n")
    log.write(f"\n{SAMPLES}\n")
    log.flush()


def write_samples(order: Order, meter: Meter, log: TextIO, table: TextIO) -> None:
    """One sample of each device into both files."""
    now = time.time()
    for device in order.devices:
        sample = meter.sample(device)
        if sample is not None:
            log.write(f"{sample_row(device, sample, now)}\n")
            table.writelines(f"{row}\n" for row in table_rows(device, sample, order.workers, now))
    log.flush()
    table.flush()


def sample_row(device: Device, sample: Sample, now: float) -> str:
    """A row of the log, its time as nvidia-smi writes it."""
    memory = f"{sample.total // MIB},{sample.used // MIB},{(sample.total - sample.used) // MIB}"
    stamp = f"{time.strftime('%Y/%m/%d %H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03d}"
    return f"{device.label},{percent(sample)},{memory},{stamp}"


def table_rows(device: Device, sample: Sample, workers: Mapping[int, int], now: float) -> Iterable[str]:
    """Rows of the table: one for each process on the device; one without a process if there is none."""
    start = f"{now:.3f},{device.label},{device.uuid},{percent(sample)},{sample.total // MIB},{sample.used // MIB}"
    for use in sample.uses:
        yield f"{start},{rank_of(use.pid, workers)},{use.pid},{use.bytes // MIB}"
    if not sample.uses:
        yield f"{start},,,"


def percent(sample: Sample) -> str:
    """The utilization; nvidia-smi's word where there is none."""
    return "[N/A]" if sample.percent == UNKNOWN else str(sample.percent)


def rank_of(pid: int, workers: Mapping[int, int]) -> str:
    """Rank of the worker that a process is, or descends from; "" for a stranger's."""
    while pid > 1:
        if pid in workers:
            return str(workers[pid])
        pid = parent(pid)
    return ""


def parent(pid: int) -> int:
    """A process's parent; 0 if it has ended."""
    fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def main(argv: Sequence[str]) -> int:
    """Carry out the order in the only argument. Signals to all processes of a job step do not end it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    return run(read_order(argv[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
