"""Plans without machines: facts of nodes that differ only in what a test is about."""

from __future__ import annotations

import dataclasses

from slaunch.allocation.values import Allocation
from slaunch.node.values import SPARE_PORTS, Address, Device, NodeFacts
from slaunch.options import Options, Program
from slaunch.plan.build import build
from slaunch.plan.workers import worker
from slaunch.rendezvous.values import Membership

SLURM = Allocation("slurm", job="7", step="0")


def options(**changes):
    return Options(Program("train.py"), **changes)


def gpus(*labels, kind="gpu", uuids=True):
    return tuple(Device(kind, at, label, f"GPU-{label}" if uuids else "") for at, label in enumerate(labels))


def facts(index, workers=2, devices=(), visible="", **changes):
    """A node with eight cores and one address on the subnet that all share."""
    made = NodeFacts(
        host=f"n{index + 1}",
        machine=f"machine{index}",
        addresses=(Address(f"10.0.{index // 250}.{index % 250 + 1}", "eth0", 16, 1000),),
        cpus=tuple(range(16)),
        cores=tuple((core, core + 8) for core in range(8)),
        devices=tuple(devices),
        visible=visible,
        workers=workers,
        ports=tuple(20000 + port for port in range(workers + SPARE_PORTS)),
        control_port=0,
        pid=1,
        python="/usr/bin/python3",
        versions="",
        program_digest="",
        time_s=0.0,
        online=16,
    )
    return dataclasses.replace(made, **changes)


def tasks(machine_of, **changes):
    """One task per entry, on the machine that it names."""
    return [facts(machine, workers=1, ports=tuple(range(20000 + 10 * task, 20000 + 10 * task + 1 + SPARE_PORTS)), **changes)
            for task, machine in enumerate(machine_of)]


def plan(everyone, **chosen):
    attempt = chosen.pop("attempt", 0)
    log_dir = chosen.pop("log_dir", "/logs")
    membership = Membership(tuple(everyone), 0, 0, "none", "", b"")
    return build(membership, options(**chosen), SLURM, ("python3", "train.py"), "job7", log_dir, attempt)


def env_of(made, rank, inherited=None, **chosen):
    """The whole environment that a worker gets."""
    inherited = inherited or {}
    spec = worker(made, rank, inherited, options(**chosen))
    return {name: value for name, value in inherited.items() if name not in spec.drop_env} | dict(spec.set_env)


def two_by_two(**changes):
    return [facts(0, **changes), facts(1, **changes)]
