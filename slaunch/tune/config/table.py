"""Every key of the tuner's configuration, with its kind and help. The JSON schema and the page of keys are made from it."""

from __future__ import annotations

from slaunch.tune.config.kinds import Any, Bool, Int, Key, Kind, Many, Number, Object, Plain, Schema, Text

SIZE_TEXT = Text(pattern=r"^\s*\d+(\.\d+)?\s*([KMGTkmgt]i?[Bb]?|[Bb])\s*$", means='a size such as "80GiB"')
SIZE = Any((Number(0), SIZE_TEXT), 'a number or a size such as "80GiB"')
AUTO = Text(("auto",))
RANGE = Object(
    (Key("min", Int(1), "", "smallest value", needed=True), Key("max", Int(1), "", "largest value", needed=True)),
)
DEGREE = Any((AUTO, Int(1), Many(Int(1), 1), RANGE), '"auto", a whole number, a list of them, or {"min": …, "max": …}')
SWITCH = Any((AUTO, Bool(), Many(Bool())), '"auto", true, false, or a list of these')
GRANULARITIES = ("full", "full_attn", "core_attn")
GRANULARITY = Any(
    (Text(("auto", *GRANULARITIES)), Many(Text(GRANULARITIES))), f'"auto", {", ".join(GRANULARITIES)}, or a list of these'
)
TEXTS = Many(Text())
PATH = Text(means="a path")

FORM = Any(
    (
        Many(Plain(), 1),
        Object(
            (Key("option", Text(), "", "option in front of the value", True), Key("prefix", Plain(), "", "text before the value"))
        ),
        Object((Key("flag", Text(), "", "option given where the value is true", True),)),
        Object((Key("env", Text(), "", "environment variable", True), Key("prefix", Plain(), "", "text before the value"))),
        Object(
            (
                Key("file", PATH, "", "JSON or YAML file of which each trial gets a copy", True),
                Key("key", Text(), "", "dotted path in it", True),
                Key("prefix", Plain(), "", "text before the value"),
            )
        ),
    ),
    'a list such as ["--mp", ""], or an object with option, flag, env or file',
)
STAGE = Object(rest=Many(Plain(), 1))

MODEL = Object(
    (
        Key("global_batch_size", Any((AUTO, Int(1)), '"auto" or a whole number'), "auto", "samples of a step; auto: searched"),
        Key("num_layers", Int(1), "", "layers; needed with pp_degree, vpp_degree or refined_recompute"),
        Key("hidden_size", Int(1), "", "width; tensor parallelism must divide it"),
        Key("vocab_size", Int(1), "", "vocabulary; tensor parallelism must divide it"),
        Key("num_attention_heads", Int(1), "", "heads; tensor parallelism must divide them"),
        Key("seq_length", Int(1), "", "sequence length; sequence and context parallelism must divide it"),
        Key("num_experts", Int(1), "", "experts; expert parallelism must divide them"),
        Key("max_sequence_length", Int(1), "", "for the memory estimation tool"),
        Key("intermediate_size", Int(1), "", "for the memory estimation tool"),
        Key("max_seq_length", Int(1), "", "accepted, without effect"),
    )
)
METRIC = Object(
    (
        Key("name", Text(), "", "the metric as it stands in the logs", needed=True),
        Key("OptimizationDirection", Text(("maximize", "minimize")), "", "Maximize or Minimize", needed=True),
        Key("pattern", Text(), "", "regular expression with the number as group 1 or (?P<value>…), instead of the name"),
        Key("combine", Text(("mean", "min", "max", "sum")), "mean", "how values of several ranks become one"),
        Key("warmup", Int(0), "", "samples of each rank to leave out"),
        Key("window", Int(1), "10", "samples at the end to average"),
    )
)
MEMORY = Object(
    (
        Key("name", Text(), "max_memory_allocated", "the program's peak memory as it stands in the logs"),
        Key("pattern", Text(), "", "regular expression with the number as group 1 or (?P<value>…), instead of the name"),
        Key("unit", Text(("b", "kb", "mb", "gb", "kib", "mib", "gib")), "MB", "its unit; all are powers of 1024"),
    )
)
CONVERSION = Object(
    (
        Key("step_time", Text(), "", "name of the step's time in the logs", needed=True),
        Key("comm_bw", Many(Number(0), 1), "[100]", "bandwidths between replicas, GB/s"),
        Key("model_size_b", Number(0), "7", "parameters, in billions"),
        Key("amp", Bool(), "false", "mixed precision"),
        Key("need_unify", Bool(), "false", "divide the estimates by the number of devices"),
    )
)
ALGORITHMS = ("grid", "random", "gbs", "dp_estimation", "customize")
ALGORITHM = Object(
    (
        Key("name", Text(), "grid", f"one of {', '.join(ALGORITHMS)}, or another package's"),
        Key("seed", Int(0), "0", "of the random order"),
        Key("estimated_num_gpus", Int(1), "", "devices of the cluster to estimate for; no best run then"),
        Key("sharding_overlap", Object(rest=Many(Plain(), 1)), "", "settings of communication overlap, by hybrid strategy"),
        Key("conversion", CONVERSION, "", "estimate many replicas from one"),
        Key("threshold", Number(0), "", "accepted, without effect"),
    )
)
OWN = Object(
    rest=Object(
        (
            Key("value", Many(Plain(), 1), "", "its values, in the order to try", needed=True),
            Key("prune", Bool(), "false", "where one value ran, later ones are not tried"),
        )
    )
)
INJECT = Object(
    (
        Key("generate_launch_cfg", Bool(), "true", "accepted; a trial always has copies of edited files"),
        Key("config_files", Text(("arguments", "environment")), "arguments", "how the program learns the path of its copy"),
        Key("search_stage", STAGE, "", "settings of trials only"),
        Key("run_best_stage", STAGE, "", "settings of the best run only"),
    ),
    rest=FORM,
)


def degree(name: str, text: str, default: str = "1") -> Key:
    """A key for a dimension of whole numbers."""
    return Key(name, DEGREE, default, text)


DIMENSION_KEYS = (
    degree("dp_degree", "data parallelism"),
    degree("mp_degree", "tensor parallelism"),
    degree("pp_degree", "pipeline parallelism"),
    degree("vpp_degree", "model chunks of a pipeline stage"),
    degree("sharding_degree", "sharding"),
    degree("sharding_stage", "sharding stage, 1 to 3"),
    degree("micro_batch_size", "samples of a micro batch"),
    degree("cp_degree", "context parallelism", ""),
    degree("ep_degree", "expert parallelism, inside data parallelism", ""),
    Key("use_recompute", SWITCH, "", "recompute activations"),
    Key("recompute_granularity", GRANULARITY, "", "what is recomputed"),
    Key("recompute_layers", DEGREE, "", "recomputed layers of each pipeline stage"),
    Key("sequence_parallel", SWITCH, "", "split the sequence like the tensors"),
    Key("optimizer_offload", SWITCH, "", "keep optimizer states in the host's memory"),
    Key("refined_recompute", Many(Text(), 1), "", "operators of which a number of layers is spared recomputation"),
    Key("custom_search_dim", OWN, "", "own dimensions"),
)
ORDER_KEYS = (
    Key("schedule_mode", Text(("memory", "performance")), "memory", "least memory first, or fast ones first"),
    Key("need_baseline", Bool(), "false", "least memory first until one runs, then large micro batches first"),
    Key("schedule_prior", TEXTS, "", "strategies or predicates that go first"),
    Key("invalid_strategy", TEXTS, "", "strategies or predicates of settings that must not be tried"),
    Key("constraints", TEXTS, "", "predicates that every setting must fulfil"),
    Key("enable_pp_prune", Bool(), "true", "on several nodes: pipelines over at most nodes + 1 stages"),
    Key("enable_mp_prune", Bool(), "true", "tensor parallelism within a node"),
    Key("use_sequence_parallel", Bool(), "false", "tensor parallelism must divide seq_length"),
    Key("use_sequence_paralel", Bool(), "false", "the same, as an older tuner spelt it"),
    Key("assume_slower", Bool(), "true", "skip what is thought to be slower than something that ran"),
    Key("memory_estimation_tool", PATH, "", "program that estimates the memory of a setting"),
)
LIMIT_KEYS = (
    Key("task_limit", Int(1), "100", "trials at most"),
    Key("max_time_per_task", Number(0.001), "1800", "seconds of a trial, from the start of its workers"),
    Key("warmup_time", Number(0.001), "max_time_per_task", "the same for the first trial"),
    Key("startup_time", Number(0.001), "300", "seconds until the workers of a trial start"),
    Key("max_search_time", Number(0.001), "", "seconds after which no trial is started"),
    Key("pause", Number(0), "0", "seconds between trials"),
    Key("retries", Int(0), "2", "how often a trial that failed for the machine's sake is tried again"),
    Key("repeats", Int(0), "0", "further runs of each setting that came near the best"),
    Key("near", Number(0), "0.02", "how near, as a share of the best"),
    Key("count_cut_trials", Bool(), "false", "a trial ended by its time limit counts with what it had measured"),
)
END_KEYS = (
    Key("max_mem_usage", SIZE, "", "memory of a device; a plain number is GB for memory_estimation_tool, MB for buffer"),
    Key("buffer", SIZE, "", "room in memory that the best should leave; a plain number is MB"),
    Key("mode", Text(), "", "SFT or LoRA: of the four fastest the one with least memory"),
    Key("run_best", Bool(), "true", "run the best setting at the end"),
    Key("best_cfg_dir", PATH, "best_cfg beside this file", "log directory of that run"),
    Key("resume", Text(("auto", "never")), "auto", "take results of the same program, arguments and machine from the journal"),
    Key("resume_csv_file_path", PATH, "", "table of earlier results to start from"),
    Key("configs_csv", PATH, "", "settings for search_algo customize"),
    Key("oom_patterns", TEXTS, "", "regular expressions of further lines that tell of lacking memory"),
    Key("nodes", Int(1), "found out", "nodes; those that the allocation has beyond them are spare"),
    Key("gpus_per_node", Int(1), "found out", "devices, or workers, on each node"),
    Key("num_gpus", Int(1), "", "accepted, without effect"),
    Key("per_card_memory", Number(0), "", "accepted, without effect"),
    Key("$schema", Text(), "", "for editors: the address of tuner-schema.json"),
)
TOP = Object(
    (
        *DIMENSION_KEYS,
        Key("model_cfg", MODEL, "", "the model's measures", needed=True),
        Key("run_cmd", INJECT, "", "how a setting reaches the program, beside the variable SLAUNCH_TRIAL"),
        Key("metric_cfg", METRIC, "", "what is measured", needed=True),
        Key("memory_cfg", MEMORY, "", "how the program tells its peak memory"),
        Key("search_algo", Any((ALGORITHM, Text()), "an object with a name, or the name"), "grid", "the search algorithm"),
        *ORDER_KEYS,
        *LIMIT_KEYS,
        *END_KEYS,
    )
)


def json_schema() -> Schema:
    """The whole configuration as JSON schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of slaunch tune",
        **TOP.schema(),
    }


def rows(kind: Kind = TOP, where: str = "") -> list[tuple[str, str, str]]:
    """Every key with its default and help, keys of inner objects after their own, for the page of keys."""
    found = []
    for key in kind.keys if isinstance(kind, Object) else ():
        name = f"{where}{key.name}"
        found.append((name, "needed" if key.needed else key.default, key.help))
        found += rows(key.kind.kinds[0] if isinstance(key.kind, Any) else key.kind, f"{name}.")
    return found
