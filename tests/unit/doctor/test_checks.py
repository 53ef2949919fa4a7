"""What each check makes of what it saw on one node."""

from __future__ import annotations

import os
from typing import Any

import pytest
from support.cluster import CHECKOUT

from slaunch.doctor.checks import CHECKS, containers, cpus, imports, leftovers, limits, munge, script
from slaunch.doctor.values import ERROR, NOTE, WARNING

from .sites import NO_SITE, SITE, severities


def test_names_are_words_and_each_is_there_once() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) and all(name.isalpha() for name in names)


def test_whatever_is_compared_says_what_a_difference_means() -> None:
    assert all(all(check.differs) for check in CHECKS if check.traits.__name__ != "no_trait")


# -- CPUs ------------------------------------------------------------------------------------------------------------


def cores(count: int, reach: int = 0, given: int = 0, online: int = 64, binder: str = "srun") -> dict[str, Any]:
    mask = "0" if count == 1 else f"0-{count - 1}"
    return {
        "mask": mask,
        "cpus": count,
        "cores": count,
        "reach": reach or count,
        "online": online,
        "given": given,
        "cgroup": "v2",
        "binder": binder,
    }


@pytest.mark.parametrize(
    ("facts", "seen", "todo"),
    [
        (cores(1, reach=64), "one core (CPU 0) of a machine with 64 CPUs", "srun made the mask"),
        (cores(1, reach=64, binder=""), "one core", "something before slaunch made the mask"),
        (cores(1, given=1), "one core", "--cpus-per-task, --cpus-per-gpu"),
        (cores(1), "one core", "control group"),
        (cores(8, given=16), "8 CPUs (0-7), the job has 16", "--cpu-bind=none"),
    ],
)
def test_p39_too_few_cpus(facts: dict[str, Any], seen: str, todo: str) -> None:
    (finding,) = cpus.judge(facts, SITE)
    assert seen in finding.seen and todo in finding.todo and finding.severity == WARNING


@pytest.mark.parametrize("facts", [cores(64), cores(1, online=1), cores(2, given=8, online=2), cores(16, given=16)])
def test_enough_cpus(facts: dict[str, Any]) -> None:
    assert cpus.judge(facts, SITE) == []


@pytest.mark.parametrize(
    ("files", "version"), [(("cgroup.controllers",), "v2"), (("cpuset/tasks",), "v1"), (("memory/tasks",), "v1"), ((), "none")]
)
def test_cgroup_version(tmp_path: Any, files: tuple[str, ...], version: str) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert cpus.cgroup(str(tmp_path)) == version


# -- limits ----------------------------------------------------------------------------------------------------------


def bounds(rdma: bool = False, root: bool = False, **changed: int) -> dict[str, Any]:
    plenty = {"memlock": -1, "nofile": 65536, "nproc": 100_000, "stack": 8 << 20}
    return {**{name: [value, -1] for name, value in (plenty | changed).items()}, "rdma": rdma, "root": root}


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        (bounds(), []),
        (bounds(memlock=64 << 10), ["memlock"]),
        (bounds(memlock=8 << 20), []),
        (bounds(rdma=True, memlock=8 << 20), ["memlock"]),
        (bounds(nofile=256), ["nofile"]),
        (bounds(nproc=64), ["nproc"]),
        (bounds(root=True, nproc=64), []),
        (bounds(stack=64 << 10, nofile=100), ["nofile", "stack"]),
    ],
)
def test_p46_low_limits(facts: dict[str, Any], names: list[str]) -> None:
    found = limits.judge(facts, SITE)
    assert [each.seen.split()[1] for each in found] == names
    assert severities(found) == [WARNING] * len(names)


# -- munge -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("works", "site", "expected"),
    [
        (True, SITE, []),
        (False, SITE, [ERROR]),
        (False, NO_SITE, []),  # no Slurm here
        (False, {"config": {"AuthType": "auth/slurm"}}, []),
        (False, {"config": {}}, [ERROR]),  # its settings are unknown
    ],
)
def test_munge_matters_where_slurm_uses_it(works: bool, site: dict[str, Any], expected: list[str]) -> None:
    assert severities(munge.judge({"works": works, "error": "munge: no socket"}, site)) == expected


# -- programs and processes ------------------------------------------------------------------------------------------


def test_no_script_is_no_finding() -> None:
    assert script.judge({}, SITE) == [] and script.traits({}) == []


def test_a_script_that_cannot_run() -> None:
    facts = {"path": "/x.py", "digest": "0", "problems": [["run x.py", "no such file", "check the path"]]}
    assert severities(script.judge(facts, SITE)) == [ERROR]
    assert script.traits(facts)[0].severity == ERROR


@pytest.mark.parametrize(
    ("facts", "count"), [((0.05, 0.2, 0.05), 0), ((0.5, 9.0, 0.05), 1), ((0.05, 0.2, 8.0), 1), ((0.5, 30.0, 8.0), 2)]
)
def test_p91_slow_imports(facts: tuple[float, float, float], count: int) -> None:
    seen = dict(zip(("start_s", "slaunch_s", "file_ms"), facts, strict=True))
    assert severities(imports.judge(seen, SITE)) == [WARNING] * count


@pytest.mark.parametrize(
    ("runtimes", "namespaces", "expected"),
    [
        ({}, False, []),
        ({"docker": "24.0"}, False, []),
        ({"apptainer": "1.3.4"}, True, []),
        ({"apptainer": "1.3.4"}, False, [NOTE]),
    ],
)
def test_containers(runtimes: dict[str, str], namespaces: bool, expected: list[str]) -> None:
    facts = {"runtimes": runtimes, "pyxis": False, "namespaces": namespaces}
    assert severities(containers.judge(facts, SITE)) == expected


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("apptainer version 1.3.4-1.el8", "1.3.4-1.el8"),
        ("Docker version 24.0.7, build afdd53b", "24.0.7"),
        ("3.5.0\n", "3.5.0"),
        ("", "unknown"),
    ],
)
def test_version_of_a_runtime(text: str, version: str) -> None:
    assert containers.version(text) == version


def left(pid: int, job: str = "", **changed: Any) -> dict[str, Any]:
    return {"pid": pid, "name": "python", "job": job, "step": "", "age_s": 100, "marked": False, "orphan": False} | changed


@pytest.mark.parametrize(
    ("processes", "site", "expected"),
    [
        ([], SITE, []),
        ([left(5, "7")], SITE, []),  # of this job
        ([left(5, "8")], SITE, []),  # of another one that runs
        ([left(5, "3"), left(6, "3")], SITE, [WARNING]),
        ([left(5, "3")], {"job": "7", "jobs": None}, [NOTE]),  # Slurm does not tell what runs
        ([left(5, orphan=True)], SITE, [NOTE]),
        ([left(5, marked=True)], SITE, [NOTE]),
        ([left(5)], SITE, []),
        ([left(5, orphan=True)], {"job": "", "jobs": []}, []),  # a login node
        ([left(5, "3")], NO_SITE, [NOTE]),
    ],
)
def test_leftovers(processes: list[dict[str, Any]], site: dict[str, Any], expected: list[str]) -> None:
    assert severities(leftovers.judge({"processes": processes}, site)) == expected


def test_many_leftovers_are_told_in_one_line() -> None:
    (finding,) = leftovers.judge({"processes": [left(pid, "3") for pid in range(10, 30)]}, SITE)
    assert (
        "10 (python, 1 min 40 s old)" in finding.seen
        and finding.seen.endswith("and 15 more")
        and finding.seen.count("(python") == 5
    )


def test_the_page_names_every_check() -> None:
    with open(os.path.join(CHECKOUT, "docs", "doctor.md")) as file:
        page = file.read()
    assert [check.name for check in CHECKS if f"`{check.name}`" not in page] == []
