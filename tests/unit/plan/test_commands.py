"""Which command each rank runs, and containers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plans

from slaunch.errors import PlanError
from slaunch.options import Part, Program
from slaunch.plan.build import build
from slaunch.plan.commands import commands_of, in_container, interpreter, worker_argv
from slaunch.plan.container import across
from slaunch.plan.values import Command
from slaunch.plan.workers import worker
from slaunch.rendezvous.values import Membership


def planned(*commands):
    membership = Membership(tuple(plans.two_by_two()), 0, 0, "none", "", b"")
    return build(membership, plans.options(), plans.SLURM, (), "job7", "/logs", commands=commands)


def test_each_rank_has_its_command_and_variables():
    made = planned(Command("a", ((0, 0), (2, 2)), ("a",), (("X", "1"),)), Command("rest", (), ("b",)))
    specs = [worker(made, rank, {}, plans.options()) for rank in range(4)]
    assert [spec.argv for spec in specs] == [("a",), ("b",), ("a",), ("b",)]
    assert [spec.set_env.get("X") for spec in specs] == ["1", None, "1", None]
    assert [spec.set_env["ROLE_NAME"] for spec in specs] == ["a", "rest", "a", "rest"]
    assert specs[0].origins["X"] == "role a"


@pytest.mark.parametrize(
    ("commands", "part"),
    [
        ([Command("a", ((0, 2),), ())], "1 ranks have no role, the first of them 3"),
        ([Command("a", ((0, 4),), ())], "role a wants rank 4"),
        ([Command("a", ((0, 3),), ()), Command("b", ((3, 3),), ())], "rank 3 is in the roles a and b"),
        ([Command("a", ((0, 3),), ()), Command("b", (), ())], "no rank is left for the role b"),
    ],
)
def test_roles_must_share_out_the_ranks(commands, part):
    with pytest.raises(PlanError) as caught:
        planned(*commands)
    assert part in str(caught.value)


def test_all_nodes_must_have_the_same_roles():
    one, other = planned(Command("a", (), ("a",))), planned(Command("a", (), ("b",)))
    assert one.digest != other.digest


def test_commands_from_the_options():
    parts = (Part("a", ((0, 0),), Program("a.py", ("--x",))), Part("b", (), Program("./b", (), "executable"), (("V", "w"),)))
    options = plans.options(parts=parts, container=("apptainer", "exec", "i.sif"))
    assert commands_of(options, "python3", {}) == (
        Command("a", ((0, 0),), ("apptainer", "exec", "i.sif", "python3", "-u", "a.py", "--x")),
        Command("b", (), ("apptainer", "exec", "i.sif", "./b"), (("V", "w"),)),
    )


@pytest.mark.parametrize(
    ("kind", "target", "argv"),
    [
        ("python", "train", ("py", "-u", "train", "x")),
        ("python", "train.pyxes", ("py", "-u", "train.pyxes", "x")),
        ("executable", "train.py", ("train.py", "x")),
    ],
)
def test_kinds_that_do_not_depend_on_the_name(kind, target, argv):
    assert worker_argv(Program(target, ("x",), kind), "py", {}) == argv


def test_the_interpreter_in_a_container_is_the_containers():
    assert interpreter(plans.options(), "/venv/python") == "/venv/python"
    assert interpreter(plans.options(container=("x",)), "/venv/python") == "python3"
    assert interpreter(plans.options(container=("x",), python="/opt/python"), "/venv/python") == "/opt/python"


@given(st.lists(st.text(min_size=1)), st.lists(st.text(min_size=1)))
def test_f39_words_of_container_and_program_stay_words(container, args):
    argv = in_container(plans.options(container=tuple(container)), worker_argv(Program("a.py", tuple(args)), "py", {}))
    assert argv == (*container, "py", "-u", "a.py", *args)


@pytest.mark.parametrize(
    ("container", "prefix"),
    [
        ((), ""),
        (("apptainer", "exec", "i.sif"), ""),
        (("apptainer", "exec", "--cleanenv", "i.sif"), "APPTAINERENV_"),
        (("/usr/bin/singularity", "exec", "-C", "i.sif"), "SINGULARITYENV_"),
        (("enroot", "start", "-e", "image"), ""),
    ],
)
def test_variables_cross_the_border_where_the_container_is_closed(container, prefix):
    found = across(container, {"RANK": "3"})
    assert found == ({"RANK": "3", f"{prefix}RANK": "3"} if prefix else {"RANK": "3"})
