"""Looks at this machine: `probe` makes the node's facts and holds its ports."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

from slaunch import __version__
from slaunch.errors import DeviceError, SlaunchError
from slaunch.node.cpus import binder, read_cpus
from slaunch.node.devices.choose import select
from slaunch.node.devices.share import sharing_notes
from slaunch.node.devices.table import find
from slaunch.node.devices.values import Found, View
from slaunch.node.fabric import read_nics
from slaunch.node.files import problem, read_text
from slaunch.node.limits import notes_here
from slaunch.node.mempolicy import read_memory
from slaunch.node.nics import LOOPBACK, read_addresses, read_listed
from slaunch.node.ports import Reserved, reserve
from slaunch.node.program import check_log_dir, check_program, digest
from slaunch.node.values import SPARE_PORTS, Address, Device, NodeFacts, Problem, Wish
from slaunch.options import Options, Program

NO_WISH = Wish()


def probe(env: Mapping[str, str], options: Options, root: str = "/", wish: Wish = NO_WISH) -> tuple[NodeFacts, Reserved]:
    """What this machine has for this task, and the ports held on it.

    Errors of this machine alone are put into `NodeFacts.problems`: the nodes meet all the same, and one of them tells for all.

    Args:
        env: this process's environment.
        options: what the user asked for.
        root: root of the file tree; another than "/" holds a recorded machine.
        wish: what the job's mode asks of this node.
    """
    found = find(View(env, root))
    cpus = read_cpus(root)
    workers, devices, device_problems = crew(found, options, wish, len(cpus.mask))
    memory = read_memory(root)
    addresses, network_problems = addresses_of(options)
    first = options.start_port
    fixed = wish.ports or tuple(range(first, first + workers + SPARE_PORTS) if first else ())
    reserved, port_problems = hold(workers + SPARE_PORTS, env, fixed)
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
            *programs_missing(options, env),
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
        notes=(*found.notes, *sharing_notes(options, devices, env, root), *notes_here(workers, root)),
        memory=memory.nodes,
        memory_policy=memory.policy,
        nics=read_nics(devices, root) if options.nics != "none" else (),
        packages=cpus.cores.packages,
        reach_packages=cpus.reach.packages,
        held=found.held,
    )
    return facts, reserved


def crew(found: Found, options: Options, wish: Wish, cpus: int) -> tuple[int, tuple[Device, ...], tuple[Problem, ...]]:
    """Number of workers, the devices that they use, and what is wrong with the user's wish."""
    try:
        if not wish.devices:
            select(found, options.devices)
            return wish.workers or options.nproc_per_node or 1, (), ()
        cpus_only = options.backend == "gloo" or (options.one_per == "cpu" and not options.nproc_per_node)
        devices = () if cpus_only else select(found, options.devices)
        groups = group_count(len(devices), options.devices_per_worker, options.workers_per_device)
        workers = wish.workers or options.nproc_per_node or natural_count(options.one_per, groups, cpus)
    except SlaunchError as error:
        return 1, (), (problem(error),)
    return workers, devices, ()


def group_count(devices: int, each: int, sharing: int) -> int:
    """How many workers the devices are for: a number for each, or several workers that share one; all devices are for one."""
    if each < 0:
        return min(1, devices)
    return devices // (each or 1) * sharing or min(1, devices)


def natural_count(one_per: str, devices: int, cpus: int) -> int:
    """Number of workers where the user gave none: one for each device, CPU, or node.

    Raises:
        DeviceError: one for each device is wanted, and there is none.
    """
    if one_per == "device" and not devices:
        raise DeviceError("start a worker for each device", "no device is visible", "ask the scheduler for devices")
    return {"": devices or 1, "device": devices, "cpu": cpus, "auto": devices or cpus, "node": 1}[one_per]


def programs_missing(options: Options, env: Mapping[str, str]) -> tuple[Problem, ...]:
    """What is wrong with the programs; those of a container are not to be seen from here."""
    if options.container:
        return check_program(Program(options.container[0], kind="executable"), env)
    programs = [part.program for part in options.parts] or [options.program]
    return tuple(found for program in programs for found in check_program(program, env))


def addresses_of(options: Options) -> tuple[tuple[Address, ...], tuple[Problem, ...]]:
    """Usable addresses, or the one that the user gave, and what is wrong with the user's wish."""
    if options.host.startswith("127."):
        return (LOOPBACK,), ()
    try:
        if options.ips and not options.host:
            return read_listed(options.ips), ()
        return read_addresses(options.host or options.network), ()
    except SlaunchError as error:
        return (LOOPBACK,), (problem(error),)


def hold(count: int, env: Mapping[str, str], fixed: tuple[int, ...] = ()) -> tuple[Reserved, tuple[Problem, ...]]:
    """Ports of this node, the fixed ones first, and what is wrong with them."""
    try:
        return reserve(count, env, fixed=fixed), ()
    except SlaunchError as error:
        return Reserved((), ()), (problem(error),)


def machine(root: str) -> str:
    """Identity of this machine: of its boot, and of its network namespace (virtual nodes share a kernel)."""
    return f"{read_text(os.path.join(root, 'proc/sys/kernel/random/boot_id'))}/{os.readlink('/proc/self/ns/net')}"


def agreed(options: Options) -> str:
    """Those options that must be the same on every node."""
    bound = (options.bind, options.bind_memory, options.nics, options.workers_per_device, options.devices_per_worker)
    attempts = (options.max_restarts, options.restart_delay_s, options.no_restart_codes)
    own = (*attempts, options.mode, options.contracts, options.nproc_per_node, *bound, options.rendezvous, options.parts)
    return repr((*own, options.container, options.python, options.servers, options.trainers, options.start_port))
