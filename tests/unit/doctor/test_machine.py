"""GPUs, folders and networks of a machine."""

from __future__ import annotations

from typing import Any

import pytest

from slaunch.doctor.checks import gpus, network, storage
from slaunch.doctor.values import ERROR, NOTE, WARNING

from .sites import SITE, severities

GIB = 1 << 30
HELD = {"device": 1, "pid": 99, "program": "python", "bytes": 5 * GIB, "job": ""}
MOUNTS = """\
1 0 0:30 / / rw - overlay none rw
2 1 0:31 / /home rw shared:2 - nfs4 server:/x rw
3 2 8:1 / /home/my\\040disk rw - ext4 dev rw
4 1 0:32 / /tmp rw - tmpfs tmpfs rw
5 1 8:1 /private /tmp rw - ext4 dev rw
"""


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
