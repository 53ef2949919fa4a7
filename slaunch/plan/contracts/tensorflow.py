"""TensorFlow: MultiWorkerMirroredStrategy and friends.

Source: tensorflow 2.21, `python/distribute/cluster_resolver/tfconfig_cluster_resolver.py`: TF_CONFIG holds the cluster and the
own task. Each worker serves gRPC on its own endpoint; worker 0 is the chief (`multi_worker_util.is_chief`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from slaunch.plan.endpoints import endpoints, without_proxy
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """TF_CONFIG of one worker."""
    config = {"cluster": {"worker": endpoints(seat.plan)}, "task": {"type": "worker", "index": seat.rank}}
    hosts = [node.address.ip for node in seat.plan.nodes]
    return {"TF_CONFIG": json.dumps(config)} | without_proxy(env, hosts)
