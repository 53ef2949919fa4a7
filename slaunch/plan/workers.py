"""One worker of the plan, ready to start."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.options import Options
from slaunch.plan import devices, hygiene, network, nics, peers, threads
from slaunch.plan.commands import command_of
from slaunch.plan.container import across
from slaunch.plan.contracts import combine
from slaunch.plan.limits import fit
from slaunch.plan.modes import find
from slaunch.plan.modes.logs import err_name, log_name
from slaunch.plan.seat import Seat, take_seat
from slaunch.plan.services import is_service
from slaunch.plan.values import Plan, WorkerSpec

RULES = (
    ("Slurm's task", hygiene.rewrites),
    ("threads", threads.variables),
    ("network", network.variables),
    ("near network cards", nics.variables),
)
"""What sets variables beside contracts, with its name in explanations."""


def worker(plan: Plan, rank: int, env: Mapping[str, str], options: Options) -> WorkerSpec:
    """Everything about worker `rank`: to be called on its node, with the environment that it will inherit.

    What is set, from weak to strong: Slurm's task variables with the worker's values, threads, network, contracts, visible
    devices. `--keep-env` shields a variable from hygiene and from the first three, never from a contract.

    Raises:
        PlanError: if there is no such worker, contracts contradict each other, or a variable would be too long for the kernel.
        UsageError: if a contract is unknown.
    """
    seat = take_seat(plan, rank, options)
    dropped = hygiene.reasons(env, plan.layout, options.keep_env, options.drop_env)
    values, origins = settings(seat, env)
    for name, value in devices.variables(seat, env).items():
        origins[name] = "visible devices"
        if value is None:
            dropped[name] = origins[name]
        else:
            values[name] = value
    command = command_of(plan, rank)
    for name, value in command.env:
        values[name], origins[name] = value, f"role {command.name}"
    values, long = fit(seat, values, env)
    listed = peers.files(seat)
    origins |= {file.variable: "long lists" for file in long} | {file.variable: "slaunch" for file in listed}
    removed = {name: why for name, why in dropped.items() if name not in values}
    return WorkerSpec(
        rank=rank,
        local_rank=seat.local_rank,
        node=seat.node.index,
        argv=command.argv,
        set_env=across(options.container, values),
        drop_env=tuple(sorted(removed)),
        cpus=seat.node.cpus[seat.local_rank],
        devices=seat.devices,
        log_name=log_name(seat),
        err_name=err_name(seat),
        files=(*long, *listed),
        origins=removed | {name: origins[name] for name in (*values, *(file.variable for file in (*long, *listed)))},
        role=seat.role,
        service=is_service(plan, seat.node, seat.local_rank),
        memory=seat.node.memory[seat.local_rank] if seat.node.memory else (),
        memory_policy=seat.node.memory_policy,
    )


def settings(seat: Seat, env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Variables that rules and contracts set, and where each comes from."""
    values: dict[str, str] = {}
    origins: dict[str, str] = {}
    kept = hygiene.covers(seat.options.keep_env)
    for origin, rule in RULES:
        for name, value in rule(seat, env).items():
            if not (name in env and kept(name)):
                values[name], origins[name] = value, origin
    contracted, owners = combine(seat.plan.contracts, seat, env)
    own = dict(find(seat.plan.mode).variables(seat, env))
    return values | contracted | own, origins | owners | dict.fromkeys(own, f"mode {seat.plan.mode}")
