"""Facts of nodes that were not asked."""

from support import plans

from slaunch.allocation.values import Allocation, Shell, Slot, StepShape, Task
from slaunch.node.values import SPARE_PORTS
from slaunch.options import Part, Program
from slaunch.plan.assume import as_components, assume
from slaunch.plan.build import build
from slaunch.rendezvous.values import Membership

FOUR = Allocation("slurm", "7", "", ("n1", "n2", "n3", "n4"), (1, 1, 1, 1))


def plan(standing):
    everyone = assume(standing, plans.facts(0, 2))
    return build(Membership(everyone, 0, 0, "none", "", b""), plans.options(), standing.allocation, ("a",), "j")


def test_a_batch_shell_s_nodes_are_like_this_one_under_their_own_names():
    made = plan(Shell(FOUR, StepShape(4)))
    assert [(node.host, node.address.ip, node.ranks) for node in made.nodes] == [
        ("n1", "n1", (0, 1)),
        ("n2", "n2", (2, 3)),
        ("n3", "n3", (4, 5)),
        ("n4", "n4", (6, 7)),
    ]
    assert {port for node in made.nodes for port in (*node.ports, *node.spare_ports)} == {0}


def test_a_shape_of_tasks_makes_tasks():
    made = plan(Shell(FOUR, StepShape(4, tasks_per_node=2)))
    assert (made.layout, made.world) == ("task", 8)


def test_a_shape_with_fewer_nodes_takes_the_first():
    assert [node.host for node in plan(Shell(FOUR, StepShape(2))).nodes] == ["n1", "n2"]


def test_a_task_of_a_recorded_step_stands_for_all():
    made = plan(Task(Allocation("slurm", "7", "0", ("n1", "n2"), (2, 1)), Slot(0, 3, 0)))
    assert [(node.host, node.ranks) for node in made.nodes] == [("n1", (0, 1)), ("n2", (2,))]


def test_one_process_alone_is_this_machine():
    everyone = assume(Task(Allocation("plain"), Slot(0, 1, 0)), plans.facts(0, 2))
    assert [(fact.host, fact.ports) for fact in everyone] == [("n1", (0,) * (2 + SPARE_PORTS))]


def test_hosts_that_the_launcher_does_not_tell_have_stand_ins():
    made = plan(Shell(Allocation("slurm", "7"), StepShape(2)))
    assert [node.host for node in made.nodes] == ["node0", "node1"]


def test_p10_a_heterogeneous_shell_s_nodes_have_the_workers_of_their_components_roles():
    parts = (Part("a", (), Program("a"), component=0), Part("b", (), Program("b"), workers=3, component=1))
    shell = Shell(FOUR, StepShape(4, het_groups=(0, 1), parts=(StepShape(1), StepShape(3))))
    everyone = as_components(shell, plans.options(parts=parts), assume(shell, plans.facts(0, 9)))
    assert [(facts.component, facts.workers, len(facts.ports)) for facts in everyone] == [
        (0, 1, 1 + SPARE_PORTS),
        *[(1, 3, 3 + SPARE_PORTS)] * 3,
    ]
    alone = Task(Allocation("plain"), Slot(0, 1, 0))
    assert as_components(alone, plans.options(parts=parts), (plans.facts(0, 4),))[0].component == -1
