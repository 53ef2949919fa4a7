"""How a setting reaches the program."""

import json
from typing import Any

import pytest
from support.studies import ONE_NODE, make, setting

from slaunch.errors import UsageError
from slaunch.tune.inject.apply import TRIAL, Change, copies, files_of, inject, redirect
from slaunch.tune.inject.derive import hybrid, with_derived
from slaunch.tune.inject.files import edit
from slaunch.tune.inject.forms import Arguments, Edit, read_form
from slaunch.tune.values import Value


def args(run_cmd: dict[str, Any], stage: str = "search", keys: dict[str, Any] | None = None, **values: Value) -> tuple[str, ...]:
    return inject(make(run_cmd=run_cmd, **(keys or {})), ONE_NODE, setting(**values), stage).args


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (["--mp", ""], ("--mp", "4")),
        (["--mp"], ("--mp", "4")),
        (["--mp", "tp="], ("--mp", "tp=4")),
        (["--mp", "", "--quiet"], ("--mp", "4", "--quiet")),
        (["-o", "Dist.mp"], ("-o", "Dist.mp=4")),
        (["-o", "Dist.mp", "-v"], ("-o", "Dist.mp=4", "-v")),
        ({"option": "--mp"}, ("--mp", "4")),
        ({"option": "--mp", "prefix": "tp"}, ("--mp", "tp4")),
        ({"flag": "--tensor"}, ("--tensor",)),
    ],
)
def test_f226_f227_words_for_the_command_line(form: Any, words: tuple[str, ...]) -> None:
    assert args({"mp_degree": form}, mp_degree=4) == words


def test_values_that_are_not_decided_are_left_to_the_program() -> None:
    run_cmd = {"recompute_granularity": ["--granularity", ""], "use_recompute": {"flag": "--recompute"}}
    assert args(run_cmd, use_recompute=None) == ()
    assert args(run_cmd, use_recompute=False, recompute_granularity="full") == ("--granularity", "full")
    assert args({"use_recompute": ["--recompute", ""]}, use_recompute=True) == ("--recompute", "True")


def test_the_order_of_words_is_that_of_the_dimensions() -> None:
    run_cmd = {
        "pp_degree": ["--pp"],
        "dp_degree": ["--dp"],
        "bucket": ["--bucket"],
        "micro_batch_size": ["--mbs"],
        "mp_degree": ["--mp"],
    }
    keys = {"custom_search_dim": {"bucket": {"value": [1], "prune": False}}}
    assert args(run_cmd, keys=keys, bucket=1) == ("--dp", "1", "--mp", "1", "--pp", "1", "--mbs", "1", "--bucket", "1")


def test_environment_variables() -> None:
    found = inject(make(run_cmd={"mp_degree": {"env": "TP", "prefix": "x"}}), ONE_NODE, setting(mp_degree=2), "search")
    assert found.env["TP"] == "x2"
    told = json.loads(found.env[TRIAL])
    assert (told["stage"], told["mp_degree"], told["recompute_granularity"]) == ("search", 2, None)


def test_w54_a_path_with_dashes_stays_a_path() -> None:
    assert read_form(["conf--o/-o.json", "a.b"]) == Edit("conf--o/-o.json", "a.b")
    assert read_form(["--conf.yaml.gz", "x"]) == Arguments(("--conf.yaml.gz", "x{}"), 1)


def test_f228_f229_w54_values_in_files() -> None:
    study = make(run_cmd={"mp_degree": ["./a.json", "d.mp"], "pp_degree": ["b.yaml", "pp", "p"]})
    found = inject(study, ONE_NODE, setting(mp_degree=2, pp_degree=4), "search")
    assert found.changes == (Change("./a.json", "d.mp", 2), Change("b.yaml", "pp", "p4"))
    assert files_of(study) == ("a.json", "b.yaml")


def test_f228_json_keeps_order_and_indent() -> None:
    text = '{\n    "z": {"b": 1, "list": [{"x": 1}]},\n    "empty": {},\n    "null": null,\n    "ü": 2\n}'
    changes = [
        Change("a.json", "z.b", 5),
        Change("a.json", "empty.mp", 2),
        Change("a.json", "null.a", True),
        Change("a.json", "z.list.0.x", "s"),
    ]
    made = edit("a.json", text, changes)
    assert json.loads(made) == {"z": {"b": 5, "list": [{"x": "s"}]}, "empty": {"mp": 2}, "null": {"a": True}, "ü": 2}
    assert made.startswith('{\n    "z": {') and list(json.loads(made)) == ["z", "empty", "null", "ü"]
    assert edit("a.json", '{"a": 1}', [Change("a.json", "b", 2)]) == '{"a": 1, "b": 2}\n'


def test_f229_w36_w54_yaml_keeps_comments_order_and_quotes() -> None:
    text = """\
# the model
Model:  # in use
  name: 'gpt'
  size: 1.0e-5   # a float
Distributed:
Global:
  - {mp: 1}
"""
    made = edit(
        "a.yaml",
        text,
        [Change("a.yaml", "Distributed.mp", 4), Change("a.yaml", "Global.0.mp", 2), Change("a.yaml", "Model.on", False)],
    )
    for kept in ("# the model", "Model:  # in use", "name: 'gpt'", "size: 1.0e-5   # a float"):
        assert kept in made
    assert "Distributed:\n  mp: 4" in made
    assert "{mp: 2}" in made
    assert "on: false" in made


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ('{"Distributed": {}}', "Distribted.mp", "no such section; did you mean distributed?"),
        ('{"a": 1}', "a.b", "no section"),
        ('{"a": [1]}', "a.7", "no section"),
        ("[1]", "a", "no section"),
        ("{", "a", "it is no JSON"),
    ],
)
def test_w54_paths_that_lead_nowhere_are_errors(text: str, key: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        edit("a.json", text, [Change("a.json", key, 1)])
    assert said.lower() in str(caught.value).lower()


def test_f230_f327_private_copies_replace_the_path_in_the_arguments() -> None:
    paths = copies(("a.json", "sub/a.json", "b.yaml"), "/t")
    assert paths == {"a.json": "/t/a.json", "sub/a.json": "/t/1-a.json", "b.yaml": "/t/b.yaml"}
    words, unnamed = redirect(["./a.json", "--c=sub/../sub/a.json", "-x", "other"], paths)
    assert words == ("/t/a.json", "--c=/t/1-a.json", "-x", "other")
    assert unnamed == ("b.yaml",)


def test_f231_f232_f233_f234_w36_derived_sizes() -> None:
    run_cmd = {
        "local_batch_size": ["--local", ""],
        "gradient_accumulation_steps": ["--acc", ""],
        "global_batch_size": ["--gbs", ""],
        "sequence_parallel": ["--sp", ""],
    }
    given = {"dp_degree": 2, "sharding_degree": 2, "micro_batch_size": 2, "mp_degree": 2}
    assert args(run_cmd, **given) == ("--local", "4", "--acc", "2", "--gbs", "16", "--sp", "1")
    assert args(run_cmd, mp_degree=1)[-1] == "0"
    assert args(run_cmd, global_batch_size=64, dp_degree=2)[:6] == ("--local", "32", "--acc", "32", "--gbs", "64")
    assert with_derived(make(), ONE_NODE, setting(sequence_parallel=False, mp_degree=2))["sequence_parallel"] is False


def test_f235_refined_recomputation_is_an_object() -> None:
    study = make(refined_recompute=["attn", "mlp"], run_cmd={"refined_recompute": ["a.json", "m.rr"]})
    found = inject(study, ONE_NODE, setting(attn=2, mlp=0), "search")
    assert found.changes == (Change("a.json", "m.rr", {"attn": 2, "mlp": 0}),)


def test_f236_own_dimensions() -> None:
    keys = {"custom_search_dim": {"bucket": {"value": [1, 2], "prune": False}}}
    assert args({"bucket": ["--bucket", "mb"]}, keys=keys, bucket=2) == ("--bucket", "mb2")


def test_f237_f238_settings_of_the_stages() -> None:
    run_cmd = {
        "search_stage": {"steps": ["--steps", 30], "file": ["a.yaml", "Run.eval", False]},
        "run_best_stage": {"steps": ["--steps", "100000"], "o": ["-o", "x=1"]},
    }
    assert args(run_cmd) == ("--steps", "30")
    assert args(run_cmd, "best") == ("--steps", "100000", "-o", "x=1")
    study = make(run_cmd=run_cmd)
    assert inject(study, ONE_NODE, setting(), "search").changes == (Change("a.yaml", "Run.eval", False),)
    assert files_of(study) == ("a.yaml",)


@pytest.mark.parametrize(
    ("values", "single", "key"),
    [
        ({"sharding_degree": 2, "mp_degree": 2}, False, "sharding_mp"),
        ({"sharding_degree": 2, "pp_degree": 2}, False, "sharding_pp"),
        ({"sharding_degree": 2, "mp_degree": 2, "pp_degree": 2}, True, "sharding_mp_pp"),
        ({"sharding_degree": 2}, False, "no_overlap"),
        ({"mp_degree": 2}, False, "no_overlap"),
        ({"sharding_degree": 2}, True, ""),
    ],
)
def test_f239_kinds_of_overlap(values: dict[str, Any], single: bool, key: str) -> None:
    assert hybrid(setting(**values), single) == key


def test_f191_f239_overlap_settings_of_the_grid() -> None:
    overlap = {"sharding_mp": ["--overlap", "mp", "--x", "1"], "no_overlap": ["a.json", "overlap", False]}
    keys = {"search_algo": {"name": "grid", "sharding_overlap": overlap}}
    assert args({}, keys=keys, sharding_degree=2, mp_degree=2) == ("--overlap", "mp", "--x", "1")
    assert args({}, keys=keys, sharding_degree=2, pp_degree=2) == ()
    study = make(**keys)
    assert inject(study, ONE_NODE, setting(), "search").changes == (Change("a.json", "overlap", False),)


@pytest.mark.parametrize(
    ("given", "on", "off"),
    [
        (["--overlap", "1"], ("--overlap", "1"), ()),
        (["a.json", "x.y", True], (Change("a.json", "x.y", True),), ()),
        (["a.yaml", "x", True, False, "y", 1, 0], (Change("a.yaml", "x", True), Change("a.yaml", "y", 1)), (False, 0)),
    ],
)
def test_f240_w35_estimation_tells_trials_with_overlap_from_those_without(given: Any, on: Any, off: Any) -> None:
    algorithm = {"name": "dp_estimation", "estimated_num_gpus": 16, "sharding_overlap": {"sharding_mp": given}}
    study = make(search_algo=algorithm)
    trial = setting(sharding_degree=2, mp_degree=2)
    plain, without, with_it = (
        inject(study, ONE_NODE, each, "search")
        for each in (trial, {**trial, "sharding_overlap": False}, {**trial, "sharding_overlap": True})
    )
    assert (plain.args, plain.changes) == ((), ())
    assert on in (with_it.args, with_it.changes)
    assert tuple(each.value for each in without.changes) == tuple(off)
    assert without.args == ()
