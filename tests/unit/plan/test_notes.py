"""Notes of many nodes in few lines."""

from __future__ import annotations

from support import plans

from slaunch.plan.notes import notes_of


def test_equal_notes_of_many_nodes_are_one_line():
    nodes = [plans.facts(0), plans.facts(1, notes=("odd",)), *(plans.facts(at, notes=("same",)) for at in range(2, 5))]
    assert notes_of(plans.plan(nodes)) == ("n2: odd", "n3 and 2 other nodes: same")


def test_p39_notes_of_the_binding_and_of_the_machine_are_both_told():
    narrow = {"cpus": (0,), "cores": ((0,),), "reach": plans.facts(0).cores, "binder": "srun", "notes": ("unverified",)}
    told = notes_of(plans.plan([plans.facts(at, workers=2, **narrow) for at in range(2)]))
    assert told[0] == "n1 and 1 other node: unverified"
    assert told[1].startswith("n1 and 1 other node: srun's mask 0 has 1 core for 2 workers: they use 0-15 instead")


def test_a_plan_without_notes():
    assert notes_of(plans.plan([plans.facts(0)])) == ()
