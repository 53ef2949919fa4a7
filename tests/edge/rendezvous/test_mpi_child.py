"""The process that is an MPI process in the agent's place. A stand-in for mpi4py shows what it has of the agent."""

import json
import subprocess
import sys
from pathlib import Path

PACKAGE = """
class rc: pass
"""

MPI = """
import json, os, sys
if "NO_MPI" in os.environ:
    raise ImportError("libmpi.so: no such file")
class COMM_WORLD:
    size = 1
def Get_library_version():
    print("this is not a frame", flush=True)
    def is_open(number):
        try: return os.path.samestat(os.fstat(number), os.stat(os.devnull))
        except OSError: return False
    settings = {name: value for name, value in os.environ.items() if name.startswith(("UCX", "ONLY"))}
    return json.dumps([*map(is_open, map(int, os.environ["HANDLES"].split(","))), settings])
def Finalize(): pass
"""

AGENT = """
import os, sys, time
from slaunch.rendezvous.gatherer import UnusableError
from slaunch.rendezvous.mpi import Child
kept, own = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
os.set_inheritable(kept, True)
env = {"PATH": "/usr/bin", "HANDLES": f"{kept},{own}", "ONLY_FOR_IT": "1", **dict(word.split("=") for word in sys.argv[1:])}
child = Child(env, 60)
try:
    print(child.read(time.monotonic() + 50).decode().partition(" ")[2])
    child.end()
    print(child._status, "ONLY_FOR_IT" in os.environ)
except UnusableError as error:
    print(error)
"""


def agent(tmp_path: Path, *settings: str) -> list[str]:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "mpi4py" / "MPI.py").write_text(MPI)
    root = Path(__file__).resolve().parents[3]
    env = {"PYTHONPATH": f"{tmp_path}:{root}", "ONLY_THE_AGENT_S": "1"}
    argv = [sys.executable, "-S", "-c", AGENT, *settings]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_it_has_what_an_executed_program_would_have(tmp_path: Path) -> None:
    said, end = agent(tmp_path)
    assert json.loads(said) == [True, False, {"ONLY_FOR_IT": "1", "UCX_MEM_MMAP_HOOK_MODE": "none"}]
    assert end == "0 False"


def test_the_user_s_settings_win(tmp_path: Path) -> None:
    said, _ = agent(tmp_path, "UCX_MEM_MMAP_HOOK_MODE=bistro")
    assert json.loads(said)[2]["UCX_MEM_MMAP_HOOK_MODE"] == "bistro"


def test_its_last_words_are_told(tmp_path: Path) -> None:
    said = agent(tmp_path, "NO_MPI=1")
    assert said[0] == "the process that called MPI_Init ended with code 1; it said:"
    assert said[-1].strip() == "ImportError: libmpi.so: no such file"
