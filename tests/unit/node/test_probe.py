"""The facts of this machine for one task: they are complete whatever is wrong."""

from __future__ import annotations

import os
import sys

import pytest

from slaunch.node.probe import probe
from slaunch.node.values import SPARE_PORTS
from slaunch.options import Options, Program


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("print('hello')\n")
    return str(path)


def look(script, env=None, root="/", **options):
    facts, reserved = probe(env or {}, Options(Program(script), **options), root)
    reserved.release()
    return facts


def codes(facts):
    return [problem.code for problem in facts.problems]


def test_facts_of_this_machine(script, tmp_path):
    facts = look(script, root=str(tmp_path))
    assert facts.problems == ()
    assert facts.host == os.uname().nodename
    assert set(facts.cpus) == os.sched_getaffinity(0)
    assert facts.addresses
    assert facts.workers == 1
    assert len(set(facts.ports)) == 1 + SPARE_PORTS
    assert facts.pid == os.getpid()
    assert facts.python == sys.executable


def test_machine_is_one_for_two_looks(script):
    assert look(script).machine == look(script).machine
    assert len(look(script).machine) > 40


def test_p18_addresses_are_numbers_whatever_the_machine_is_called(script):
    for address in look(script).addresses:
        assert os.uname().nodename not in address.ip
        assert address.ip.replace(":", "").replace(".", "").isalnum()


def test_p20_p27_no_name_or_variable_is_asked_for_an_address(script):
    plain = look(script)
    misled = look(script, {"SLURM_LAUNCH_NODE_IPADDR": "10.1.0.5", "HOSTNAME": "elsewhere", "POD_IP": "10.9.9.9"})
    assert misled.addresses == plain.addresses


def test_p22_p30_ports_are_held_while_the_facts_travel(script):
    import socket

    facts, reserved = probe({}, Options(Program(script), nproc_per_node=3))
    with reserved:
        assert len(facts.ports) == 3 + SPARE_PORTS
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("", facts.ports[0]))


def test_f57_one_worker_for_each_visible_device(script, tmp_path):
    facts = look(script, {"CUDA_VISIBLE_DEVICES": "2,3,5"}, str(tmp_path))
    assert facts.workers == 3
    assert [device.label for device in facts.devices] == ["2", "3", "5"]
    assert facts.visible == "CUDA_VISIBLE_DEVICES"
    assert "unverified" in facts.notes[0]


def test_f66_chosen_devices_count(script, tmp_path):
    facts = look(script, {"CUDA_VISIBLE_DEVICES": "2,3,5"}, str(tmp_path), devices=("5", "2"))
    assert facts.workers == 2
    assert [device.position for device in facts.devices] == [2, 0]


def test_f65_one_worker_with_all_devices(script, tmp_path):
    facts = look(script, {"CUDA_VISIBLE_DEVICES": "2,3,5"}, str(tmp_path), nproc_per_node=1)
    assert facts.workers == 1
    assert len(facts.devices) == 3


def test_p15_more_workers_than_own_devices_may_be_right_where_each_task_has_its_own(script, tmp_path):
    """Whether there are enough is for the plan, which knows how many tasks a machine has."""
    assert codes(look(script, {"CUDA_VISIBLE_DEVICES": "2"}, str(tmp_path), nproc_per_node=2)) == []


def test_f61_an_empty_list_is_a_cpu_job_of_as_many_workers_as_wanted(script, tmp_path):
    facts = look(script, {"CUDA_VISIBLE_DEVICES": ""}, str(tmp_path), nproc_per_node=3)
    assert (facts.workers, facts.devices, facts.problems) == (3, (), ())


def test_every_problem_is_collected_and_none_is_raised(tmp_path):
    (tmp_path / "file").write_text("")
    facts = look(
        "nowhere.py",
        {"CUDA_VISIBLE_DEVICES": "0", "PORT_RANGE": "x"},
        str(tmp_path),
        devices=("7",),
        network="no-such-net",
        log_dir=str(tmp_path / "file/logs"),
    )
    assert codes(facts) == [127, 73, 66, 2, 2]
    assert all(problem.wanted and problem.seen and problem.todo for problem in facts.problems)


def test_the_digest_follows_the_script_and_the_options(script):
    first = look(script).program_digest
    assert first == look(script).program_digest
    assert first != look(script, bind="none").program_digest
    with open(script, "a") as file:
        file.write("#")
    assert first != look(script).program_digest
