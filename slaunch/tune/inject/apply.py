"""What a trial's command line, variables and files become. Pure: the files themselves are written by `inject.files`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence

from slaunch.frozen import dataclass, field
from slaunch.tune.inject.derive import hybrid, refined_object, with_derived
from slaunch.tune.inject.forms import (
    FILES,
    SETTINGS,
    Arguments,
    Edit,
    Flag,
    Form,
    Variable,
    overlap_groups,
    read_fixed,
    read_form,
)
from slaunch.tune.values import Cluster, Setting, Study

ORDER = (
    *("dp_degree", "mp_degree", "pp_degree", "vpp_degree", "micro_batch_size", "sharding_degree", "sharding_stage"),
    *("use_recompute", "recompute_granularity", "local_batch_size", "gradient_accumulation_steps", "global_batch_size"),
    *("sequence_parallel", "refined_recompute"),
)
"""In which order values are put on the command line; further dimensions follow."""

TRIAL = "SLAUNCH_TRIAL"
"""Variable with the trial's settings as a JSON object: the simplest way for a program to read them. Its member `files` has the
trial's copy of each edited file."""


@dataclass(frozen=True)
class Change:
    """A value for a place in a file."""

    file: str
    key: str
    value: object


@dataclass(frozen=True)
class Injection:
    """What a setting becomes.

    Attributes:
        args: words to add to the program's arguments.
        env: variables to set.
        changes: edits of files, of which the trial gets copies.
    """

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()


def inject(study: Study, cluster: Cluster, setting: Setting, stage: str) -> Injection:
    """Everything that tells the program the setting. `stage`: "search" or "best"."""
    values: dict[str, object] = {**with_derived(study, cluster, setting)}
    if study.refined:
        values["refined_recompute"] = refined_object(study, setting)
    parts = [*by_dimension(study, values), *by_stage(study, stage), *by_overlap(study, setting)]
    changes = tuple(change for part in parts for change in part.changes)
    env = {name: value for part in parts for name, value in part.env.items()}
    env[TRIAL] = json.dumps({"stage": stage, **values})
    return Injection(tuple(word for part in parts for word in part.args), env, changes)


def copies(files: Sequence[str], folder: str) -> dict[str, str]:
    """Where the trial's copy of each file goes; files of one name in different folders stay apart."""
    found: dict[str, str] = {}
    for file in files:
        name = os.path.basename(file)
        taken = sum(os.path.basename(path).partition("-")[2] == name or os.path.basename(path) == name for path in found.values())
        found[os.path.normpath(file)] = os.path.join(folder, f"{taken}-{name}" if taken else name)
    return found


def redirect(args: Sequence[str], paths: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments with each file's path, alone or after `=`, replaced by its copy's; and the files that no argument names."""
    named: set[str] = set()
    words = []
    for word in args:
        option, equals, path = word.rpartition("=") if word.startswith("-") else ("", "", word)
        known = os.path.normpath(path) if path else ""
        named |= {known} & set(paths)
        words.append(f"{option}{equals}{paths[known]}" if known in paths else word)
    return tuple(words), tuple(file for file in paths if file not in named)


def by_dimension(study: Study, values: Mapping[str, object]) -> Iterator[Injection]:
    """The values that `run_cmd` names; one that is not decided (None) is left to the program."""
    names = [*ORDER, *(name for name in study.inject if name not in (*ORDER, *SETTINGS))]
    for name in names:
        if name in study.inject and values.get(name) is not None:
            yield put(read_form(study.inject[name]), values[name])


def put(form: Form, value: object) -> Injection:
    """One value in one form."""
    if isinstance(form, Arguments):
        words = list(form.words)
        words[form.slot] = words[form.slot].replace("{}", str(value), 1)
        return Injection(tuple(words))
    if isinstance(form, Flag):
        return Injection((form.option,) if value else ())
    if isinstance(form, Variable):
        return Injection(env={form.name: f"{form.prefix}{value}"})
    return Injection(changes=(Change(form.file, form.key, value if form.prefix is None else f"{form.prefix}{value}"),))


def by_stage(study: Study, stage: str) -> Iterator[Injection]:
    """Settings of the stage that do not depend on the trial."""
    given = study.inject.get("search_stage" if stage == "search" else "run_best_stage", {})
    assert isinstance(given, dict)
    for each in given.values():
        yield fixed(each)


def fixed(given: Sequence[object]) -> Injection:
    """One of them."""
    found = read_fixed(given)
    if isinstance(found, Arguments):
        return Injection(found.words)
    edit, value = found
    return Injection(changes=(Change(edit.file, edit.key, value),))


def by_overlap(study: Study, setting: Setting) -> Iterator[Injection]:
    """Settings of communication overlap for the trial's kind of hybrid parallelism.

    In single-replica estimation only trials with the overlap flag get them, and of two values (with, without) the one for it.
    """
    single = study.algorithm.name == "dp_estimation"
    if single and "sharding_overlap" not in setting:
        return
    given = study.algorithm.overlap.get(hybrid(setting, single))
    if given is not None:
        yield overlap(list(given), bool(setting.get("sharding_overlap", True)), single)


def overlap(given: list[object], on: bool, single: bool) -> Injection:
    """The words or edits of one kind; nothing for a trial without overlap, unless there is a value for that."""
    if not str(given[0]).endswith(FILES):
        return Injection(tuple(map(str, given)) if on else ())
    groups = overlap_groups(given, single)
    chosen = [(key, values[0 if on else 1]) for key, *values in groups if on or len(values) > 1]
    return Injection(changes=tuple(Change(str(given[0]), str(key), value) for key, value in chosen))


def files_of(study: Study) -> tuple[str, ...]:
    """All files that trials edit, each once."""
    forms = [read_form(given) for name, given in study.inject.items() if name not in SETTINGS]
    found = [form.file for form in forms if isinstance(form, Edit)]
    for stage in ("search", "best"):
        found += [change.file for part in by_stage(study, stage) for change in part.changes]
    found += [str(given[0]) for given in study.algorithm.overlap.values() if str(given[0]).endswith(FILES)]
    return tuple(dict.fromkeys(os.path.normpath(file) for file in found))
