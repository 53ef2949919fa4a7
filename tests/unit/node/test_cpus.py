"""CPUs, cores, NUMA nodes and caches, from the sysfs of many machines."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import machines

from slaunch.node import cpulist
from slaunch.node.cpus import NO_CORES, binder, reachable, read_cpus

MACHINES = machines.load()


@pytest.mark.parametrize("name", MACHINES)
def test_cores_numa_and_caches_of_a_machine(name, tmp_path):
    machine = MACHINES[name]
    machines.write_sysfs(machine, str(tmp_path))
    found = read_cpus(str(tmp_path), mask=machine.usable, granted=machine.usable)
    assert found.mask == machine.usable
    assert (found.cores.cpus, found.cores.numa, found.cores.caches) == machines.columns(machine, machine.usable)
    assert found.cores.packages == tuple(machine.package_of(core[0]) for core in found.cores.cpus)
    assert found.online == len(machine.cpus)
    assert found.reach == NO_CORES


def test_p42_reserved_cores_are_in_no_core(tmp_path):
    machine = MACHINES["mi250x"]
    machines.write_sysfs(machine, str(tmp_path))
    found = read_cpus(str(tmp_path), mask=machine.usable, granted=machine.usable)
    assert len(found.cores.cpus) == 56
    assert not {0, 8, 16, 24, 32, 40, 48, 56} & {cpu for core in found.cores.cpus for cpu in core}


def test_p37_siblings_of_a_cgroup_with_a_hole(tmp_path):
    machine = MACHINES["slice"]
    machines.write_sysfs(machine, str(tmp_path))
    found = read_cpus(str(tmp_path), mask=machine.usable, granted=machine.usable)
    assert found.cores.cpus == ((0, 64), (1, 65), (2, 66), (3, 67), (4, 68), (5, 69))


def test_p35_p39_what_the_kernel_grants_beyond_a_narrow_mask(tmp_path):
    machine = MACHINES["epyc-quad"]
    machines.write_sysfs(machine, str(tmp_path))
    found = read_cpus(str(tmp_path), mask=(1,), granted=machine.usable)
    assert found.cores.cpus == ((1,),)
    assert found.reach.cpus == machines.columns(machine, machine.usable)[0]


def test_a_machine_without_sysfs_has_its_mask(tmp_path):
    found = read_cpus(str(tmp_path), mask=(2, 3), granted=(2, 3))
    assert found.cores.cpus == ((2,), (3,))
    assert found.cores.numa == (-1, -1)
    assert found.cores.caches == (-1, -1)
    assert found.online == 2


def test_few_files_are_read(tmp_path, monkeypatch):
    machine = MACHINES["dgx-a100"]
    machines.write_sysfs(machine, str(tmp_path))
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(path) or real(path, *rest))
    read_cpus(str(tmp_path), mask=machine.usable, granted=machine.usable)
    assert len(opened) <= len(machine.cores) + len(machine.caches) + 2 * len(machine.numa) + 2


def test_p39_reach_asks_the_kernel_and_leaves_the_mask_as_it_was():
    everything = os.sched_getaffinity(0)
    one = min(everything)
    code = (
        "import os; from slaunch.node.cpus import reachable\n"
        f"os.sched_setaffinity(0, {{{one}}})\n"
        f"print(sorted(reachable(frozenset({{{one}}}), frozenset({everything}))), sorted(os.sched_getaffinity(0)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.strip() == f"{sorted(everything)} {[one]}"


def test_reach_of_cpus_that_do_not_exist_is_what_the_kernel_grants():
    own = frozenset(os.sched_getaffinity(0))
    assert reachable(own, own | {1000}) == own


@given(st.sets(st.integers(0, 300)))
def test_lists_of_cpus_survive_a_round_trip(cpus):
    assert set(cpulist.parse(cpulist.render(cpus))) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"), [("", ()), ("0", (0,)), ("0-2,8", (0, 1, 2, 8)), ("3,1", (1, 3)), ("0-1,64-65", (0, 1, 64, 65))]
)
def test_lists_of_cpus_are_read(text, cpus):
    assert cpulist.parse(text) == cpus


@pytest.mark.parametrize("text", ["a", "1-", "4-2", "-1", "1;2"])
def test_other_text_is_no_list_of_cpus(text):
    with pytest.raises(ValueError):
        cpulist.parse(text)


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ((), ""),
        (("SLURM_JOB_ID",), ""),
        (("SLURM_JOB_ID", "SLURM_STEP_ID"), "srun"),
        (("SLURM_STEP_ID", "PMI_RANK"), "srun"),
        (("SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK"), "mpirun"),
        (("PMI_RANK",), "mpiexec"),
        (("PALS_RANKID", "PMI_RANK"), "mpiexec"),
        (("FLUX_TASK_RANK", "PMI_RANK"), "flux run"),
    ],
)
def test_p39_p45_who_may_have_bound_this_task(variables, name):
    assert binder(dict.fromkeys(variables, "0")) == name
