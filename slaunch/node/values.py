"""What one machine has, as one task sees it."""

from __future__ import annotations

from slaunch.frozen import dataclass


@dataclass(frozen=True)
class Address:
    """A usable network address of this machine.

    Attributes:
        ip: numeric IPv4 or IPv6 address, without brackets or scope.
        interface: its interface, e.g. "eth0", "ib0".
        prefix: network prefix length in bits.
        speed_mbps: link speed in Mbit/s; 0 = the driver does not say.
    """

    ip: str
    interface: str
    prefix: int
    speed_mbps: int = 0


@dataclass(frozen=True)
class Device:
    """An accelerator that this task may use.

    Attributes:
        kind: "gpu" (NVIDIA), "rocm", "xpu", "npu", "ipu" …
        position: index in the visible list, which is what frameworks count by.
        label: its token in the visible list: an ordinal, a UUID, a MIG name.
        uuid: the driver's unique name; "" if unknown.
        pci: PCI address; "" if unknown.
        numa: NUMA node; -1 if the system does not say.
        memory_bytes: total memory; 0 if unknown.
        name: product name; "" if unknown.
    """

    kind: str
    position: int
    label: str
    uuid: str = ""
    pci: str = ""
    numa: int = -1
    memory_bytes: int = 0
    name: str = ""


@dataclass(frozen=True)
class Nic:
    """A network card for the workers' own traffic.

    Attributes:
        name: as libraries call it, e.g. "mlx5_0:1" (RDMA device and port), "hsn0".
        kind: "infiniband", "roce" or "slingshot".
        numa: its NUMA node; -1 if the system does not say.
        speed_mbps: link speed in Mbit/s; 0 if unknown.
        subnet: subnet prefix of InfiniBand; "" for others.
        near: positions of the devices for which no other card is nearer.
    """

    name: str
    kind: str
    numa: int
    speed_mbps: int
    subnet: str = ""
    near: tuple[int, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A local error, kept as data so that one node can tell it for all. `code` is the exit code of its error class."""

    code: int
    wanted: str
    seen: str
    todo: str


@dataclass(frozen=True)
class NodeFacts:
    """What one task (agent) knows of itself and its machine, exchanged with all others.

    Attributes:
        host: host name as the system gives it.
        machine: identity of the machine (boot id and namespace), to tell two tasks on one node from two nodes of one name.
        addresses: usable addresses, best first; never loopback, link-local, down or a container bridge, except that a machine
            with nothing else has 127.0.0.1 (good for one node only).
        cpus: logical CPUs that this task may run on, ascending.
        cores: the same CPUs grouped by physical core, e.g. ((0, 64), (1, 65)).
        devices: visible devices in order of position.
        visible: name of the variable that made the visible list, e.g. "CUDA_VISIBLE_DEVICES"; "" if none.
        workers: number of workers wanted on this task's node.
        ports: TCP ports reserved on this machine for the workers: `workers` endpoints, then `SPARE_PORTS` for masters.
        control_port: port where this task's agent listens for the others; 0 if it does not.
        pid: process id of the agent.
        python: interpreter path.
        versions: "slaunch x, python y".
        program_digest: short hash of the script's content and of the options; equal on all nodes of a healthy job.
        time_s: wall clock, seconds since the epoch.
        problems: local errors.
        numa: NUMA node of each of `cores`, in the same order; -1 if the system does not say.
        caches: last-level cache of each of `cores`, named by the lowest CPU that shares it; -1 if the system does not say.
        reach, reach_numa, reach_caches: the same for all cores that the kernel lets this task use if it asks, where its own mask
            is narrower (the scheduler's CPU binding); () where the mask is all there is.
        online: number of CPUs of the whole machine.
        binder: the launcher whose binding may have made the mask: "srun", "mpirun", …; "" on a plain machine.
        notes: what the user may want to know and need not act on, one line each.
        memory: NUMA nodes with memory that this task may use.
        memory_policy: the memory policy that this task has been started with, in the kernel's word, e.g. "default".
        nics: network cards for the workers' own traffic, by name; () without devices.
        packages, reach_packages: package (socket) of each of `cores` and of `reach`; -1 if the system does not say.
        held: devices, by unique name, with the processes that compute on them already.
        component: number of the component of a heterogeneous job that this node belongs to; -1 = the job has none.
    """

    host: str
    machine: str
    addresses: tuple[Address, ...]
    cpus: tuple[int, ...]
    cores: tuple[tuple[int, ...], ...]
    devices: tuple[Device, ...]
    visible: str
    workers: int
    ports: tuple[int, ...]
    control_port: int
    pid: int
    python: str
    versions: str
    program_digest: str
    time_s: float
    problems: tuple[Problem, ...] = ()
    numa: tuple[int, ...] = ()
    caches: tuple[int, ...] = ()
    reach: tuple[tuple[int, ...], ...] = ()
    reach_numa: tuple[int, ...] = ()
    reach_caches: tuple[int, ...] = ()
    online: int = 0
    binder: str = ""
    notes: tuple[str, ...] = ()
    memory: tuple[int, ...] = ()
    memory_policy: str = "default"
    nics: tuple[Nic, ...] = ()
    packages: tuple[int, ...] = ()
    reach_packages: tuple[int, ...] = ()
    held: tuple[tuple[str, int], ...] = ()
    component: int = -1


@dataclass(frozen=True)
class Wish:
    """What the job's mode asks of this node, beside the options.

    Attributes:
        workers: number of workers; 0 = as the options and the devices say.
        ports: ports of the workers, in order; () = free ones.
        devices: workers are given devices of their own; else the visible list stays as it is.
    """

    workers: int = 0
    ports: tuple[int, ...] = ()
    devices: bool = True


SPARE_PORTS = 4
"""Ports beyond one per worker: torch master, paddle master, coordinator, one in reserve."""
