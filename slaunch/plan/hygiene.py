"""What a worker must not inherit from its launcher. One table; docs/hygiene.md is made from it.

Patterns are names, or prefixes that end in `*`. In layout "task" the task's own identity is the worker's, so that only
left-overs go (P56's exception); in layout "agent" several workers would share the agent's identity, and all of it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from slaunch.frozen import dataclass
from slaunch.plan.seat import Seat


@dataclass(frozen=True)
class Rule:
    """One line of the table.

    Attributes:
        group: what kind of variable it is, in a few words.
        patterns: names, or prefixes that end in `*`.
        why: what would happen otherwise.
        layouts: the layouts in which it is removed; () = never touched, whatever a wider pattern says.
    """

    group: str
    patterns: tuple[str, ...]
    why: str
    layouts: tuple[str, ...] = ("agent",)


BOTH = ("agent", "task")

TABLE = (
    Rule(
        "PMI identity",
        ("PMI_*", "PMI2_*", "PMIX_*", "SLURM_PMI*"),
        "several workers would present themselves to the process manager as the one task that the agent is: MPI_Init in a worker "
        "then hangs or takes the agent's rank",
    ),
    Rule(
        "Open MPI identity",
        (
            *("OMPI_COMM_*", "OMPI_MCA_ess*", "OMPI_MCA_orte_*", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir", "OMPI_MCA_prte_*"),
            *("OMPI_MCA_shmem_RUNTIME_QUERY_hint", "OMPI_MCA_mpi_oversubscribe", "OMPI_ARGV", "OMPI_COMMAND", "OMPI_FIRST_RANKS"),
            *("OMPI_APP_CTX_NUM_PROCS", "OMPI_NUM_APP_CTX", "OMPI_FILE_LOCATION", "OMPI_UNIVERSE_SIZE", "PRTE_*", "ORTE_*"),
        ),
        "the same, through Open MPI's daemon; what the user set for Open MPI (OMPI_MCA_btl and the like) stays",
    ),
    Rule(
        "Hydra identity",
        ("HYDI_*", "HYDRA_*", "MPI_LOCAL*", "MPIEXEC_*", "MPISPAWN_*", "MV2_COMM_WORLD_*"),
        "the same, through MPICH's, Intel's or MVAPICH's process manager",
    ),
    Rule("PALS identity", ("PALS_*", "ALPS_*"), "the same, on Cray systems"),
    Rule("Flux identity", ("FLUX_TASK_*", "FLUX_JOB_SIZE", "FLUX_JOB_NNODES", "FLUX_PMI_*"), "the same, under Flux"),
    Rule("jsrun identity", ("JSM_*",), "the same, under IBM's jsrun"),
    Rule(
        "Slurm task",
        ("SLURM_TASK_PID", "SLURM_STEP_RESV_PORTS", "SLURM_STEP_LAUNCHER_PORT", "SLURM_SRUN_COMM_*"),
        "they describe the agent's task and the connection to its srun, which no worker may use",
    ),
    Rule(
        "Slurm step number",
        ("SLURM_STEP_ID", "SLURM_STEPID"),
        "with SLURM_NODELIST, which many programs read, Open MPI 4 takes it for the sign that srun started the worker, and "
        "aborts in MPI_Init as it finds no PMI",
    ),
    Rule(
        "Slurm binding",
        ("SLURM_CPU_BIND*", "SLURM_MEM_BIND*", "SLURM_GPU_BIND", "SLURM_TRES_BIND", "SLURM_TRES_PER_TASK", "SLURM_GPUS_PER_TASK"),
        "masks and requests of the agent's task: an srun, sbatch or mpirun that a worker calls would apply or refuse them",
    ),
    Rule(
        "left-overs of a PyTorch launcher",
        (
            *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME"),
            *("ROLE_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_*"),
        ),
        "a shell or an outer launcher left them; they name ranks and addresses of another job",
        BOTH,
    ),
    Rule(
        "left-overs of a Paddle launcher",
        (
            *("POD_NAME", "PADDLE_MASTER", "PADDLE_MASTER_ENDPOINT", "PADDLE_WORKER_ENDPOINT", "PADDLE_GLOBAL_*"),
            *("PADDLE_LOCAL_*", "PADDLE_NNODES", "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINER_*", "PADDLE_TRAINERS_*"),
            *("PADDLE_RANK*", "PADDLE_LOG_DIR"),
            *("PADDLE_AUTO_CLUSTER", "PADDLE_BACKUP_ENV_PATH", "PADDLE_ROLE", "PADDLE_PORT", "PADDLE_PSERVERS_IP_PORT_LIST"),
            *("PADDLE_COORDINATOR_*", "PADDLE_STAGE_*", "PADDLE_ALL_HETER_*", "PADDLE_NEXT_HETER_*", "PADDLE_PREVIOUS_HETER_*"),
            *("PADDLE_GLOO_*", "TRAINING_ROLE", "TRAINER_IP_PORT_LIST", "COLLECTIVE_MASTER_IP", "DISTRIBUTED_TRAINER_ENDPOINTS"),
            *("PADDLE_AUTO_PARALLEL_STAGE", "FLAGS_selected_*"),
        ),
        "several are inputs of a launcher and outputs to a worker at once: a launcher started inside a worker would follow them",
        BOTH,
    ),
    Rule(
        "left-overs of other launchers",
        (
            *("TF_CONFIG", "JAX_COORDINATOR_*", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_LOCAL_DEVICE_IDS", "LOCAL_SIZE"),
            *("CROSS_RANK", "CROSS_SIZE", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_*", "HOROVOD_CROSS_*", "HOROVOD_GLOO_*"),
            *("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_HOSTNAME"),
        ),
        "as above, for TensorFlow, JAX, DeepSpeed and Horovod",
        BOTH,
    ),
    Rule(
        "slaunch's own",
        ("SLAUNCH_*",),
        "settings and numbers of this launch must not steer a launch inside a worker, and its secrets are nobody else's",
        BOTH,
    ),
    Rule(
        "parameters of MPI and PMIx",
        ("PMIX_MCA_*", "OMPI_MCA_btl*", "OMPI_MCA_pml*", "OMPI_MCA_mtl*", "OMPI_MCA_coll*", "OMPI_ALLOW_RUN_AS_ROOT*"),
        "settings, not identity: the user or the site chose them for every process",
        (),
    ),
    Rule(
        "the job",
        (
            *("SLURM_JOB*", "SLURM_CLUSTER_NAME", "SLURM_CONF", "SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_SUBMIT_*"),
            *("SLURM_ARRAY_*", "SLURM_HET_*"),
        ),
        "true for every process of the job; programs read them for names and paths",
        (),
    ),
    Rule(
        "proxies",
        ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
        "the program may need them to fetch data. slaunch itself never talks through a proxy, so that it need not remove them "
        "as Paddle's launcher does; the JAX and TensorFlow contracts list the peers in no_grpc_proxy",
        (),
    ),
    Rule(
        "the user's world",
        ("PATH", "HOME", "USER", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_*", "LANG", "LC_*"),
        "the program runs as it would without slaunch",
        (),
    ),
    Rule(
        "communication libraries",
        ("NCCL_*", "RCCL_*", "GLOO_*", "UCX_*", "FI_*", "I_MPI_*", "MPIR_CVAR_*", "MPICH_*"),
        "the user's and the site's tuning",
        (),
    ),
)


SPARED = tuple(pattern for rule in TABLE if not rule.layouts for pattern in rule.patterns)


def drops(env: Iterable[str], layout: str, keep: Sequence[str] = (), drop: Sequence[str] = ()) -> tuple[str, ...]:
    """Names in `env` that a worker must not inherit, sorted.

    The user's `keep` patterns win over their `drop` patterns, those over what the table never touches, and that over what it
    removes.
    """
    return tuple(sorted(reasons(env, layout, keep, drop)))


def reasons(env: Iterable[str], layout: str, keep: Sequence[str] = (), drop: Sequence[str] = ()) -> dict[str, str]:
    """As `drops`, with the group of the table, or "--drop-env", that each name goes by."""
    return dict(_reasons(tuple(env), layout, tuple(keep), tuple(drop)))


@lru_cache(maxsize=2)  # the same for all workers of a node
def _reasons(env: tuple[str, ...], layout: str, keep: tuple[str, ...], drop: tuple[str, ...]) -> Mapping[str, str]:
    kept, wished, spared = covers(keep), covers(drop), covers(SPARED)
    groups = [(rule.group, covers(rule.patterns)) for rule in TABLE if layout in rule.layouts]
    found: dict[str, str] = {}
    for name in env:
        if kept(name):
            continue
        if wished(name):
            found[name] = "--drop-env"
        elif not spared(name):
            group = next((group for group, covered in groups if covered(name)), "")
            if group:
                found[name] = f"hygiene: {group}"
    return found


def covers(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A function that tells whether one of these names, or prefixes that end in `*`, covers a name."""
    exact = frozenset(patterns)
    starts = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    return lambda name: name in exact or name.startswith(starts)


def rewrites(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """Slurm's variables that describe the task, with the worker's values, unless they are right already.

    Programs that know Slurm (`SLURM_PROCID` as rank) then see workers as the step's tasks. Only variables that are there change.
    Where tasks are workers, srun has set them right, but an mpirun inside a step leaves those of its own daemon (P17).
    """
    rank, world = str(seat.rank), str(seat.plan.world)
    if "SLURM_PROCID" not in env or (env["SLURM_PROCID"], env.get("SLURM_NTASKS")) == (rank, world):
        return {}
    counts = compressed(tuple(len(node.ranks) for node in seat.plan.nodes))
    values = {
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": str(seat.local_rank),
        "SLURM_NODEID": str(seat.node.index),
        "SLURM_GTIDS": ",".join(map(str, seat.node.ranks)),
        "SLURM_NTASKS": world,
        "SLURM_NPROCS": world,
        "SLURM_STEP_NUM_TASKS": world,
        "SLURM_NTASKS_PER_NODE": str(seat.local_size),
        "SLURM_TASKS_PER_NODE": counts,
        "SLURM_STEP_TASKS_PER_NODE": counts,
    }
    cpus = seat.node.cpus[seat.local_rank]
    if cpus:
        values["SLURM_CPUS_PER_TASK"] = str(len(cpus))
    return {name: value for name, value in values.items() if name in env}


def compressed(counts: Sequence[int]) -> str:
    """Counts per node in Slurm's form: (2, 2, 1) -> "2(x2),1"."""
    runs: list[list[int]] = []
    for count in counts:
        if runs and runs[-1][0] == count:
            runs[-1][1] += 1
        else:
            runs.append([count, 1])
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in runs)
