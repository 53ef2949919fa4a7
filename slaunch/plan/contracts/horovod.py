"""Horovod: where each task is a worker it meets by MPI, where an agent starts the workers by Gloo, as horovodrun's do.

Source: horovod 0.28.1, `runner/gloo_run.py` (`create_slot_env_vars`, `create_run_envs`) for the variables,
`common/utils/env_parser.cc` for the controller, `common/gloo/gloo_context.cc` for how workers meet: at an HTTP server
(`slaunch/gloo_store.py`), without whose address each quietly becomes a world of one. Only elastic jobs, which slaunch restarts
instead, ask that server for their ranks ("rank_and_size").
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.errors import PlanError
from slaunch.plan.endpoints import RESERVE, master
from slaunch.plan.seat import Seat


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a Horovod process. "Cross" are the workers with the same local rank on other nodes.

    Raises:
        PlanError: the workers would have to meet at an IPv6 address.
    """
    across = [node.index for node in seat.plan.nodes if len(node.ranks) > seat.local_rank]
    meeting = by_mpi() if seat.plan.layout == "task" else by_gloo(seat)
    return meeting | {
        "HOROVOD_HOSTNAME": seat.node.host,
        "HOROVOD_RANK": str(seat.rank),
        "HOROVOD_SIZE": str(seat.plan.world),
        "HOROVOD_LOCAL_RANK": str(seat.local_rank),
        "HOROVOD_LOCAL_SIZE": str(seat.local_size),
        "HOROVOD_CROSS_RANK": str(across.index(seat.node.index)),
        "HOROVOD_CROSS_SIZE": str(len(across)),
    }


def by_mpi() -> dict[str, str]:
    """How tasks meet."""
    return {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}


def by_gloo(seat: Seat) -> dict[str, str]:
    """How an agent's workers meet."""
    address, port = master(seat.plan, RESERVE)
    if ":" in address:
        raise PlanError(
            "let Horovod's workers meet",
            f"the address {address} of the first node, but Horovod's HTTP client knows IPv4 only",
            "choose an IPv4 network with --network, or start one task for each worker, which meet by MPI",
        )
    interface = seat.node.address.interface
    return {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        **({"HOROVOD_GLOO_IFACE": interface} if interface else {}),
    }
