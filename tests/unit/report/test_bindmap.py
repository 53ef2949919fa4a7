"""Maps of recorded machines."""

from __future__ import annotations

import json
import os

import pytest
from support import maps
from support.machines import DATA

from slaunch.cli.explain import parse
from slaunch.report.bindmap import SIGNS, drawn, map_json, map_text, sign


@pytest.mark.parametrize("name", maps.CASES)
def test_the_map_of_a_machine(name):
    with open(f"{DATA}/maps/{name}.txt") as file:
        assert map_text(*maps.planned(name)) + "\n" == file.read()


def test_the_map_in_the_documentation_is_the_recorded_one():
    with open(f"{DATA}/maps/dgx-h100.txt") as file:
        recorded = file.read().splitlines()
    with open(os.path.join(os.path.dirname(DATA), "..", "docs", "binding.md")) as file:
        shown = file.read().partition("```text\n")[2].partition("```")[0].splitlines()
    assert len(shown) > 10
    assert [line for line in shown if line.strip() != "…" and line not in recorded] == []


@pytest.mark.parametrize("name", maps.CASES)
def test_json_says_the_same(name):
    plan, membership = maps.planned(name)
    (node,) = json.loads(map_json(plan, membership))["nodes"]
    assert node["hosts"] == [each.host for each in plan.nodes]
    numa = [each for package in node["packages"] for each in package["numa"]]
    cores = [core for each in numa for core in each["cores"]]
    assert sorted(cpu for core in cores for cpu in core["cpus"]) == node["cpus"]
    for worker in node["workers"]:
        on = {cpu for core in cores if worker["local_rank"] in core["workers"] for cpu in core["cpus"]}
        assert set(worker["cpus"]) <= on
    held = [at for each in numa for device in each["devices"] for at in device["workers"]]
    assert sorted(held) == sorted(worker["local_rank"] for worker in node["workers"] for _ in worker["devices"])


def test_nodes_that_differ_are_drawn_apart():
    plan, membership = maps.planned("dgx-h100")
    text = map_text(plan, membership)
    assert text.startswith("n1 and 3 nodes like it: ")
    assert text.count("package 0") == 1


def test_cores_are_signs_with_gaps_between_caches():
    cores = [([0], 0), ([1], 0), ([], 8), ([0, 1], 8)]
    assert drawn([{"workers": workers, "cache": cache} for workers, cache in cores]) == "01 .+"
    assert sign([61]) == sign([200]) == SIGNS[-1]


@pytest.mark.parametrize(
    ("words", "bind", "json", "rest"),
    [
        (["--bind", "a.py"], True, False, ("a.py",)),
        (["--json", "--bind", "a.py"], True, True, ("a.py",)),
        (["--bind", "numa", "a.py"], True, False, ("--bind", "numa", "a.py")),
        (["--bind", "map:0,1", "--json", "a.py"], True, True, ("--bind", "map:0,1", "a.py")),
        (["--bind=numa", "a.py"], False, False, ("--bind=numa", "a.py")),
        (["--nproc-per-node", "2", "--bind", "core", "a.py"], False, False, ("--nproc-per-node", "2", "--bind", "core", "a.py")),
    ],
)
def test_the_flag_and_the_option_of_that_name(words, bind, json, rest):
    request = parse(words)
    assert (request.bind, request.json, request.rest) == (bind, json, rest)
