"""What each check makes of what it saw on one node."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest
from support.cluster import CHECKOUT

from slaunch.doctor.checks import CHECKS, containers, cpus, gpus, imports, leftovers, limits, mpi, munge, network, script, storage
from slaunch.doctor.values import ERROR, NOTE, WARNING, Finding
from slaunch.rendezvous.library import INTEL, MPICH, OPENMPI
from slaunch.rendezvous.pmi import NONE, PALS, PMI2, PMIX

GIB = 1 << 30
SITE: Mapping[str, Any] = {"config": {"AuthType": "auth/munge", "MpiDefault": "none"}, "job": "7", "jobs": ["7", "8"]}
NO_SITE: Mapping[str, Any] = {}


def severities(findings: list[Finding]) -> list[str]:
    assert all(each.seen and each.means and each.todo for each in findings)
    return [each.severity for each in findings]


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


# -- MPI -------------------------------------------------------------------------------------------------------------


def library(kind: str, interface: str = NONE, **changed: Any) -> dict[str, Any]:
    facts = {
        "kind": kind,
        "where": f"/opt/{kind}/libmpi.so",
        "loaded": "",
        "fault": "",
        "step": True,
        "interface": interface,
        "evidence": "PMI_FD",
        "default": "",
        "offered": ["pmix", "pmix_v4", "pmi2", "cray_shasta", "none"],
        "mpirun": "",
    }
    return facts | changed


@pytest.mark.parametrize(
    ("kind", "interface", "todo"),
    [
        (OPENMPI, PMIX, ""),
        (MPICH, PMI2, ""),
        (INTEL, PMI2, ""),
        (MPICH, PALS, ""),
        (OPENMPI, PMI2, "srun --mpi=pmix "),
        (OPENMPI, NONE, "srun --mpi=pmix "),
        (MPICH, PMIX, "srun --mpi=pmi2 "),
        (MPICH, NONE, "srun --mpi=pmi2 "),
    ],
)
def test_p53_p54_p63_p64_plugin_and_library_in_a_step(kind: str, interface: str, todo: str) -> None:
    found = mpi.judge(library(kind, interface), SITE)
    assert severities(found) == [WARNING] * bool(todo)
    assert all(each.todo.startswith(todo) and kind in each.seen for each in found)


@pytest.mark.parametrize(
    ("default", "variable", "kind", "expected"),
    [
        ("pmix", "", OPENMPI, []),
        ("pmix_v4", "", OPENMPI, []),
        ("pmi2", "", OPENMPI, [WARNING]),
        ("none", "pmix", OPENMPI, []),
        ("none", "", MPICH, [WARNING]),
        ("pmi2", "", MPICH, []),
        ("cray_shasta", "", MPICH, []),
    ],
)
def test_default_plugin_on_a_login_node(default: str, variable: str, kind: str, expected: list[str]) -> None:
    facts = library(kind, step=False, default=variable)
    assert severities(mpi.judge(facts, {"config": {"MpiDefault": default}})) == expected


def test_a_plugin_that_is_not_offered_is_not_advised() -> None:
    (finding,) = mpi.judge(library(OPENMPI, PMI2, offered=["pmi2", "none"]), SITE)
    assert "none of which Open MPI understands" in finding.todo


def test_without_slurm_only_mpirun_is_judged() -> None:
    (finding,) = mpi.judge(library(MPICH, step=False, mpirun="openmpi"), NO_SITE)
    assert finding.severity == WARNING and "mpirun on PATH is of the kind openmpi" in finding.seen


def test_another_mpirun_is_a_note_under_slurm() -> None:
    assert severities(mpi.judge(library(MPICH, PMI2, mpirun="openmpi"), SITE)) == [NOTE]


def test_library_that_does_not_load() -> None:
    (finding,) = mpi.judge(library(MPICH, PMI2, fault="RuntimeError: cannot load MPI library"), SITE)
    assert "cannot load MPI library" in finding.seen and finding.severity == WARNING


def test_no_mpi_is_a_note() -> None:
    assert severities(mpi.judge(library("", where="mpi4py is not installed for this interpreter"), SITE)) == [NOTE]


@pytest.mark.parametrize(
    "text",
    [
        "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n",
        "srun: MPI types are...\nsrun: cray_shasta\nsrun: none\nsrun: pmi2\nsrun: pmix\nsrun: pmix_v4\n",
    ],
    ids=["22.05", "20.11"],
)
def test_list_of_plugins(text: str) -> None:
    assert mpi.read_list(text) == ["pmix", "pmix_v4", "pmi2", "cray_shasta", "none"]


# -- GPUs ------------------------------------------------------------------------------------------------------------


def cards(count: int, **changed: Any) -> dict[str, Any]:
    facts = {
        "kind": "gpu" if count else "cpu",
        "count": count,
        "given": 0,
        "driver": "550.54.15",
        "names": ["NVIDIA A100"] * count,
        "memory": [80 * GIB] * count,
        "problems": [],
        "library": True,
        "loaded": True,
        "held": [],
        "used": [4 << 20] * count,
    }
    return facts | changed


HELD = {"device": 1, "pid": 99, "program": "python", "bytes": 5 * GIB, "job": ""}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (cards(4, given=4), []),
        (cards(0), []),
        (cards(3, given=4), [ERROR]),
        (cards(4, problems=[["GPU is lost", "reboot"]]), [ERROR]),
        (cards(0, library=False), [ERROR]),
        (cards(0, library=False, loaded=False), []),
        (cards(2, held=[HELD]), [WARNING]),
        (cards(2, held=[HELD | {"job": "3"}]), [WARNING]),
        (cards(2, held=[HELD | {"job": "7"}]), []),  # the present job's own
        (cards(2, used=[20 * GIB, 0]), [WARNING]),
        (cards(2, used=[0, 20 * GIB], held=[HELD | {"job": "7"}]), []),
        (cards(2, used=[-1, -1]), []),
    ],
)
def test_gpus(facts: dict[str, Any], expected: list[str]) -> None:
    assert severities(gpus.judge(facts, SITE)) == expected


def test_a_different_number_of_gpus_is_an_error() -> None:
    assert {trait.label: trait.severity for trait in gpus.traits(cards(4))}["the number of GPUs"] == ERROR


# -- folders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "severity"),
    [
        ({}, ""),
        ({"free": GIB - 1}, WARNING),
        ({"free": 1 << 20}, ERROR),
        ({"error": "Read-only file system"}, ERROR),
        ({"inodes": 3}, ERROR),
        ({"inodes": -1}, ""),
    ],
)
@pytest.mark.parametrize("name", ["tmp", "shm", "scratch"])
def test_room(name: str, changed: dict[str, Any], severity: str) -> None:
    place = {"path": "/x", "kind": "xfs", "total": 100 * GIB, "free": 50 * GIB, "inodes": 1_000_000, "error": ""}
    found = storage.judge(name)({"folders": [place | changed]}, SITE)
    assert severities(found) == ([severity] if severity else [])


MOUNTS = """\
1 0 0:30 / / rw - overlay none rw
2 1 0:31 / /home rw shared:2 - nfs4 server:/x rw
3 2 8:1 / /home/my\\040disk rw - ext4 dev rw
4 1 0:32 / /tmp rw - tmpfs tmpfs rw
5 1 8:1 /private /tmp rw - ext4 dev rw
"""


@pytest.mark.parametrize(
    ("path", "device", "kind"),
    [
        ("/tmp/a/b", "0:32", "tmpfs"),
        ("/tmp/a/b", "8:1", "ext4"),
        ("/home/me", "0:99", "nfs4"),
        ("/home/my disk/x", "0:99", "ext4"),
        ("/opt", "0:99", "overlay"),
    ],
)
def test_kind_of_file_system(path: str, device: str, kind: str) -> None:
    assert storage.kind_of(path, device, storage.read_mounts(MOUNTS)) == kind


def test_a_folder_that_is_not_there() -> None:
    facts = storage.folder("/does/not/exist", {})
    (finding,) = storage.judge("scratch")({"folders": [facts]}, SITE)
    assert "no such file or directory" in finding.seen and finding.severity == ERROR


# -- network ---------------------------------------------------------------------------------------------------------


def net(**changed: Any) -> dict[str, Any]:
    facts = {
        "interfaces": {"eth0": {"state": "up", "speed": 10_000, "mtu": 1500}},
        "addresses": [["10.0.0.1", "eth0", 16, 10_000]],
        "rdma": {},
        "name": "n1",
        "resolved": "10.0.0.1",
    }
    return facts | changed


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (net(), []),
        (net(addresses=[["127.0.0.1", "lo", 8, 0]]), [ERROR]),
        (net(resolved="127.0.1.1"), [NOTE]),
        (net(resolved=""), [NOTE]),
        (net(rdma={"mlx5_0:1": "4: ACTIVE", "mlx5_1:1": "1: DOWN"}), []),
        (net(rdma={"mlx5_0:1": "2: INIT"}), [WARNING]),
    ],
)
def test_network(facts: dict[str, Any], expected: list[str]) -> None:
    assert severities(network.judge(facts, SITE)) == expected


def test_cards_that_are_down_are_not_compared_by_speed() -> None:
    labels = {trait.label: trait.value for trait in network.traits(net())}
    down = {
        trait.label: trait.value for trait in network.traits(net(interfaces={"eth0": {"state": "down", "speed": 0, "mtu": 1500}}))
    }
    assert labels["interfaces that are up"] == "eth0" and labels["the speed of eth0"] == "10000 Mbit/s"
    assert down["interfaces that are up"] == "none" and "the speed of eth0" not in down


def test_cards_of_a_machine(tmp_path: Any) -> None:
    for name, state in {"ib0": "up", "eth0": "down", "lo": "unknown", "docker0": "down", "veth12": "up"}.items():
        folder = tmp_path / "sys/class/net" / name
        folder.mkdir(parents=True)
        (folder / "operstate").write_text(f"{state}\n")
        (folder / "mtu").write_text("4092\n")
    found = network.interfaces(str(tmp_path))
    assert found == {name: {"state": state, "speed": 0, "mtu": 4092} for name, state in (("eth0", "down"), ("ib0", "up"))}


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
