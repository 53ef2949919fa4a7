"""What is wrong with keys that are right by themselves: what does not fit together, one line for each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from slaunch.tune.config.access import MB, Raw, size, text, texts
from slaunch.tune.config.kinds import meant, objects
from slaunch.tune.config.table import ALGORITHMS
from slaunch.tune.inject.forms import wrong_forms
from slaunch.tune.language.predicate import PredicateError
from slaunch.tune.language.strategy import compile_any
from slaunch.tune.space.dimensions import RESERVED


def wrong_together(raw: Raw) -> Iterator[str]:
    """All of it."""
    yield from wrong_ranges(raw)
    yield from wrong_names(raw)
    yield from wrong_predicates(raw)
    yield from wrong_needs(raw)
    yield from wrong_patterns(raw)
    names = [*objects(raw.get("custom_search_dim")), *texts(raw.get("refined_recompute"))]
    search = objects(raw.get("search_algo"))
    single = search.get("name") == "dp_estimation"
    yield from wrong_forms(objects(raw.get("run_cmd")), names, objects(search.get("sharding_overlap")), single)


def wrong_ranges(raw: Raw) -> Iterator[str]:
    """Ranges that hold nothing."""
    for name, value in raw.items():
        if isinstance(value, dict) and set(value) == {"min", "max"} and value["min"] > value["max"]:
            yield f"{name}: min {value['min']} is above max {value['max']}"


def wrong_names(raw: Raw) -> Iterator[str]:
    """Own dimensions that have the name of another one."""
    refined = texts(raw.get("refined_recompute"))
    for name in (*objects(raw.get("custom_search_dim")), *refined):
        if name in RESERVED:
            yield f"{name}: this name is one of the tuner's own; choose another for the own dimension"
    for name in sorted({name for name in refined if refined.count(name) > 1}):
        yield f"refined_recompute: {name} stands twice in it"


def wrong_predicates(raw: Raw) -> Iterator[str]:
    """Strategies and expressions that cannot be understood."""
    names = (*objects(raw.get("custom_search_dim")), *texts(raw.get("refined_recompute")))
    for key in ("schedule_prior", "invalid_strategy", "constraints"):
        for index, entry in enumerate(texts(raw.get(key))):
            try:
                compile_any(entry, names)
            except PredicateError as error:
                yield f"{key}[{index}]: {entry!r}: {error}"


def wrong_needs(raw: Raw) -> Iterator[str]:
    """Keys that others need."""
    given = raw.get("search_algo", "grid")
    name = given if isinstance(given, str) else text(objects(given), "name") or "grid"
    if name not in known_algorithms(name):
        yield f"search_algo.name: {name!r} is none of {', '.join(ALGORITHMS)}{meant(name, ALGORITHMS)}"
    if name == "customize" and "configs_csv" not in raw:
        yield "configs_csv: is missing (search_algo customize takes its settings from it)"
    if name == "dp_estimation" and "estimated_num_gpus" not in objects(given):
        yield "search_algo.estimated_num_gpus: is missing (dp_estimation estimates for that many devices)"
    for key in ("memory_estimation_tool", "buffer"):
        if key in raw and not size(raw, "max_mem_usage", MB) > 0:
            yield f"max_mem_usage: is missing ({key} is compared with it)"
    if {"memory_estimation_tool", "buffer"} <= raw.keys() and not isinstance(raw.get("max_mem_usage"), str):
        yield 'max_mem_usage: write it with its unit, e.g. "80GiB": alone it is GB for memory_estimation_tool and MB for buffer'
    layers = objects(raw.get("model_cfg")).get("num_layers")
    for key in ("pp_degree", "vpp_degree", "refined_recompute", "recompute_layers"):
        if key in raw and not layers:
            yield f"model_cfg.num_layers: is missing ({key} divides the layers)"


def wrong_patterns(raw: Raw) -> Iterator[str]:
    """Regular expressions that are none, or catch nothing."""
    for key in ("metric_cfg", "memory_cfg"):
        pattern = text(objects(raw.get(key)), "pattern")
        if pattern:
            yield from wrong_pattern(f"{key}.pattern", pattern, groups=1)
    for index, pattern in enumerate(texts(raw.get("oom_patterns"))):
        yield from wrong_pattern(f"oom_patterns[{index}]", pattern, groups=0)


def wrong_pattern(where: str, pattern: str, groups: int) -> Iterator[str]:
    """What is wrong with one of them."""
    try:
        if re.compile(pattern).groups < groups:
            yield f"{where}: {pattern!r} has no group; put the number in parentheses"
    except re.error as error:
        yield f"{where}: {pattern!r} is no regular expression: {error}"


def known_algorithms(name: str) -> tuple[str, ...]:
    """The built-in ones; other packages' too if it is none of them."""
    if name in ALGORITHMS:
        return ALGORITHMS
    from importlib.metadata import entry_points

    return (*ALGORITHMS, *(point.name for point in entry_points(group="slaunch.search")))
