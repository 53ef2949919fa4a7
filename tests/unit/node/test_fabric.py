"""Network cards near devices, on the sysfs of recorded machines."""

from __future__ import annotations

import copy

import pytest
from support import fabrics

from slaunch.node.fabric import read_nics, speed_mbps
from slaunch.node.values import Device

FABRICS = fabrics.load()


def seen(tmp_path, machine):
    fabrics.write_sysfs(machine, str(tmp_path))
    return read_nics(fabrics.devices(machine), str(tmp_path))


def near(nics):
    return {nic.name: nic.near for nic in nics if nic.near}


def changed(name, card, **fields):
    """A recorded machine with another state of one card."""
    machine = copy.deepcopy(FABRICS[name])
    next(row for row in machine["cards"] if row["name"] == card).update(fields)
    return machine


def test_each_h100_has_the_card_below_its_own_switch_and_storage_cards_have_none(tmp_path):
    nics = seen(tmp_path, FABRICS["dgx-h100"])
    assert near(nics) == {f"mlx5_{card}:1": (gpu,) for gpu, card in enumerate((0, 3, 4, 5, 6, 9, 10, 11))}
    assert [nic.name for nic in nics if not nic.near] == ["mlx5_1:1", "mlx5_2:1", "mlx5_7:1", "mlx5_8:1"]
    assert {nic.kind for nic in nics} == {"infiniband", "roce"}
    assert [nic.numa for nic in nics] == [0] * 6 + [1] * 6


def test_two_mi250x_dies_share_a_card(tmp_path):
    nics = seen(tmp_path, FABRICS["mi250x"])
    assert near(nics) == {"hsn0": (0, 1), "hsn1": (2, 3), "hsn2": (4, 5), "hsn3": (6, 7)}
    assert {(nic.kind, nic.speed_mbps) for nic in nics} == {("slingshot", 200000)}


def test_without_a_common_host_bridge_the_numa_node_counts(tmp_path):
    assert near(seen(tmp_path, FABRICS["xeon"])) == {"mlx5_0:1": (0, 1), "mlx5_2:1": (2, 3)}


def test_a_virtual_machine_shows_all_cards_equally_far(tmp_path):
    assert near(seen(tmp_path, FABRICS["h200-vm"])) == dict.fromkeys(("mlx5_0:1", "mlx5_1:1", "mlx5_2:1"), (0, 1, 2))


def test_devices_without_any_card_near_are_equally_far_from_all(tmp_path):
    machine = copy.deepcopy(FABRICS["xeon"])
    machine["cards"] = [*machine["cards"][:1], changed("xeon", "mlx5_1", state="4: ACTIVE")["cards"][1]]
    assert near(seen(tmp_path, machine)) == dict.fromkeys(("mlx5_0:1", "mlx5_1:1"), (0, 1, 2, 3))


@pytest.mark.parametrize(
    "fields", [{"state": "1: DOWN"}, {"state": "2: INIT"}, {"kind": "Unspecified"}], ids=["down", "no subnet manager", "efa"]
)
def test_cards_that_cannot_be_used_are_not_there(tmp_path, fields):
    names = [nic.name for nic in seen(tmp_path, changed("h200", "mlx5_1", **fields))]
    assert names == ["mlx5_0:1", "mlx5_2:1"]


def test_slow_cards_are_near_nobody(tmp_path):
    nics = seen(tmp_path, changed("h200", "mlx5_1", speed=25000))
    assert near(nics) == {"mlx5_0:1": (0, 1), "mlx5_2:1": (1, 2)}


def test_infiniband_comes_before_ethernet_of_the_same_speed(tmp_path):
    assert near(seen(tmp_path, changed("xeon", "mlx5_2", kind="roce"))) == {"mlx5_0:1": (0, 1, 2, 3)}


def test_a_virtual_function_beside_its_card_is_the_same_wire(tmp_path):
    machine = copy.deepcopy(FABRICS["h200"])
    function = dict(machine["cards"][0], name="mlx5_9", way=machine["cards"][0]["way"].replace("19:00.0", "19:00.2"))
    machine["cards"].append(function)
    fabrics.write_sysfs(machine, str(tmp_path))
    fabrics.link(
        f"{tmp_path}/sys/devices/{function['way']}/physfn", f"{tmp_path}/sys/devices/{machine['cards'][0]['way']}"
    )
    assert [nic.name for nic in read_nics(fabrics.devices(machine), str(tmp_path))] == ["mlx5_0:1", "mlx5_1:1", "mlx5_2:1"]


def test_slingshot_on_mellanox_cards_is_known_by_its_rdma_device(tmp_path):
    machine = copy.deepcopy(FABRICS["mi250x"])
    machine["cards"] += [dict(row, name=f"mlx5_{at}", kind="roce") for at, row in enumerate(machine["cards"])]
    assert list(near(seen(tmp_path, machine))) == ["mlx5_0:1", "mlx5_1:1", "mlx5_2:1", "mlx5_3:1"]


def test_software_rdma_is_no_card(tmp_path):
    fabrics.write_sysfs(FABRICS["h200"], str(tmp_path))
    fabrics.write(f"{tmp_path}/sys/devices/virtual/infiniband/rxe0/ports/1/state", "4: ACTIVE")
    fabrics.link(f"{tmp_path}/sys/class/infiniband/rxe0", f"{tmp_path}/sys/devices/virtual/infiniband/rxe0")
    assert "rxe0:1" not in [nic.name for nic in read_nics(fabrics.devices(FABRICS["h200"]), str(tmp_path))]


def test_without_devices_that_have_a_place_nothing_is_looked_for(tmp_path):
    fabrics.write_sysfs(FABRICS["dgx-h100"], str(tmp_path))
    assert read_nics((), str(tmp_path)) == ()
    assert read_nics((Device("gpu", 0, "0"),), str(tmp_path)) == ()


def test_a_machine_without_cards(tmp_path):
    assert read_nics(fabrics.devices(FABRICS["h200"]), str(tmp_path)) == ()


@pytest.mark.parametrize(("text", "speed"), [("400 Gb/sec (4X NDR)", 400000), ("2.5 Gb/sec (1X SDR)", 2500), ("", 0), ("x", 0)])
def test_rates(text, speed):
    assert speed_mbps(text) == speed
