"""The step before the workers: one process on each node, which must succeed. A user's command (`--pre-hook`), or the tuning that
Paddle's `--auto_parallel_config` asks for.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.errors import PlanError, UsageError
from slaunch.frozen import replace
from slaunch.options import Options
from slaunch.plan.endpoints import RESERVE, join
from slaunch.plan.services import store
from slaunch.plan.values import Plan, WorkerSpec
from slaunch.plan.workers import worker

LOG = "tuner.log"
HOOK = "prehook.log"

KEPT = ("POD_NAME", "PADDLE_LOG_DIR", "FLAGS_selected_gpus", "FLAGS_selected_xpus")
"""Contracts' variables that the tuning process gets, too."""


def lone(plan: Plan, rank: int, env: Mapping[str, str], options: Options) -> WorkerSpec:
    """The worker that a task becomes.

    Raises:
        PlanError: a step before the workers is wanted, but nobody waits for its end.
    """
    tuning = options.auto_parallel_config and options.tuning != "skip"
    if tuning or options.pre_hook:
        given = f"--auto_parallel_config {options.auto_parallel_config}" if tuning else "--pre-hook"
        more = ", or set tuner_run_mode to run_only" if tuning else ", or run the command in the batch script, by srun"
        raise PlanError(
            "run a step before the workers",
            f"{given}, but each of several tasks on a node becomes a worker",
            f"start one task per node (srun --ntasks-per-node=1){more}",
        )
    spec = worker(plan, rank, env, options)
    return staged(spec, options) if options.auto_parallel_config else spec


def crew(plan: Plan, index: int, env: Mapping[str, str], options: Options) -> tuple[WorkerSpec, ...]:
    """Everything that node `index` starts, in order: the step before the workers, services, workers."""
    specs = [worker(plan, rank, env, options) for rank in plan.nodes[index].ranks]
    ordered = tuple(sorted(specs, key=lambda spec: not spec.service))
    if not options.auto_parallel_config:
        return (*hook(plan, index, options), *store(plan, index), *ordered)
    if options.pre_hook:
        seen = "--pre-hook and --auto_parallel_config"
        raise UsageError("run one step before the workers", seen, "call the command from the program's tuning stage")
    workers = () if options.tuning == "only" else (*store(plan, index), *(staged(spec, options) for spec in ordered))
    return workers if options.tuning == "skip" else (tuner(plan, specs[0], options), *workers)


def hook(plan: Plan, index: int, options: Options) -> tuple[WorkerSpec, ...]:
    """The user's command on a node: with slaunch's own environment, and no worker's variables. Its rank is beyond all others."""
    if not options.pre_hook:
        return ()
    log = HOOK if len(plan.nodes) == 1 else f"{HOOK}.{index}"
    return (
        WorkerSpec(
            rank=plan.world + len(plan.nodes) + 1 + index,
            local_rank=len(plan.nodes[index].ranks) + 1,
            node=index,
            argv=options.pre_hook,
            set_env={"SLAUNCH_NODE_RANK": str(index), "SLAUNCH_ATTEMPT": str(plan.attempt)},
            drop_env=(),
            cpus=(),
            devices=(),
            log_name=log,
            role="pre-hook",
            first=True,
        ),
    )


def staged(spec: WorkerSpec, options: Options) -> WorkerSpec:
    """A worker that is told of the tuning's result."""
    own = {"PADDLE_AUTO_PARALLEL_CONFIG": options.auto_parallel_config, "PADDLE_AUTO_PARALLEL_STAGE": "run"}
    return told(spec, own)


def tuner(plan: Plan, first: WorkerSpec, options: Options) -> WorkerSpec:
    """The tuning process of a node: a world of one in the place of the node's first worker, without ranks in the job's world.

    Its own rank is beyond those of the workers.
    """
    node = plan.nodes[first.node]
    own = {
        "PADDLE_AUTO_PARALLEL_CONFIG": options.auto_parallel_config,
        "PADDLE_AUTO_PARALLEL_STAGE": "tuner",
        "PADDLE_TRAINERS_NUM": "1",
        "PADDLE_TRAINER_ID": "0",
        "PADDLE_TRAINER_ENDPOINTS": join("127.0.0.1", node.spare_ports[RESERVE]),
        "PADDLE_CURRENT_ENDPOINT": join("127.0.0.1", node.spare_ports[RESERVE]),
        "PADDLE_GLOBAL_SIZE": str(plan.world),
        "PADDLE_LOCAL_SIZE": str(len(node.ranks)),
    }
    log = LOG if len(plan.nodes) == 1 else f"{LOG}.{node.index}"
    kept = {name: value for name, value in first.set_env.items() if first.origins[name] not in plan.contracts or name in KEPT}
    dropped = tuple(sorted({*first.drop_env, *first.set_env} - set(kept) - set(own)))
    spec = replace(first, rank=plan.world + node.index, set_env=kept, drop_env=dropped, log_name=log, first=True)
    return told(spec, own)


def told(spec: WorkerSpec, own: Mapping[str, str]) -> WorkerSpec:
    """The worker with further variables."""
    origins = {**spec.origins, **dict.fromkeys(own, "--auto_parallel_config")}
    return replace(spec, set_env={**spec.set_env, **own}, origins=origins)
