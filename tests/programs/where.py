"""Say where this process stands, as one line of JSON; from a shell, start a step of itself with the arguments as srun's."""

import json
import os
import socket
import sys

from slaunch.allocation.mpirun import Launcher, mpirun_call
from slaunch.allocation.select import read
from slaunch.allocation.values import Shell
from slaunch.errors import SlaunchError
from slaunch.slurm.start import start_call

env = dict(os.environ)
me = (sys.executable, os.path.abspath(__file__))
try:
    standing = read(env, host=socket.gethostname())
    if isinstance(standing, Shell) and "MPIRUN" in env:
        call = mpirun_call(Launcher(env["MPIRUN"], env["MPIRUN_KIND"]), standing, env, me, sys.argv[1:])
    elif isinstance(standing, Shell):
        call = start_call(standing, env, me, sys.argv[1:])
    else:
        call = None
except SlaunchError as error:
    sys.exit(str(error))
if call:
    os.execvpe(call.argv[0], call.argv, dict(call.env))
allocation, slot = standing.allocation, standing.slot
print(
    json.dumps(
        {
            "host": socket.gethostname(),
            "launcher": allocation.launcher,
            "nodes": allocation.nodes,
            "root": allocation.root,
            "place": (slot.rank, slot.size, slot.local_rank, slot.node),
            "gpus": len([gpu for gpu in env.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]),
            "cpus": env.get("SLURM_CPUS_ON_NODE"),
            "bound": len(os.sched_getaffinity(0)),
            "path": env.get("PATH", ""),
            "warnings": allocation.warnings,
        }
    ),
    flush=True,
)
