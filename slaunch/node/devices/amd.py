"""AMD GPUs, from the kernel's KFD topology.

Two masks apply one after the other: ROCR_VISIBLE_DEVICES hides devices and renumbers the rest, then HIP_VISIBLE_DEVICES (where
that is unset, CUDA_VISIBLE_DEVICES) counts among those. Source: ROCm documentation, "GPU isolation techniques". The labels found
here are those of the outer mask, so that the plan can say the same with that one alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from slaunch.errors import DeviceError
from slaunch.frozen import dataclass
from slaunch.node.devices.pci import numa_node
from slaunch.node.devices.values import Found, View
from slaunch.node.devices.visible import first_set, repeated, tokens
from slaunch.node.files import names, problem, read_text
from slaunch.node.values import Device, Problem

OUTER = "ROCR_VISIBLE_DEVICES"
INNER = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
NODES = "sys/class/kfd/kfd/topology/nodes"


@dataclass(frozen=True)
class Gpu:
    """A GPU of the topology; see `Device`."""

    uuid: str
    pci: str
    numa: int
    memory_bytes: int
    name: str


def look(view: View) -> Found:
    """Devices that both masks leave visible."""
    gpus = tuple(read_topology(view))
    outer = tokens(view.env[OUTER]) if OUTER in view.env else None
    ordinals = tuple(str(number) for number in range(len(gpus)))
    labels = ordinals if outer is None else outer
    inner = first_set(view.env, INNER)
    chosen, problems = inner_mask(view.env, inner, labels, known=bool(gpus) or outer is not None)
    devices = tuple(device(position, label, gpus) for position, label in enumerate(chosen))
    missing = [each.label for each in devices if gpus and not each.pci]
    notes = () if gpus else (f"{OUTER} lists {len(chosen)} devices, unverified: there is no AMD driver on this machine",)
    variable = OUTER if outer is not None or inner else ""
    return Found("rocm", devices, variable, notes, (*problems, *not_there(missing, gpus, view.env), *twice(chosen)))


def read_topology(view: View) -> Iterator[Gpu]:
    """GPUs that this process may use: the kernel refuses to show those that its cgroup forbids."""
    for node in sorted(names(view.path(NODES)), key=int):
        text = read_text(view.path(NODES, node, "properties"))
        fields = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
        if int(fields.get("simd_count", 0)) == 0:  # a CPU's node, or closed to us
            continue
        pci = pci_address(int(fields.get("domain", 0)), int(fields.get("location_id", 0)))
        yield Gpu(
            f"GPU-{int(fields.get('unique_id', 0)):016x}",
            pci,
            numa_node(view, pci),
            memory_of(view, node),
            read_text(view.path(NODES, node, "name")),
        )


def pci_address(domain: int, location: int) -> str:
    """PCI address from KFD's packed form: bus, device (5 bits), function (3 bits)."""
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def memory_of(view: View, node: str) -> int:
    """Bytes of the GPU's own memory."""
    banks = view.path(NODES, node, "mem_banks")
    texts = (read_text(f"{banks}/{bank}/properties") for bank in names(banks))
    return sum(int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("size_in_bytes"))


def inner_mask(
    env: Mapping[str, str], inner: str, labels: Sequence[str], known: bool
) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """What the inner mask leaves of `labels`.

    Slurm writes the same list into both variables; taken literally, the second would count among what the first left (P50). Equal
    lists are taken for one statement: the plan passes on a single mask.
    """
    listed = tokens(env[inner]) if inner else None
    if listed is None or (env.get(OUTER) == env.get(inner) and OUTER in env):
        return tuple(labels), ()
    if not known or not all(label.isdecimal() for label in listed):
        return listed, ()
    if any(int(label) >= len(labels) for label in listed):
        seen = f"{inner}={env[inner]} counts among the {len(labels)} devices of {OUTER}={env.get(OUTER, '(unset)')}"
        return (), (problem(DeviceError("use the visible GPUs", seen, f"set {OUTER} alone and unset {' and '.join(INNER)}")),)
    return tuple(labels[int(label)] for label in listed), ()


def device(position: int, label: str, gpus: Sequence[Gpu]) -> Device:
    """A device at its place in the effective list."""
    gpu = by_label(label, gpus)
    if gpu is None:
        return Device("rocm", position, label)
    return Device("rocm", position, label, gpu.uuid, gpu.pci, gpu.numa, gpu.memory_bytes, gpu.name)


def by_label(label: str, gpus: Sequence[Gpu]) -> Gpu | None:
    """The GPU that a label of the outer mask names, by ordinal or UUID."""
    if label.isdecimal():
        return gpus[int(label)] if int(label) < len(gpus) else None
    return next((gpu for gpu in gpus if gpu.uuid.lower() == label.lower()), None)


def not_there(missing: Sequence[str], gpus: Sequence[Gpu], env: Mapping[str, str]) -> tuple[Problem, ...]:
    """The outer mask names what the driver does not show."""
    if not missing:
        return ()
    seen = f"{OUTER}={env.get(OUTER, '(unset)')}: no {', '.join(missing)} among the {len(gpus)} GPUs that the driver shows"
    return (problem(DeviceError("find the GPUs of the visible list", seen, f"correct {OUTER}")),)


def twice(labels: Sequence[str]) -> tuple[Problem, ...]:
    """A device named more than once."""
    found = repeated(labels)
    seen = f"{', '.join(found)} named twice in the visible list"
    return (problem(DeviceError("use the visible GPUs", seen, "name each device once")),) if found else ()
