"""Direct links between devices: through the real pynvml against recorded drivers, and from recorded sysfs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support import maps
from support.nvml import library

from slaunch.node.devices.links import read_links
from slaunch.node.values import Device
from slaunch.report.bindmap import map_json, map_text

PCI = ("0000:07:00.0", "0000:0f:00.0", "0000:47:00.0")
GPUS = tuple(Device("gpu", at, str(at), pci=pci) for at, pci in enumerate(PCI))
READ = """
import json, sys
from slaunch.node.devices.links import read_links
from slaunch.node.values import Device
links = read_links(tuple(Device("gpu", at, str(at), pci=pci) for at, pci in enumerate(sys.argv[1:])))
print(json.dumps(links))
"""


def nvlinks(tmp_path: Path, *ends: str) -> dict[str, dict[str, int]]:
    """What a driver tells whose GPUs have these links, one text for each GPU."""
    gpus = zip(PCI, ends, strict=True)
    lines = [f"gpu GPU-{pci} 0000{pci.upper()} 85899345920 0 0 0 0 NVIDIA A100\n{links}" for pci, links in gpus]
    (tmp_path / "recording").write_text("driver 535.161.08\n" + "\n".join(lines) + "\n")
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": library().name, "NVML_RECORDING": str(tmp_path / "recording")}
    told = subprocess.run([sys.executable, "-c", READ, *PCI], env=env, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, dict[str, int]] = json.loads(told.stdout)
    return found


def test_f154_nvlinks_between_gpus(tmp_path: Path) -> None:
    both = "nvlink 00000000:0F:00.0 4\nnvlink 00000000:47:00.0 4"
    found = nvlinks(tmp_path, both, "nvlink 00000000:07:00.0 4", "nvlink 00000000:07:00.0 4")
    assert found == {PCI[0]: {PCI[1]: 4, PCI[2]: 4}, PCI[1]: {PCI[0]: 4}, PCI[2]: {PCI[0]: 4}}


def test_f154_nvlinks_to_a_switch(tmp_path: Path) -> None:
    assert nvlinks(tmp_path, "nvlink 00000000:C4:00.0 9\nnvlink 00000000:C5:00.0 9", "", "") == {PCI[0]: {"switch": 18}}


def test_gpus_without_links(tmp_path: Path) -> None:
    assert nvlinks(tmp_path, "", "", "") == {}


def test_f154_xgmi_between_dies(tmp_path: Path) -> None:
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    for node, bus in ((0, 0), (4, 0xC1), (5, 0xC6)):
        (nodes / f"{node}/io_links/0").mkdir(parents=True)
        (nodes / f"{node}/io_links/1").mkdir()
        (nodes / f"{node}/properties").write_text(f"simd_count {440 if bus else 0}\ndomain 0\nlocation_id {bus << 8}\n")
        (nodes / f"{node}/io_links/0/properties").write_text("type 2\nnode_to 0\n")
        (nodes / f"{node}/io_links/1/properties").write_text(f"type 11\nnode_to {5 if node == 4 else 4}\n")
    dies = tuple(Device("rocm", at, str(at), pci=f"0000:{bus}:00.0") for at, bus in enumerate(("c1", "c6")))
    assert read_links(dies, str(tmp_path)) == {dies[0].pci: {dies[1].pci: 1}, dies[1].pci: {dies[0].pci: 1}}


def test_other_kinds_have_none(tmp_path: Path) -> None:
    assert read_links((), str(tmp_path)) == read_links((Device("npu", 0, "0"),), str(tmp_path)) == {}


def test_f154_links_are_on_the_map_of_this_machine() -> None:
    plan, membership = maps.planned("xeon-two-each")
    first, second = (device.pci for device in membership.facts[0].devices[:2])
    links = {first: {second: 2}, second: {first: 2, "switch": 6}}
    assert f"gpu 1  {second}  rank 0  links: 2 to gpu 0, 6 to switch" in map_text(plan, membership, links)
    (node,) = json.loads(map_json(plan, membership, links))["nodes"]
    assert [device["links"] for device in node["packages"][0]["numa"][0]["devices"]] == [{"gpu 1": 2}, {"gpu 0": 2, "switch": 6}]
