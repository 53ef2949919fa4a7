"""What the user should know where workers share devices, or have several."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from slaunch.node.values import Device
from slaunch.options import Options

MPS = "CUDA_MPS_PIPE_DIRECTORY"
MPS_DEFAULT = "/tmp/nvidia-mps"  # noqa: S108 - NVIDIA's own default: CUDA MPS documentation, "Environment variables"


def sharing_notes(options: Options, devices: Sequence[Device], env: Mapping[str, str], root: str = "/") -> tuple[str, ...]:
    """Notes on the user's wish for several workers per device, or several devices per worker."""
    if not devices or (options.workers_per_device == 1 and not options.devices_per_worker):
        return ()
    index = "each worker sees its own devices only, counted from 0; --visible virtual is for scripts that index by LOCAL_RANK"
    return (*((index,) if options.visible != "virtual" else ()), *turns(options, devices, env, root))


def turns(options: Options, devices: Sequence[Device], env: Mapping[str, str], root: str) -> tuple[str, ...]:
    """Without MPS, processes on one NVIDIA GPU take turns."""
    pipe = os.path.join(root, env.get(MPS, MPS_DEFAULT).lstrip("/"), "control")
    if options.workers_per_device == 1 or devices[0].kind != "gpu" or os.path.exists(pipe):
        return ()
    workers = options.workers_per_device
    return (f"the {workers} workers of each GPU take turns on it: no MPS daemon runs (nvidia-cuda-mps-control -d)",)
