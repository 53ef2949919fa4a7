"""PaddlePaddle, collective mode: the variables of `paddle.distributed.launch`.

Source: paddlepaddle 3.3.1, `paddle/distributed/launch/controllers/collective.py` and `utils/process_context.py`, and the recorded
environments of its workers in tests/data/worker_env.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from slaunch.errors import UsageError
from slaunch.hashing import sha256
from slaunch.node.values import Device
from slaunch.plan.endpoints import PADDLE, endpoint_list, endpoints, join, master
from slaunch.plan.seat import Seat, homes
from slaunch.plan.values import Plan

SELECTED = {"gpu": "gpus", "rocm": "gpus", "xpu": "xpus", "ipu": "ipus"}
"""Kinds of device with a built-in back end in Paddle, and the ending of their FLAGS_selected_… variable."""

TRUE = ("1", "y", "yes", "t", "true", "on")
FALSE = ("", "0", "n", "no", "f", "false", "off")


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a Paddle worker.

    Paddle splits its master's address at colons, so that it cannot run over IPv6; the brackets are the form it is heading for.
    """
    plan = seat.plan
    world, rank, local_rank = str(plan.world), str(seat.rank), str(seat.local_rank)
    values = {
        "POD_NAME": pod_name(seat),
        "PADDLE_MASTER": join(*master(plan, PADDLE)),
        "PADDLE_GLOBAL_SIZE": world,
        "PADDLE_LOCAL_SIZE": str(seat.local_size),
        "PADDLE_GLOBAL_RANK": rank,
        "PADDLE_LOCAL_RANK": local_rank,
        "PADDLE_NNODES": str(len(plan.nodes)),
        "PADDLE_CURRENT_ENDPOINT": endpoints(plan)[seat.rank],
        "PADDLE_TRAINER_ID": rank,
        "PADDLE_TRAINERS_NUM": world,
        "PADDLE_RANK_IN_NODE": local_rank,
        "PADDLE_TRAINER_ENDPOINTS": endpoint_list(plan),
        "PADDLE_AUTO_CLUSTER": auto_cluster(env) if seat.options.auto_cluster is None else str(int(seat.options.auto_cluster)),
    }
    if plan.log_dir:
        values["PADDLE_LOG_DIR"] = plan.log_dir
    backend = {"PADDLE_DISTRI_BACKEND": seat.options.backend} if seat.options.backend else {}
    return values | device_variables(seat) | backend | (legacy_variables(seat) if seat.options.legacy else {})


def device_variables(seat: Seat) -> dict[str, str]:
    """Positions of the worker's devices in its visible list (not their labels), or the back end of a CPU worker."""
    if not seat.devices:
        return {"PADDLE_DISTRI_BACKEND": "gloo"}
    kind = seat.devices[0].kind
    positions = ",".join(map(str, seat.positions))
    if kind in SELECTED:
        return {f"FLAGS_selected_{SELECTED[kind]}": positions}
    return {f"FLAGS_selected_{kind}s": positions, "PADDLE_DISTRI_BACKEND": "xccl", "PADDLE_XCCL_BACKEND": kind}


def legacy_variables(seat: Seat) -> dict[str, str]:
    """What Paddle's older launcher told of devices beside; read by `fleet.local_device_ids` and `fleet.world_device_ids`."""
    if not seat.devices:
        return {}
    return {
        "PADDLE_LOCAL_DEVICE_IDS": ",".join(map(str, placed(seat.devices))),
        "PADDLE_WORLD_DEVICE_IDS": world_device_ids(seat.plan),
        "FLAGS_selected_accelerators": ",".join(map(str, seat.positions)),
    }


@lru_cache(maxsize=2)
def world_device_ids(plan: Plan) -> str:
    """Positions of every worker's devices in its node's list: with colons, and commas between workers."""
    return ",".join(":".join(map(str, placed(node.devices[local]))) for node, local in homes(plan))


def placed(devices: Sequence[Device]) -> list[int]:
    """Where the devices stand in the node's visible list."""
    return [device.position for device in devices]


def pod_name(seat: Seat) -> str:
    """Six lower-case letters, by which Paddle knows that it was launched; another for each node and attempt."""
    seed = sha256(f"{seat.plan.digest} {seat.node.index}".encode()).digest()
    return "".join(chr(ord("a") + byte % 26) for byte in seed[:6])


def auto_cluster(env: Mapping[str, str]) -> str:
    """PADDLE_AUTO_CLUSTER as the number that Paddle's engine reads it as; its own launcher writes `True`, on which that fails.

    Raises:
        UsageError: if the variable is no truth word.
    """
    word = env.get("PADDLE_AUTO_CLUSTER", "")
    if word.lower() in TRUE:
        return "1"
    if word.lower() in FALSE:
        return "0"
    raise UsageError("read the automatic cluster setting", f"PADDLE_AUTO_CLUSTER={word!r}", "set it to 1 or 0")
