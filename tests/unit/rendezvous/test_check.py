"""What tasks must have in common, and how differences are told."""

import pytest
from support.facts import facts

from slaunch.errors import AgreementError, DeviceError, ScriptMissingError
from slaunch.node.values import Problem
from slaunch.rendezvous.check import check_cards, check_clocks, check_digests, class_of, read_cards, unfit
from slaunch.rendezvous.codec import Card, encode_card

MISSING = Problem(127, "start train.py", "no such file: /home/me/train.py", "check the path")


def cards(count=4, **changes):
    """Healthy cards; `changes` maps a rank to changed facts: n2=dict(python=...)."""
    return [Card(rank, count, "abc", b"", facts(rank, **changes.get(f"n{rank}", {}))) for rank in range(count)]


def told(made):
    with pytest.raises(AgreementError) as error:
        check_cards(made)
    return error.value


def test_a_healthy_job_has_nothing_to_tell():
    assert check_cards(cards()) == []


def test_a_script_that_differs_is_named():
    error = told(cards(n2={"program_digest": "other"}))
    assert error.seen == "program (its content or the options) differs on node00002 (task 2) from the other 3"
    assert error.exit_code == 70


def test_the_majority_decides_and_many_are_counted():
    made = cards(40, **{f"n{rank}": {"program_digest": "old"} for rank in range(15)})
    assert "node00007 (task 7) and 7 more from the other 25" in told(made).seen


def test_with_a_tie_the_first_task_is_right():
    assert told(cards(2, n1={"program_digest": "x"})).seen.endswith("differs on node00001 (task 1) from the other 1")


def test_p54_sizes_and_node_lists_must_agree():
    made = cards()
    made[3] = Card(3, 1, "xyz", b"", made[3].facts)
    seen = told(made).seen
    assert "number of tasks differs: node00003 (task 3): 1; the other 3: 4" in seen
    assert "node list differs on node00003 (task 3)" in seen


def test_w17_a_task_under_a_wrong_rank_is_noticed():
    made = cards()
    made[1] = Card(0, 4, "abc", b"", made[1].facts)
    assert "node00001 (task 0) came as task 1" in told(made).seen


def test_other_versions_are_named_before_anything_else_is_read():
    parts = [encode_card(card) for card in cards(n1={"versions": "slaunch 0.9, python 3.10.1"})]
    with pytest.raises(AgreementError) as error:
        read_cards(parts)
    assert "node00001 (task 1): slaunch 0.9, python 3.10.1; the other 3: slaunch 1.0, python 3.11.7" in error.value.seen
    assert [card.facts.host for card in read_cards([encode_card(card) for card in cards(2)])] == ["node00000", "node00001"]


def test_p92_differences_that_may_be_meant_only_warn():
    warnings = check_cards(cards(n3={"python": "/usr/bin/python3", "workers": 4, "devices": ()}))
    assert warnings == [
        "interpreter differs: node00003 (task 3): /usr/bin/python3; the other 3: /opt/venv/bin/python",
        "number of devices differs: node00003 (task 3): 0; the other 3: 8",
        "number of workers differs: node00003 (task 3): 4; the other 3: 8",
    ]


def test_clocks_that_differ_by_much_only_warn():
    everybody = [facts(rank) for rank in range(3)]
    assert check_clocks([1000.0, 1003.0, 1000.5], everybody) == []
    assert check_clocks([1000.0, 900.0, 1000.5], everybody) == ["clocks differ: node00001 (task 1) -100 s"]


def test_a_task_that_came_late_is_no_clock_that_differs():
    assert check_cards(cards(n1={"time_s": 1_800_000_030.0})) == []


def test_local_errors_are_told_once_grouped_by_node():
    made = cards(n1={"problems": (MISSING,)}, n3={"problems": (MISSING,)}, n2={"problems": (Problem(127, "a", "other", "b"),)})
    with pytest.raises(ScriptMissingError) as error:
        check_cards(made)
    assert error.value.wanted == "start train.py"
    assert error.value.seen.split("\n") == ["node00001, node00003: no such file: /home/me/train.py", "        node00002: other"]
    assert error.value.todo == "check the path"


def test_local_errors_come_before_disagreement():
    """A script that is missing on one node has another digest there, too."""
    with pytest.raises(ScriptMissingError):
        check_cards(cards(n1={"problems": (MISSING,), "program_digest": ""}))


def test_nodes_to_do_without_are_those_with_problems_of_their_own():
    wrong, gone = Problem(65, "number the nodes", "--node-rank=7", "leave it out"), Problem(66, "find the GPUs", "3 is gone", "")
    alone = {"n1": {"problems": (wrong, gone)}, "n2": {"problems": (wrong,)}, "n3": {"problems": (MISSING, gone)}}
    assert unfit([card.facts for card in cards(**alone)]) == {1: "3 is gone", 3: MISSING.seen}
    most = {"n0": {"problems": (MISSING,)}, "n1": {"problems": (MISSING, gone)}}
    assert unfit([card.facts for card in cards(3, **most)]) == {1: "3 is gone"}, "the program is the job's own fault"
    assert unfit([card.facts for card in cards(2, **{**most, "n1": {"problems": (gone,)}})]) == {0: MISSING.seen, 1: "3 is gone"}
    assert unfit([card.facts for card in cards(1, **most)]) == unfit([card.facts for card in cards(2)]) == {}


def test_classes_by_exit_code():
    assert class_of(66) is DeviceError
    assert class_of(70) is AgreementError
    assert class_of(9999).exit_code == 1


def test_plans_must_be_equal():
    everybody = [facts(rank) for rank in range(3)]
    check_digests(["a", "a", "a"], everybody)
    with pytest.raises(AgreementError) as error:
        check_digests(["a", "b", "a"], everybody)
    assert error.value.seen == "node00001 (task 1) made another plan than the 2 others, from the same facts"
