"""The MPI library that slaunch expects mpi4py to load is the one that it loads."""

import os
import subprocess
import sys

import pytest
from support.cluster import CHECKOUT
from support.jobs import MPICH, OPENMPI4, OPENMPI5, interpreter

ASK = """
import os, sys
from slaunch.rendezvous.library import find_library
print(find_library(os.environ).kind)
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version())
"""


@pytest.mark.parametrize("venv", [MPICH, OPENMPI5, OPENMPI4])
@pytest.mark.parametrize(
    "setting",
    [
        "",
        "MPI4PY_LIBMPI=libmpi.so.40",
        "MPI4PY_LIBMPI=/usr/lib/x86_64-linux-gnu",
        f"MPI4PY_LIBMPI={sys.prefix}/lib/libmpi.so.12",
        "MPI4PY_MPIABI=openmpi",
    ],
)
def test_p53_the_library_that_mpi4py_loads(venv: str, setting: str) -> None:
    env = {"PATH": os.environ["PATH"]} | (dict([setting.split("=")]) if setting else {})
    done = subprocess.run([interpreter(venv), "-c", ASK], cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=30)
    expected, loaded = done.stdout.split("\n", 1)
    assert expected and expected in loaded, done.stderr
