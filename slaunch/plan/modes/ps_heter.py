"""Heterogeneous parameter servers: as mode ps, and further stages of workers on other kinds of device behind the trainers.

Stage 1 are the trainers, on CPUs; `--heter_devices "gpu;cpu"` and `--heter_worker_num "2;1"` make a stage 2 of two workers per
node on GPUs and a stage 3 of one on CPUs. Source: the behaviour of Paddle's older launcher (`fleet.launch`), recorded in
tests/data/worker_env/paddle_ps_heter.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.errors import UsageError
from slaunch.node.values import NodeFacts, Wish
from slaunch.options import Options
from slaunch.plan.modes import Cast, Mode, servers
from slaunch.plan.modes.roles import (
    HETER,
    TRAINER,
    Lists,
    Wanted,
    cast_by_counts,
    cast_by_lists,
    check_numbers,
    endpoints_of,
    members,
    wish_of,
)
from slaunch.plan.parts import number_of, wants_devices
from slaunch.plan.seat import Seat

FIRST = 2
"""Number of the first stage behind the trainers."""


def kinds(options: Options) -> tuple[str, ...]:
    """Kind of device of each stage behind the trainers; GPUs where the user does not say, as Paddle's documentation means it."""
    return options.heter_devices or ("gpu",) * len(options.heters or options.heter_num)


def stages(options: Options) -> int:
    """Number of stages behind the trainers.

    Raises:
        UsageError: devices and numbers of workers are not told for the same number of stages.
    """
    listed = options.heters or options.heter_num
    if not listed or len(listed) != len(kinds(options)):
        raise UsageError(
            "lay out the stages of the mode ps-heter",
            f"devices {';'.join(kinds(options)) or 'of no stage'}, workers of {len(listed)} stages",
            'give one item for each stage, e.g. --heter_devices "gpu" --heter_worker_num "2"',
        )
    return len(listed)


def role(stage: int) -> str:
    """The role of a stage's workers."""
    return TRAINER if stage < FIRST else f"{HETER}{stage}"


def wanted(options: Options) -> Wanted:
    """How many of each a node has."""
    stages = ((role(FIRST + index), count) for index, count in enumerate(options.heter_num))
    return (*servers.wanted(options), *((name, number_of(options, name, count)) for name, count in stages))


def lists(options: Options) -> Lists:
    """Endpoints that the user fixed."""
    fixed = servers.lists(options)
    return (*fixed, *((role(FIRST + index), entries) for index, entries in enumerate(options.heters))) if fixed else ()


def wish(options: Options, own: str) -> Wish:
    """What a node is asked for."""
    stages(options)
    check_numbers(options)
    return wish_of(wanted(options), lists(options), own, wants_devices(options))


def cast(facts: Sequence[NodeFacts], options: Options) -> tuple[Cast, ...]:
    """Every node's servers, trainers and heterogeneous workers."""
    stages(options)
    fixed = lists(options)
    return cast_by_lists(facts, fixed) if fixed else cast_by_counts(facts, options, wanted)


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Environment of a worker of any role.

    gloo is off unless the user wants it, as in the older launcher: workers of further stages are not among those that meet by it,
    so that `fleet.init_worker` fails there.
    """
    chosen = "with_gloo" in seat.options.origins and seat.options.origins["with_gloo"] != "default"
    everyone = {"PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST": all_heters(seat)} | ({} if chosen else {"PADDLE_WITH_GLOO": "0"})
    if seat.role.startswith(HETER):
        own = {"PADDLE_ROLE": "HETER_TRAINER", "TRAINING_ROLE": "HETER_TRAINER"}
        return servers.common(seat) | own | everyone | stage_variables(seat, int(seat.role.removeprefix(HETER)))
    values = servers.variables(seat, env) | everyone
    return values | stage_variables(seat, 1) if seat.role == TRAINER else values


def stage_variables(seat: Seat, stage: int) -> dict[str, str]:
    """What tells a worker of the stages, and of its neighbours."""
    last = stages(seat.options) + 1
    sizes = [len(members(seat.plan, role(each))) for each in range(1, last + 1)]
    return {
        "STAGE_ID": str(stage),
        "STAGE_NUM": str(last),
        "PADDLE_STAGE_TRAINERS_NUM": str(sizes),
        "HETER_DEVICE_TYPE": "cpu" if stage < FIRST else kinds(seat.options)[stage - FIRST],
        "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST": endpoints_of(seat.plan, role(stage - 1)) if stage > 1 else "",
        "PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST": endpoints_of(seat.plan, role(stage + 1)) if stage < last else "",
    }


def all_heters(seat: Seat) -> str:
    """Endpoints of all stages behind the trainers."""
    every = (endpoints_of(seat.plan, role(FIRST + index)) for index in range(stages(seat.options)))
    return ",".join(every)


MODE = Mode("ps_heter", wish, cast, variables, contracts=("slaunch",), replaces=("paddle",), layouts=("agent",))

