"""From what was seen to what is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.cli.doctor import Call, doctor_command, parse
from slaunch.doctor import examine
from slaunch.doctor.checks import CHECKS
from slaunch.doctor.lines import PIECE_CHARS, Joiner, pieces
from slaunch.doctor.text import exit_code, render, render_json
from slaunch.doctor.values import ERROR, NOTE, WARNING, Finding, Outcome, Report, Request
from slaunch.errors import UsageError

BAD = Finding("munge", ERROR, "no socket", "steps fail", "start munged", ("n2",))
ODD = Finding("gpus", WARNING, "driver: 535 on n3", "slow", "update", ("n3",))
REMARK = Finding("mpi", NOTE, "no mpi4py", "nothing", "nothing", ("n1", "n2", "n3"))
SITE = Finding("slurm", WARNING, "Slurm 22.05.8", "hangs", "update")
NODE = {
    "cpus": Outcome({"cpus": 8}),
    "gpus": Outcome({"count": 4}),
    "munge": Outcome({"works": True}),
    "network": Outcome({"addresses": [["10.0.0.1", "eth0", 16, 0], ["fd00::1", "eth0", 64, 0]]}),
}


def report(*findings: Finding, absent: tuple[str, ...] = ()) -> Report:
    nodes = {f"n{number}": NODE for number in range(1, 5) if f"n{number}" not in absent}
    return Report("job 7 on n[1-4]", findings, nodes, {}, (("n1", "n2", "eth0", 2e9),), 3.2, absent)


@pytest.mark.parametrize(
    ("findings", "code"), [((), 0), ((REMARK,), 0), ((REMARK, ODD), 1), ((BAD,), 78), ((ODD, BAD, SITE), 78), ((SITE,), 1)]
)
def test_exit_code(findings: tuple[Finding, ...], code: int) -> None:
    assert exit_code(report(*findings)) == code == json.loads(render_json(report(*findings)))["exit_code"]


TEXT = """\
slaunch doctor: job 7 on n[1-4], 3 nodes in 3.20 s: 1 error, 2 warnings

ERROR munge on n2
  seen:  no socket
  means: steps fail
  do:    start munged

WARNING gpus on n3
  seen:  driver: 535 on n3
  means: slow
  do:    update

WARNING slurm
  seen:  Slurm 22.05.8
  means: hangs
  do:    update

nodes  CPUs  GPUs  interfaces  gpus  munge
n1     8     4     eth0        -     -
n2     8     4     eth0        -     E
n3     8     4     eth0        !     -
n4     ?     ?     ?           ?     ?
(E error, ! warning, . note, - well, ? no answer)
well everywhere: cpus, network

eth0: 2.0 GB/s between most pairs, by one TCP connection"""


def test_text() -> None:
    assert render(report(BAD, ODD, SITE, absent=("n4",))) == TEXT


def test_nodes_that_are_alike_share_a_row() -> None:
    text = render(report())
    assert "all is well" in text and "n[1-4]  8     4     eth0" in text
    assert "well everywhere: cpus, gpus, munge, network" in text


def test_colours_are_for_terminals() -> None:
    assert "\033[31m" in render(report(BAD), colour=True) and "\033" not in render(report(BAD))


def test_json_has_everything() -> None:
    tree = json.loads(render_json(report(BAD, absent=("n4",))))
    assert tree["format"] == 1 and tree["absent"] == ["n4"] and tree["nodes"]["n1"]["cpus"]["facts"] == {"cpus": 8}
    assert tree["findings"][0] == {
        "check": "munge",
        "severity": "error",
        "seen": "no socket",
        "means": "steps fail",
        "todo": "start munged",
        "nodes": ["n2"],
    }
    assert tree["rates"] == [{"from": "n1", "to": "n2", "interface": "eth0", "bytes_per_s": 2e9}]


# -- judging ---------------------------------------------------------------------------------------------------------


def munged(works: bool) -> dict[str, Outcome]:
    return {"munge": Outcome({"works": works, "error": "" if works else "no socket"})}


def test_one_finding_of_several_nodes_is_told_once() -> None:
    found = examine.judged({"n1": munged(False), "n2": munged(True), "n3": munged(False)}, {"config": {}})
    assert [(each.check, each.nodes) for each in found] == [("munge", ("n1", "n3"))]


@pytest.mark.parametrize("fault", ["it did not end within 10 s", "it was ended by signal 11", "OSError: broken"])
def test_a_check_that_fails_is_a_finding(fault: str) -> None:
    (finding,) = examine.judged({"n1": {"scratch": Outcome({}, fault)}}, {})
    assert fault in finding.seen and finding.severity == WARNING and "the file system" in finding.todo


def test_checks_that_failed_are_not_compared() -> None:
    limits = {name: [1 << 20, -1] for name in ("memlock", "nofile", "nproc", "stack")}
    nodes = {"n1": {"limits": Outcome(limits)}, "n2": {"limits": Outcome({}, "crash")}, "n3": {"limits": Outcome(limits)}}
    assert examine.compared(nodes, tuple(nodes)) == []


def test_a_difference_that_is_known_already_is_not_told_again() -> None:
    one = Finding("limits", WARNING, "memlock is 65536", "", "", ("n2",))
    again = Finding("limits", WARNING, "memlock: 65536 on n2", "", "", ("n2",))
    other = Finding("limits", WARNING, "stack: 1 on n3", "", "", ("n3",))
    assert examine.news([again, other], [one]) == [other]


def test_the_worst_comes_first() -> None:
    assert examine.ordered([REMARK, ODD, BAD, SITE]) == (BAD, ODD, SITE, REMARK)


SAID = """\
srun: error: Task launch for StepId=6.0 failed on node n4: Communication connection failure
srun: error: Application launch failed: Communication connection failure
srun: error: n3: task 2: Killed
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SAID, "Task launch for StepId=6.0 failed on node n4: Communication connection failure"),
        ("srun: error: Unable to create step\n\n", "Unable to create step"),
        ("", ""),
    ],
)
def test_what_matters_of_srun_s_words(text: str, expected: str) -> None:
    assert examine.complaint(text) == expected


def test_every_check_that_is_quick_has_a_short_limit() -> None:
    assert all(check.limit_s <= 20 for check in CHECKS)


# -- lines -----------------------------------------------------------------------------------------------------------


@given(st.dictionaries(st.text(), st.text(max_size=3000), max_size=3), st.dictionaries(st.text(), st.integers()), st.randoms())
def test_pieces_of_several_senders_are_put_together(one: dict[str, Any], two: dict[str, Any], dice: Any) -> None:
    queues = [list(pieces("n1:5", one)), list(pieces("n2:6", two))]
    lines = []
    while any(queues):
        lines.append(dice.choice([queue for queue in queues if queue]).pop(0))
    joiner = Joiner()
    taken = [joiner.take(f"{line}\n") for line in (*lines, "another program's line")]
    assert dict(filter(None, taken)) == {"n1:5": one, "n2:6": two}
    assert all(len(line.encode()) < 1000 and "\n" not in line for line in lines)


def test_a_value_with_a_lost_piece_is_no_value() -> None:
    first, second, last = pieces("n1:5", {"x": "y" * 2 * PIECE_CHARS})
    joiner = Joiner()
    assert [joiner.take(first), joiner.take(last)] == [None, None]
    assert joiner.take(second) is None


# -- command line ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "call"),
    [
        ((), Call()),
        (("--json",), Call(json=True)),
        (("--quick", "train.py", "--lr", "1"), Call(request=Request(quick=True, program="train.py"))),
        (("--scratch", "/a", "--scratch", "/b"), Call(request=Request(scratch=("/a", "/b")))),
        (("--step-args", "--mpi=pmix -v", "x"), Call(request=Request(program="x"), extra=("--mpi=pmix", "-v"))),
    ],
)
def test_command_line(args: tuple[str, ...], call: Call) -> None:
    assert parse(args) == call


@pytest.mark.parametrize("args", [("--nonsense",), ("--scratch",), ("--step-args",)])
def test_wrong_command_line(args: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse(args)


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor_command(("--help",), {}) == 0
    assert "--quick" in capsys.readouterr().out


def test_one_of_several_tasks_is_told_to_leave_out_srun() -> None:
    env = {
        "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    }
    with pytest.raises(UsageError) as caught:
        doctor_command((), env)
    assert "one of 2 tasks" in caught.value.seen and "without srun" in caught.value.todo
