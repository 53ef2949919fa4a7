"""What the scheduler or MPI launcher gave us, as values."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.frozen import dataclass


@dataclass(frozen=True)
class Evidence:
    """One thing that a reader saw: a variable, its value, and what it tells."""

    variable: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Allocation:
    """The nodes and the identity of the job step (or MPI run) that this process belongs to.

    Attributes:
        launcher: name of the reader that made it: "slurm", "openmpi", "hydra", "plain", …
        job: the job's id as the scheduler's tools take it ("123", "123_4" for an array task); "" if there is none.
        step: the step's id within the job; "" outside a step.
        nodes: host names in the order of their node numbers; () if the launcher does not tell (they are then learnt by meeting).
        tasks_per_node: number of tasks on each of `nodes`; () if not told.
        root: host name of the node where task rank 0 runs; "" if the launcher does not tell (or, in a Shell, before the step).
        restarts: how often the scheduler has requeued this job.
        evidence: what was seen, in the order of reading.
        warnings: contradictions that do not matter enough to stop, one line each.
    """

    launcher: str
    job: str = ""
    step: str = ""
    nodes: tuple[str, ...] = ()
    tasks_per_node: tuple[int, ...] = ()
    root: str = ""
    restarts: int = 0
    evidence: tuple[Evidence, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slot:
    """This process's place among the tasks that the launcher started.

    Attributes:
        rank: 0 … size - 1, the launcher's own number.
        size: number of tasks.
        local_rank: 0 … among the tasks on this node.
        node: index of this task's node in `Allocation.nodes`, where the launcher tells; else 0.
    """

    rank: int
    size: int
    local_rank: int
    node: int = 0


@dataclass(frozen=True)
class Task:
    """This process is one task of a step (or of an mpirun, or alone on a plain machine)."""

    allocation: Allocation
    slot: Slot


@dataclass(frozen=True)
class StepShape:
    """What a step that slaunch starts from a batch or allocation shell should ask for.

    Attributes:
        nodes: number of nodes.
        tasks_per_node: agents on each node: 1, unless the user asked for one task per worker.
        cpus_per_task: CPUs of each task; 0 = the node's whole share.
        gpu_args: the GPU request in the job's own form, e.g. ("--gres=gpu:4",); () without GPUs.
        het_groups: component indices of a heterogeneous job; () for an ordinary one.
        parts: the shape of each of `het_groups`; () for an ordinary job.
        overlap: whether to take CPUs that Slurm counts as another step's.
        resized: the job has other nodes than this shell's variables say.
    """

    nodes: int
    tasks_per_node: int = 1
    cpus_per_task: int = 0
    gpu_args: tuple[str, ...] = ()
    het_groups: tuple[int, ...] = ()
    parts: tuple[StepShape, ...] = ()
    overlap: bool = False
    resized: bool = False


@dataclass(frozen=True)
class Shell:
    """This process is in a batch script or allocation shell: slaunch has to start the step itself."""

    allocation: Allocation
    shape: StepShape


@dataclass(frozen=True)
class StepCall:
    """The command that starts slaunch's own step (srun, or mpirun where there is no Slurm), and the environment it gets."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Sighting:
    """A reader's answer to "is this environment yours?".

    Attributes:
        reader: the reader's name.
        depth: how far inside the nesting of launchers it stands: 0 plain, 10 a batch or allocation shell, 20 a scheduler's step,
            25 a second scheduler inside it, 30 an MPI launcher (inside any of these). The deepest sighting wins as a whole.
        evidence: what it saw; () means "not mine".
    """

    reader: str
    depth: int
    evidence: tuple[Evidence, ...] = ()
