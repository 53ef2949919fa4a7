"""Facts of imagined tasks, complete and consistent."""

from __future__ import annotations

from slaunch.frozen import replace
from slaunch.node.values import Address, Device, NodeFacts

GIB = 1 << 30


def gpu(position: int, host: int = 0) -> Device:
    uuid = f"GPU-8932f937-d72c-4106-{host:04x}-20bd9faed9{position:02x}"
    return Device("gpu", position, str(position), uuid, f"0000:{position:02x}:00.0", position // 4, 80 * GIB, "NVIDIA H100")


def facts(host: int = 0, gpus: int = 8, **changes: object) -> NodeFacts:
    """A node like those of many clusters: 64 cores with two threads, 8 GPUs, two networks."""
    made = NodeFacts(
        host=f"node{host:05}",
        machine=f"{host:032x}",
        addresses=(
            Address(f"10.1.{host // 250}.{host % 250 + 1}", "ib0", 16, 200_000),
            Address(f"10.2.{host // 250}.{host % 250 + 1}", "eth0", 16, 10_000),
        ),
        cpus=tuple(range(128)),
        cores=tuple((core, core + 64) for core in range(64)),
        devices=tuple(gpu(position, host) for position in range(gpus)),
        visible="CUDA_VISIBLE_DEVICES",
        workers=gpus or 1,
        ports=tuple(20_000 + (host * 7919 + index * 101) % 12_000 for index in range(gpus + 4)),
        control_port=0,
        pid=1000 + host,
        python="/opt/venv/bin/python",
        versions="slaunch 1.0, python 3.11.7",
        program_digest="0123456789abcdef",
        time_s=1_800_000_000.0,
        numa=tuple(core // 32 for core in range(64)),
        caches=tuple(core // 8 * 8 for core in range(64)),
        online=128,
    )
    return replace(made, **changes)
