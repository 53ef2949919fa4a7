"""Looks at this machine: `probe` makes the node's facts and holds its ports."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

from slaunch import __version__
from slaunch.errors import SlaunchError
from slaunch.node.cpus import binder, read_cpus
from slaunch.node.devices.choose import assign, select
from slaunch.node.devices.table import find
from slaunch.node.devices.values import Found, View
from slaunch.node.files import problem, read_text
from slaunch.node.nics import LOOPBACK, read_addresses
from slaunch.node.ports import Reserved, reserve
from slaunch.node.program import check_log_dir, check_program, digest
from slaunch.node.values import SPARE_PORTS, Address, Device, NodeFacts, Problem
from slaunch.options import Options


def probe(env: Mapping[str, str], options: Options, root: str = "/") -> tuple[NodeFacts, Reserved]:
    """What this machine has for this task, and the ports held on it.

    Errors of this machine alone are put into `NodeFacts.problems`: the nodes meet all the same, and one of them tells for all.

    Args:
        env: this process's environment.
        options: what the user asked for.
        root: root of the file tree; another than "/" holds a recorded machine.
    """
    found = find(View(env, root))
    devices, device_problems = chosen(found, options)
    workers = options.nproc_per_node or len(devices) or 1
    addresses, network_problems = addresses_of(options.network)
    reserved, port_problems = hold(workers + SPARE_PORTS, env)
    cpus = read_cpus(root)
    facts = NodeFacts(
        host=os.uname().nodename,
        machine=machine(root),
        addresses=addresses,
        cpus=cpus.mask,
        cores=cpus.cores.cpus,
        devices=devices,
        visible=found.variable,
        workers=workers,
        ports=reserved.ports,
        control_port=0,
        pid=os.getpid(),
        python=sys.executable,
        versions=f"slaunch {__version__}, python {'.'.join(map(str, sys.version_info[:3]))}",
        program_digest=digest(options.program, env, agreed(options)),
        time_s=time.time(),
        problems=(
            *check_program(options.program, env),
            *(check_log_dir(options.log_dir) if options.log_dir else ()),
            *found.problems,
            *device_problems,
            *network_problems,
            *port_problems,
        ),
        numa=cpus.cores.numa,
        caches=cpus.cores.caches,
        reach=cpus.reach.cpus,
        reach_numa=cpus.reach.numa,
        reach_caches=cpus.reach.caches,
        online=cpus.online,
        binder=binder(env),
        notes=found.notes,
    )
    return facts, reserved


def chosen(found: Found, options: Options) -> tuple[tuple[Device, ...], tuple[Problem, ...]]:
    """The devices to use, and what is wrong with the user's wish."""
    try:
        devices = select(found, options.devices)
        assign(devices, options.nproc_per_node or max(1, len(devices)))
    except SlaunchError as error:
        return (), (problem(error),)
    return devices, ()


def addresses_of(network: str) -> tuple[tuple[Address, ...], tuple[Problem, ...]]:
    """Usable addresses, and what is wrong with the user's network."""
    try:
        return read_addresses(network), ()
    except SlaunchError as error:
        return (LOOPBACK,), (problem(error),)


def hold(count: int, env: Mapping[str, str]) -> tuple[Reserved, tuple[Problem, ...]]:
    """Ports of this node, and what is wrong with them."""
    try:
        return reserve(count, env), ()
    except SlaunchError as error:
        return Reserved((), ()), (problem(error),)


def machine(root: str) -> str:
    """Identity of this machine: of its boot, and of its network namespace (virtual nodes share a kernel)."""
    return f"{read_text(os.path.join(root, 'proc/sys/kernel/random/boot_id'))}/{os.readlink('/proc/self/ns/net')}"


def agreed(options: Options) -> str:
    """Those options that must be the same on every node."""
    return repr((options.mode, options.contracts, options.nproc_per_node, options.bind, options.rendezvous))
