"""From the checked file to the `Study`. All errors are told at once, each with its key and reason."""

from __future__ import annotations

import os

from slaunch.errors import UsageError
from slaunch.tune.config.access import GB, MB, Raw, flag, number, real, size, text, texts, word
from slaunch.tune.config.kinds import mib, objects
from slaunch.tune.config.normal import granularity, ints, switch
from slaunch.tune.config.read import read_file
from slaunch.tune.config.table import TOP
from slaunch.tune.config.together import wrong_together
from slaunch.tune.language.strategy import is_strategy
from slaunch.tune.space.dimensions import COUNTS, DEGREES, OPTIONAL
from slaunch.tune.values import (
    Algorithm,
    Choice,
    Conversion,
    Ints,
    Limits,
    MemoryLine,
    Metric,
    Model,
    Ordering,
    OwnDimension,
    Pruning,
    Study,
    Value,
)


def read_study(path: str) -> Study:
    """The study that the file describes.

    Raises:
        UsageError: the file cannot be read, or something in it is wrong.
        MissingToolError: the library for its format is not installed.
    """
    return build(read_file(path), os.path.abspath(path))


def build(raw: object, path: str) -> Study:
    """The study of a file's content.

    Raises:
        UsageError: naming every wrong key.
    """
    problems = wrong(raw)
    if problems:
        seen = f"{path} has {len(problems)} error{'s' * (len(problems) > 1)}:" + "".join(f"\n- {line}" for line in problems)
        raise UsageError("read the tuner's configuration", seen, "mend these keys; docs/tuner.md describes them all")
    return study(objects(raw), path)


def wrong(raw: object) -> list[str]:
    """Everything that is wrong with a file's content: each key by itself, then what remains of them together."""
    alone = list(TOP.wrong(raw, ""))
    bad = {top_key(line) for line in alone}
    rest = {name: value for name, value in objects(raw).items() if name not in bad}
    return alone + [line for line in wrong_together(rest) if top_key(line) not in bad]


def top_key(line: str) -> str:
    """The outermost key that an error is about."""
    return line.split(":", 1)[0].split(".", 1)[0].split("[", 1)[0]


def study(raw: Raw, path: str) -> Study:
    """The study of a checked object."""
    performance = word(raw.get("schedule_mode")) == "performance"
    return Study(
        path=path,
        ranges=ranges(raw),
        switches=switches(raw, performance),
        own=own(raw),
        refined=texts(raw.get("refined_recompute")),
        model=model(objects(raw["model_cfg"])),
        metric=metric(objects(raw["metric_cfg"])),
        memory=memory(objects(raw.get("memory_cfg"))),
        algorithm=algorithm(raw),
        inject=objects(raw.get("run_cmd")),
        order=Ordering(performance, flag(raw, "need_baseline", False), prior(texts(raw.get("schedule_prior")))),
        pruning=pruning(raw),
        limits=limits(raw),
        choice=choice(raw),
        nodes=number(raw, "nodes"),
        gpus_per_node=number(raw, "gpus_per_node"),
        oom=texts(raw.get("oom_patterns")),
        resume=word(raw.get("resume")) or "auto",
        resume_csv=text(raw, "resume_csv_file_path"),
    )


def ranges(raw: Raw) -> dict[str, Ints]:
    """The dimensions of whole numbers; those that other tuners do not have are there only if the file names them."""
    names = [each.name for each in (*DEGREES, *COUNTS) if each.name not in OPTIONAL or each.name in raw]
    found = {name: ints(raw.get(name)) for name in names}
    if "recompute_layers" in raw:
        found["recompute_layers"] = ints(raw["recompute_layers"])
    return found


def switches(raw: Raw, performance: bool) -> dict[str, tuple[Value, ...]]:
    """The dimensions of few values."""
    found = {
        "use_recompute": switch(raw.get("use_recompute"), performance),
        "recompute_granularity": granularity(raw.get("recompute_granularity"), performance),
    }
    more = [name for name in ("sequence_parallel", "optimizer_offload") if name in raw]
    return found | {name: switch(raw[name], performance) for name in more}


def own(raw: Raw) -> tuple[OwnDimension, ...]:
    """The user's own dimensions."""
    found = []
    for name, each in objects(raw.get("custom_search_dim")).items():
        given = objects(each)
        found.append(OwnDimension(name, tuple(given["value"]), bool(given.get("prune", False))))  # type: ignore[arg-type]
    return tuple(found)


def model(raw: Raw) -> Model:
    """The model's measures."""
    batch = raw.get("global_batch_size")
    known = {name: value for name, value in raw.items() if name not in ("global_batch_size", "max_seq_length")}
    return Model(global_batch_size=batch if isinstance(batch, int) else 0, **known)  # type: ignore[arg-type]


def metric(raw: Raw) -> Metric:
    """What is measured."""
    return Metric(
        name=text(raw, "name"),
        maximize=word(raw["OptimizationDirection"]) == "maximize",
        pattern=text(raw, "pattern"),
        combine=word(raw.get("combine")) or "mean",
        warmup=number(raw, "warmup", -1),
        window=number(raw, "window", 10),
    )


def memory(raw: Raw) -> MemoryLine:
    """How the program tells its peak memory."""
    unit = (word(raw.get("unit")) or "mb").upper()
    return MemoryLine(text(raw, "name") or MemoryLine().name, text(raw, "pattern"), mib(f"1{unit}", MB))


def algorithm(raw: Raw) -> Algorithm:
    """The search algorithm; a bare text is its name."""
    given = raw.get("search_algo", "grid")
    found = {"name": given} if isinstance(given, str) else objects(given)
    return Algorithm(
        name=text(found, "name") or "grid",
        estimated_gpus=number(found, "estimated_num_gpus"),
        seed=number(found, "seed"),
        overlap=objects(found.get("sharding_overlap")),  # type: ignore[arg-type]
        conversion=conversion(objects(found.get("conversion"))),
        rows=text(raw, "configs_csv"),
    )


def conversion(raw: Raw) -> Conversion | None:
    """The estimate for many replicas, if wanted."""
    if not raw:
        return None
    known = {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
    return Conversion(**known)  # type: ignore[arg-type]


def pruning(raw: Raw) -> Pruning:
    """What restricts the space."""
    return Pruning(
        pp_by_nodes=flag(raw, "enable_pp_prune", True),
        mp_in_node=flag(raw, "enable_mp_prune", True),
        sequence_parallel=flag(raw, "use_sequence_parallel", False) or flag(raw, "use_sequence_paralel", False),
        invalid=texts(raw.get("invalid_strategy")),
        constraints=texts(raw.get("constraints")),
        assume_slower=flag(raw, "assume_slower", True),
        estimator=text(raw, "memory_estimation_tool"),
        estimator_limit_mib=size(raw, "max_mem_usage", GB),
    )


def limits(raw: Raw) -> Limits:
    """When a trial or the search is over."""
    trial = real(raw, "max_time_per_task", 1800)
    return Limits(
        tasks=number(raw, "task_limit", 100),
        first_s=real(raw, "warmup_time", trial),
        trial_s=trial,
        start_s=real(raw, "startup_time", 300),
        search_s=real(raw, "max_search_time", 0),
        pause_s=real(raw, "pause", 0),
        retries=number(raw, "retries", 2),
        repeats=number(raw, "repeats"),
        near=real(raw, "near", 0.02),
        count_cut=flag(raw, "count_cut_trials", False),
    )


def choice(raw: Raw) -> Choice:
    """How the best is chosen."""
    return Choice(
        buffer_mib=size(raw, "buffer", MB) if "buffer" in raw else -1,
        limit_mib=size(raw, "max_mem_usage", MB),
        thrifty=word(raw.get("mode")) in ("sft", "lora"),
        run=flag(raw, "run_best", True),
        folder=text(raw, "best_cfg_dir"),
    )


def prior(entries: tuple[str, ...]) -> tuple[str, ...]:
    """The strongest first: Paddle's strategies in alphabetical order, as there; once an expression is among them, as written."""
    return tuple(sorted(entries)) if all(map(is_strategy, entries)) else entries
