"""The tuner's values: the machine it tunes for, the study that the user wants, what became of a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.frozen import dataclass, field

Value = int | float | str | bool | None
Setting = Mapping[str, Value]
"""One point of the space: dimension by name, in the order of the columns of the history."""

Ints = range | tuple[int, ...]
"""The values that the user allows for a dimension; `AUTO` allows all."""

AUTO = range(1, 1 << 62)


@dataclass(frozen=True)
class Cluster:
    """What the trials run on. `device`: name of the accelerators, "" if unknown or none."""

    nodes: int
    gpus_per_node: int
    device: str = ""

    @property
    def gpus(self) -> int:
        """All devices (workers) together."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True)
class Model:
    """The model's measures, for divisibility; 0 = not told. A global batch of 0 is to be searched for."""

    global_batch_size: int = 0
    num_layers: int = 0
    hidden_size: int = 0
    vocab_size: int = 0
    num_attention_heads: int = 0
    seq_length: int = 0
    num_experts: int = 0
    max_sequence_length: int = 0
    intermediate_size: int = 0


@dataclass(frozen=True)
class Metric:
    """What is measured and how.

    Attributes:
        name: as it stands in the logs; also the column of the history.
        maximize: larger is better.
        pattern: the user's own regular expression, whose group 1 (or "value") is the number; "" = by name.
        combine: of the values of several ranks: "mean", "min", "max", "sum".
        warmup: samples of a rank to leave out; -1 = Paddle's rule (all but the last of fewer than 10, else the first 9).
        window: samples at the end to average, after the warm-up.
    """

    name: str
    maximize: bool
    pattern: str = ""
    combine: str = "mean"
    warmup: int = -1
    window: int = 10


@dataclass(frozen=True)
class MemoryLine:
    """The line by which a program tells its peak memory. `mib`: what one of its units is, in MiB."""

    name: str = "max_memory_allocated"
    pattern: str = ""
    mib: float = 1.0


@dataclass(frozen=True)
class OwnDimension:
    """A dimension of the user's. `prune`: its values are ordered, and where one ran, later ones are not tried."""

    name: str
    values: tuple[Value, ...]
    prune: bool


@dataclass(frozen=True)
class Conversion:
    """How a measurement of one replica becomes an estimate for many (`search_algo.conversion`)."""

    step_time: str
    comm_bw: tuple[float, ...] = (100,)
    model_size_b: float = 7
    amp: bool = False
    need_unify: bool = False


@dataclass(frozen=True)
class Algorithm:
    """`search_algo`. `overlap`: settings of communication overlap by hybrid strategy, as the file gives them."""

    name: str = "grid"
    estimated_gpus: int = 0
    seed: int = 0
    overlap: Mapping[str, Sequence[object]] = field(default_factory=dict)
    conversion: Conversion | None = None
    rows: str = ""


@dataclass(frozen=True)
class Ordering:
    """In which order settings are tried.

    Attributes:
        performance: fast ones first, instead of those that need least memory.
        baseline: least memory first until one runs, then large micro batches first.
        prior: strategies that go first, the strongest one first.
    """

    performance: bool = False
    baseline: bool = False
    prior: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pruning:
    """What restricts the space beyond the ranges.

    Attributes:
        pp_by_nodes: on several nodes, pipeline degrees up to one more than there are nodes.
        mp_in_node: tensor parallelism within a node.
        sequence_parallel: the sequence is split like the tensors.
        invalid: strategies or predicates of settings that must not be tried.
        constraints: predicates that every setting must fulfil.
        assume_slower: skip what is thought to be slower than something that ran.
        estimator: a program that estimates the memory of a setting; "" = none.
        estimator_limit_mib: what its estimate may be at most.
    """

    pp_by_nodes: bool = True
    mp_in_node: bool = True
    sequence_parallel: bool = False
    invalid: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    assume_slower: bool = True
    estimator: str = ""
    estimator_limit_mib: float = 0


@dataclass(frozen=True)
class Limits:
    """When a trial or the search is over. Seconds.

    Attributes:
        tasks: number of trials at most.
        first_s, trial_s: of the first trial and of the others, from the start of their workers.
        start_s: until the workers of a trial start.
        search_s: no trial is started after that; 0 = no limit.
        pause_s: between two trials.
        retries: how often a trial that failed for the machine's sake is tried again.
        repeats: further runs of each setting whose result is within `near` of the best, at the end.
        near: share of the best result, e.g. 0.02.
        count_cut: a trial that its time limit ended counts with what it had measured.
    """

    tasks: int = 100
    first_s: float = 1800
    trial_s: float = 1800
    start_s: float = 300
    search_s: float = 0
    pause_s: float = 0
    retries: int = 2
    repeats: int = 0
    near: float = 0.02
    count_cut: bool = False


@dataclass(frozen=True)
class Choice:
    """How the best is chosen and what is done with it.

    Attributes:
        buffer_mib: room in memory that the best should leave; -1 = no matter.
        limit_mib: the memory that there is, for `buffer_mib`.
        thrifty: of the four fastest the one with least memory (Paddle's mode SFT or LoRA).
        run: run it at the end.
        folder: its log directory; "" = best_cfg beside the configuration file.
    """

    buffer_mib: float = -1
    limit_mib: float = 0
    thrifty: bool = False
    run: bool = True
    folder: str = ""


@dataclass(frozen=True)
class Study:
    """Everything that the configuration file says.

    Attributes:
        path: the file.
        ranges: integer dimensions, and the values allowed for each.
        switches: dimensions with a short list of values (recomputation and the like), in the order to try.
        own, refined: dimensions of the user's, and names of operators for refined recomputation.
        model, metric, memory, algorithm, order, pruning, limits, choice: see these.
        inject: `run_cmd`, as the file gives it.
        nodes, gpus_per_node: what the user says of the machine; 0 = to be found out.
        oom: further texts that tell of lacking memory.
        resume: "auto" (take results of the same program from the journal) or "never".
        resume_csv: a table of earlier results to start from; "" = none.
    """

    path: str
    ranges: Mapping[str, Ints]
    switches: Mapping[str, tuple[Value, ...]]
    model: Model
    metric: Metric
    inject: Mapping[str, object]
    own: tuple[OwnDimension, ...] = ()
    refined: tuple[str, ...] = ()
    memory: MemoryLine = MemoryLine()
    algorithm: Algorithm = Algorithm()
    order: Ordering = Ordering()
    pruning: Pruning = Pruning()
    limits: Limits = Limits()
    choice: Choice = Choice()
    nodes: int = 0
    gpus_per_node: int = 0
    oom: tuple[str, ...] = ()
    resume: str = "auto"
    resume_csv: str = ""


def same(setting: Setting) -> tuple[tuple[str, Value], ...]:
    """The setting as a key: equal for equal values, whatever their order."""
    return tuple(sorted(setting.items()))


@dataclass(frozen=True)
class Dropped:
    """A setting that was not tried. `rule`: name of the rule; `reason`: why, in words."""

    setting: Setting
    rule: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What the search knows of a setting: `ran` (with a result, or thought slower than one that did), `oom`, or neither."""

    setting: Setting
    ran: bool = False
    oom: bool = False
