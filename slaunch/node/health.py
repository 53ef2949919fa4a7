"""Whether this machine is fit for another attempt: devices, network, folders. Looked at before each one.

A fault makes the node unfit: workers would fail there, or harm others. A doubt does not: the job does without the node only if it
has enough others. Every look can hang, as a dead file server or driver does; so it belongs into a process of its own that can be
given up (`agent.errand`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slaunch.frozen import dataclass
from slaunch.node.devices.table import find
from slaunch.node.devices.values import Found, View
from slaunch.node.files import names, read_text
from slaunch.node.netlink import raw_addresses
from slaunch.node.program import remove
from slaunch.node.values import Address, Device, Nic

FREE_S = 4.0
"""How long a driver may take to give back devices whose processes have ended."""
LOOK_S = 0.1
TRIAL_BYTES = 4096


@dataclass(frozen=True)
class Subject:
    """What to look at.

    Attributes:
        devices: those of this node that workers use.
        addresses: the node's own that its peers know.
        nics: network cards that workers are told of.
        folders: where workers and slaunch write; one that is not there is made.
        held: devices (by unique name) with the processes that computed on them before the job began.
    """

    devices: tuple[Device, ...]
    addresses: tuple[Address, ...]
    nics: tuple[Nic, ...]
    folders: tuple[str, ...]
    held: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Health:
    """What was found, one line each; () = nothing."""

    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def look(subject: Subject, env: Mapping[str, str], root: str = "/") -> Health:
    """Look at everything.

    Args:
        subject: what.
        env: the environment, with the visible list of devices.
        root: root of the file tree; another than "/" holds a recorded machine.
    """
    doubts: tuple[str, ...] = ()
    faults = (*folders(subject.folders), *network(subject.addresses), *cards(subject.nics, root))
    if subject.devices:
        seen = device_faults(subject.devices, find(View(env, root)))
        faults += seen
        if not seen and subject.devices[0].kind == "gpu" and subject.devices[0].uuid:
            more = nvidia(subject)
            faults, doubts = faults + more.faults, more.doubts
    return Health(faults, doubts)


def nvidia(subject: Subject) -> Health:
    """What NVIDIA's driver knows beyond the presence of its GPUs."""
    from slaunch.node.devices.health_nvidia import examine

    until = time.monotonic() + FREE_S
    while True:
        found = examine([device.uuid for device in subject.devices], frozenset(subject.held))
        if not found.busy or time.monotonic() > until:
            return Health((*found.faults, *found.busy), found.doubts)
        time.sleep(LOOK_S)


def folders(paths: Iterable[str]) -> Iterator[str]:
    """Folders in which nothing can be written."""
    for path in dict.fromkeys(paths):
        trial = os.path.join(path, f".slaunch-health-{os.uname().nodename}-{os.getpid()}")
        try:
            os.makedirs(path, exist_ok=True)
            with open(trial, "xb") as file:
                file.write(bytes(TRIAL_BYTES))
                file.flush()
                os.fsync(file.fileno())  # a full or dead file server may say so only now
        except OSError as error:
            yield f"cannot write to {path}: {error.strerror}"
        finally:
            remove(trial)


def network(addresses: Sequence[Address]) -> Iterator[str]:
    """The node's address has gone, or its interface is down. One of several networks may well be."""
    wanted = [address for address in addresses if not address.ip.startswith("127.")]
    if not wanted:
        return
    usable = {raw.ip for raw in raw_addresses() if raw.wide}
    if wanted[0].ip not in usable:
        yield f"address {wanted[0].ip} on {wanted[0].interface} is not usable any more: the interface is down, or has lost it"


def cards(nics: Iterable[Nic], root: str = "/") -> Iterator[str]:
    """Network cards for the workers' traffic that were active and are not."""
    for nic in nics:
        state = card_state(nic, root)
        if state not in ("ACTIVE", "up"):
            yield f"network card {nic.name} is {state or 'gone'}"


def card_state(nic: Nic, root: str) -> str:
    """The kernel's word for a card's state; "" if the card is not there."""
    if nic.kind == "slingshot":
        return read_text(os.path.join(root, "sys/class/net", nic.name, "operstate"))
    device, _, port = nic.name.partition(":")
    return read_text(os.path.join(root, "sys/class/infiniband", device, "ports", port, "state")).rpartition(" ")[2]


def device_faults(wanted: Sequence[Device], found: Found) -> tuple[str, ...]:
    """Devices that were there and are not, and what the device layer itself objects to."""
    here = {device.uuid or device.label for device in found.devices}
    gone = [device.label for device in wanted if (device.uuid or device.label) not in here]
    told = tuple(problem.seen for problem in found.problems)
    return told or ((f"{wanted[0].kind} {', '.join(gone)}: not there any more",) if gone else ())


def scratch(log_dir: str, env: Mapping[str, str], root: str = "/") -> tuple[str, ...]:
    """The folders to look at: of the logs, for temporary files, and shared memory where there is such."""
    shared = tuple(f"/dev/{name}" for name in names(os.path.join(root, "dev")) if name == "shm")
    return (*((log_dir,) if log_dir else ()), env.get("TMPDIR") or "/tmp", *shared)  # noqa: S108 - the system's own
