"""`explain`: everything is there, in both forms, and no secret."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import plans

from slaunch.allocation.values import Allocation, Evidence, Shell, Sighting, Slot, StepCall, StepShape, Task
from slaunch.frozen import replace
from slaunch.options import Part, Program
from slaunch.plan.workers import worker
from slaunch.rendezvous.values import Membership
from slaunch.report.explain import explain_json, explain_text, ranges
from slaunch.report.redact import HIDDEN

SECRET = "s3cr3t-value"
SEEN = Evidence("SLURM_STEP_ID", "0", "a step runs")
SIGHTINGS = (
    Sighting("plain", 0, (Evidence("", "", "nothing else decides"),)),
    Sighting("slurm", 20, (SEEN, Evidence("MY_API_KEY", SECRET, "never shown"))),
    Sighting("flux", 25, ()),
)
PROGRAM = Program("train.py", ("--token", SECRET))
ALLOCATION = Allocation("slurm", "7", "0", ("n1", "n2"), (1, 1), evidence=(SEEN,), warnings=("two of two disagree",))
TASK = Task(ALLOCATION, Slot(0, 2, 0))
SHELL = Shell(ALLOCATION, StepShape(2, gpu_args=("--gres=gpu:2",)))


def parts(standing: Task | Shell, **chosen: Any) -> tuple[Any, ...]:
    """The arguments of both functions."""
    facts = plans.two_by_two(devices=plans.gpus("0", "1"), visible="CUDA_VISIBLE_DEVICES")
    options = replace(plans.options(**chosen), program=PROGRAM, origins={"grace_s": "command line"}, grace_s=3.0)
    plan = plans.plan(facts, **chosen)
    env = {"RANK": "9", "SLURM_TASK_PID": "1", "KEEP": "1"}
    specs = tuple(worker(plan, rank, env, options) for rank in range(plan.world))
    specs = tuple(replace(spec, set_env={**spec.set_env, "HF_TOKEN": SECRET}) for spec in specs)
    membership = Membership(tuple(facts), 0, 0, "mpi", "the launcher offers pmix", SECRET.encode())
    call = StepCall(("srun", "-N2", "slaunch", f"--password={SECRET}"), {}) if isinstance(standing, Shell) else None
    return standing, SIGHTINGS, membership, plan, specs, options, call


@pytest.mark.parametrize("standing", [TASK, SHELL])
@pytest.mark.parametrize("render", [explain_text, explain_json])
def test_no_secret_in_any_form(standing: Task | Shell, render: Any) -> None:
    text = render(*parts(standing))
    assert SECRET not in text
    assert HIDDEN in text


def test_text_tells_what_was_seen_and_why() -> None:
    text = explain_text(*parts(TASK))
    for piece in (
        "slurm: the innermost launcher; it was started inside, or beside what was left by, plain",
        "SLURM_STEP_ID",
        "a step runs",
        "job 7, step 0",
        "this is task 0 of 2",
        "warning: two of two disagree",
        "mpi: the launcher offers pmix",
        "grace_s  3.0  (command line)",
        "10.0.0.1 on eth0",
        "gpu 0, gpu 1, listed by CUDA_VISIBLE_DEVICES",
        "4 workers on 2 nodes, mode collective; an agent on each node starts its workers",
        "logs: /logs",
        "different for each worker:",
    ):
        assert piece in text, piece
    assert "step that slaunch starts" not in text


def test_text_has_a_line_for_each_worker_with_its_place() -> None:
    lines = explain_text(*parts(TASK)).splitlines()
    rows = [line.split() for line in lines[lines.index("workers") + 2 :][:4]]
    assert [" ".join(row[:4]) for row in rows] == ["0 n1 0 0", "1 n1 1 1", "2 n2 0 0", "3 n2 1 1"]


def test_text_names_the_origin_of_variables_and_the_reason_of_removals() -> None:
    lines = explain_text(*parts(TASK)).splitlines()
    rank = next(line for line in lines if line.split()[:1] == ["WORLD_SIZE"])
    assert rank.split()[1:] == ["'4'", "(torch)"]
    removed = lines[lines.index("removed from the environment") :]
    assert any(line.split()[0] == "SLURM_TASK_PID" and len(line.split()) > 1 for line in removed[1:])


def test_from_a_shell_the_step_is_shown() -> None:
    text = explain_text(*parts(SHELL))
    assert "this is a batch or allocation shell" in text
    assert f"step that slaunch starts\n  srun -N2 slaunch '--password={HIDDEN}'" in text


def test_json_has_every_stage_and_worker() -> None:
    tree = json.loads(explain_json(*parts(TASK)))
    assert tree["format"] == 1
    assert (tree["launcher"]["chosen"], [seen["reader"] for seen in tree["launcher"]["seen"]]) == ("slurm", ["slurm", "plain"])
    assert tree["allocation"]["slot"] == {"rank": 0, "size": 2, "local_rank": 0, "node": 0}
    assert tree["options"]["grace_s"] == {"value": 3.0, "origin": "command line"}
    assert [task["host"] for task in tree["tasks"]] == ["n1", "n2"]
    assert [worker["rank"] for worker in tree["workers"]] == [0, 1, 2, 3]
    assert tree["workers"][3]["set"]["RANK"] == {"value": "3", "origin": "torch"}
    assert tree["plan"]["nodes"][1]["address"]["ip"] == "10.0.0.2"


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 3, 8), "0-3,8"), ((5, 1, 0), "0-1,5"), ((1, 3, 5), "1,3,5")]
)
def test_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert ranges(numbers) == text


def test_options_made_of_values_are_shown() -> None:
    standing, sightings, membership, plan, specs, options, call = parts(TASK)
    options = replace(options, parts=(Part("a", (), PROGRAM, (("HF_TOKEN", SECRET),)),), origins={"parts": "command line"})
    tree = json.loads(explain_json(standing, sightings, membership, plan, specs, options, call))
    assert SECRET not in json.dumps(tree)
    assert "train.py" in json.dumps(tree["options"]["parts"])
