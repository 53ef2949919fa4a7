"""TensorFlow: MultiWorkerMirroredStrategy, and with `--run_mode ps` ParameterServerStrategy.

Source: tensorflow 2.21, `python/distribute/cluster_resolver/tfconfig_cluster_resolver.py`: TF_CONFIG holds the cluster and the
own task. Each worker serves gRPC on its own endpoint; worker 0 is the chief (`multi_worker_util.is_chief`).

`python/distribute/parameter_server_strategy_v2.py`: with parameter servers, the task "chief" alone runs the program; the tasks
"worker" and "ps", of which there must be one each, run `tf.distribute.Server(...).join()`, which never returns. The first trainer
is the chief; the other trainers and the servers are services (`plan/services.py`), which end with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from slaunch.errors import PlanError
from slaunch.plan.endpoints import endpoints, without_proxy
from slaunch.plan.modes.roles import SERVER, TRAINER, endpoint, members
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """TF_CONFIG of one worker.

    Raises:
        PlanError: the mode has roles that TensorFlow does not know, or too few trainers.
    """
    config = with_roles(seat) if seat.node.roles else alike(seat)
    hosts = [node.address.ip for node in seat.plan.nodes]
    return {"TF_CONFIG": json.dumps(config)} | without_proxy(env, hosts)


def alike(seat: Seat) -> dict[str, object]:
    """All are workers."""
    return {"cluster": {"worker": endpoints(seat.plan)}, "task": {"type": "worker", "index": seat.rank}}


def with_roles(seat: Seat) -> dict[str, object]:
    """A chief, workers and parameter servers."""
    strange = sorted({role for node in seat.plan.nodes for role in node.roles} - {TRAINER, SERVER})
    trainers, servers = ([endpoint(*place) for place in members(seat.plan, role)] for role in (TRAINER, SERVER))
    if strange or len(trainers) < 2:
        raise PlanError(
            "give TensorFlow a chief, workers and parameter servers",
            f"the job has the role {strange[0]!r}" if strange else f"{len(trainers)} trainer, which is the chief",
            "use --run_mode ps without coordinators" if strange else "use two trainers or more (--trainer_num, on each node)",
        )
    cluster = {"chief": trainers[:1], "worker": trainers[1:], "ps": servers}
    kind = kind_of(seat)
    return {"cluster": cluster, "task": {"type": kind, "index": seat.number - (kind == "worker")}}


def kind_of(seat: Seat) -> str:
    """TensorFlow's name for the role."""
    if seat.role == SERVER:
        return "ps"
    return "worker" if seat.number else "chief"
