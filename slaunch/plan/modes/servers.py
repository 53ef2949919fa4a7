"""What the modes "ps" and "ps_heter" have in common: servers, trainers and coordinators, and what they find in their environment.

Source: paddlepaddle 2.6.2 and 3.3.1, the recorded environments of their launchers' workers in tests/data/worker_env. It
differs where the original is broken: PADDLE_GLOO_FS_PATH is below the log directory, which nodes share, instead of a path that
was removed before use.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.options import Options
from slaunch.plan.contracts.paddle import device_variables, pod_name
from slaunch.plan.endpoints import PADDLE, join
from slaunch.plan.modes.roles import (
    COORDINATOR,
    SERVER,
    TRAINER,
    Lists,
    Wanted,
    endpoint,
    endpoints_of,
    host_of,
    members,
)
from slaunch.plan.parts import number_of
from slaunch.plan.seat import Seat

TITLES = {SERVER: "PSERVER", TRAINER: "TRAINER", COORDINATOR: "COORDINATOR"}
"""Roles as Paddle calls them."""


def wanted(options: Options) -> Wanted:
    """How many of each a node has; trainers come first, so that rank 0 is one."""
    numbers = ((TRAINER, options.trainer_num or 1), (SERVER, options.server_num or 1), (COORDINATOR, options.coordinator_num))
    return tuple((role, number_of(options, role, count)) for role, count in numbers)


def lists(options: Options) -> Lists:
    """Endpoints that the user fixed; () = none."""
    if not options.servers:
        return ()
    return ((TRAINER, options.trainers), (SERVER, options.servers), (COORDINATOR, options.coordinators))


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a server, trainer or coordinator."""
    title = TITLES[seat.role]
    numbered = {} if seat.role == SERVER else {"PADDLE_TRAINER_ID": str(seat.number)}
    return common(seat) | numbered | {"PADDLE_ROLE": title, "TRAINING_ROLE": title} | coordinators(seat)


def common(seat: Seat) -> dict[str, str]:
    """What all roles get."""
    plan = seat.plan
    own = endpoint(seat.node, seat.local_rank)
    return {
        "POD_NAME": pod_name(seat),
        "PADDLE_NNODES": str(len(plan.nodes)),
        "PADDLE_PSERVERS_IP_PORT_LIST": endpoints_of(plan, SERVER),
        "PADDLE_TRAINER_ENDPOINTS": endpoints_of(plan, TRAINER),
        "PADDLE_TRAINERS_NUM": str(len(members(plan, TRAINER))),
        "PADDLE_PORT": own.rpartition(":")[2],
        "POD_IP": host_of(own),
        "PADDLE_WITH_GLOO": seat.options.with_gloo,
        "PADDLE_GLOO_RENDEZVOUS": "3",
        "PADDLE_GLOO_FS_PATH": f"{plan.log_dir}/gloo",
        "PADDLE_GLOO_HTTP_ENDPOINT": gloo(seat),
        "PADDLE_LOG_DIR": plan.log_dir,
        **visible(seat),
        **(device_variables(seat) if seat.devices else {}),
    }


def visible(seat: Seat) -> dict[str, str]:
    """The devices that the user chose: all workers see the same list, but where roles have devices of their own."""
    devices = seat.options.devices
    return {seat.node.visible or "CUDA_VISIBLE_DEVICES": ",".join(devices)} if devices else {}


def gloo(seat: Seat) -> str:
    """Where the first server lets gloo meet: on its own host, at the port that the user fixed or a reserved one."""
    node, local = members(seat.plan, SERVER)[0]
    return join(host_of(endpoint(node, local)), seat.options.gloo_port or node.spare_ports[PADDLE])


def coordinators(seat: Seat) -> dict[str, str]:
    """What tells of coordinators, where there are any."""
    every = members(seat.plan, COORDINATOR)
    if not every:
        return {}
    values = {"PADDLE_COORDINATOR_ENDPOINTS": endpoints_of(seat.plan, COORDINATOR)}
    return values | ({"PADDLE_COORDINATOR_NUM": str(len(every))} if seat.role == COORDINATOR else {})
