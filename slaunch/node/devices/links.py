"""Direct links between devices: NVLink, as NVML tells, and xGMI, from KFD's topology. For maps; nothing is decided by them.

Source: NVML API reference, "NvLink Methods"; the kernel's include/uapi/linux/kfd_sysfs.h (a link of type 11 is xGMI).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slaunch.node.devices.amd import NODES, pci_address
from slaunch.node.devices.nvml import installed, short_pci
from slaunch.node.devices.values import View
from slaunch.node.files import names, read_text
from slaunch.node.values import Device

XGMI = "11"
SWITCH = "switch"

Links = Mapping[str, Mapping[str, int]]
"""Number of links of each device, by its PCI address and that of its partner, or `SWITCH`."""


def read_links(devices: Sequence[Device], root: str = "/") -> Links:
    """Links of these devices; {} where their kind has none or nothing tells."""
    view = View({}, root)
    known = {device.pci for device in devices if device.pci}
    if devices and devices[0].kind == "rocm":
        found = dict(xgmi(view))
    elif devices and devices[0].kind == "gpu" and installed():
        found = dict(nvlinks(devices))
    else:
        return {}
    return {pci: partners(found[pci], known) for pci in known if found.get(pci)}


def partners(found: Sequence[str], known: set[str]) -> Mapping[str, int]:
    """How many links lead to each device; those that lead elsewhere lead to a switch."""
    return Counter(pci if pci in known else SWITCH for pci in found)


def nvlinks(devices: Sequence[Device]) -> Iterator[tuple[str, list[str]]]:
    """Partners of each GPU, once for each active link."""
    import pynvml  # type: ignore[import-untyped]

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return
    for device in devices:
        try:
            handle = pynvml.nvmlDeviceGetHandleByPciBusId(device.pci)
        except pynvml.NVMLError:
            continue
        yield device.pci, [far for link in range(pynvml.NVML_NVLINK_MAX_LINKS) if (far := far_end(pynvml, handle, link))]
    pynvml.nvmlShutdown()


def far_end(nvml: Any, handle: Any, link: int) -> str:
    """PCI address at the other end of a link; "" if the link is not active, or there is none of that number."""
    try:
        if not nvml.nvmlDeviceGetNvLinkState(handle, link):
            return ""
        return short_pci(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId)
    except nvml.NVMLError:
        return ""


def xgmi(view: View) -> Iterator[tuple[str, list[str]]]:
    """Partners of each GPU, once for each link."""
    addresses: dict[str, str] = {}
    ends: dict[str, list[str]] = {}
    for node in names(view.path(NODES)):
        fields = fields_of(view.path(NODES, node, "properties"))
        if int(fields.get("simd_count", 0)):
            addresses[node] = pci_address(int(fields.get("domain", 0)), int(fields.get("location_id", 0)))
        folder = view.path(NODES, node, "io_links")
        links = (fields_of(f"{folder}/{link}/properties") for link in names(folder))
        ends[node] = [link.get("node_to", "") for link in links if link.get("type") == XGMI]
    for node, pci in addresses.items():
        yield pci, [addresses[far] for far in ends[node] if far in addresses]


def fields_of(path: str) -> dict[str, str]:
    """A properties file of KFD."""
    return dict(line.split(maxsplit=1) for line in read_text(path).splitlines() if " " in line)
