"""How a reader is found."""

import configparser
import subprocess
import sys
from pathlib import Path

import pytest
from support.recorded import processes

from slaunch.allocation.reader import Reader
from slaunch.allocation.select import BUILT_IN, MARKS, load, read, sightings
from slaunch.allocation.values import Task
from slaunch.errors import AllocationError, UsageError

ROOT = Path(__file__).parents[3]


def test_the_built_in_table_and_the_entry_points_agree():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["options.entry_points"]["slaunch.schedulers"].strip().splitlines()
    assert dict(tuple(part.strip() for part in line.split("=")) for line in lines) == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_readers_have_their_own_name(name):
    reader = load(name)
    assert reader.name == name
    assert reader.sight({}).reader == name
    assert all(variable in {v for marks in MARKS.values() for v in marks} for variable in reader.rank)


def test_only_what_is_needed_is_imported():
    """A plain machine loads the plain reader only, a Slurm task no other; both without the costly standard modules."""
    env = {name: value.replace("n[1-2]", "n1,n2") for name, value in processes("slurm_step")[0].env.items()}
    program = f"""
import sys
from slaunch.allocation.select import read
def loaded(): return {{name.rpartition(".")[2] for name in sys.modules if name.startswith("slaunch.allocation.")}}
read({{}}, host="h")
assert "plain" in loaded() and not loaded() & {set(BUILT_IN) - {"plain"}!r}, loaded()
read({env!r})
assert not loaded() & {set(BUILT_IN) - {"plain", "slurm"}!r}, loaded()
assert not {{"importlib.metadata", "dataclasses", "pathlib", "typing", "subprocess"}} & set(sys.modules)
"""
    argv = [sys.executable, "-S", "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """Another package with a reader "torque" and something that is none, on the path like an installed one."""
    (tmp_path / "other_readers.py").write_text(
        "from slaunch.allocation.reader import Reader\n"
        "from slaunch.allocation.values import Allocation, Sighting, Slot, Task\n"
        "def sight(env): return Sighting('torque', 0)\n"
        "def read(given): return Task(Allocation('torque', job=given.env['T']), Slot(0, 1, 0))\n"
        "READER = Reader('torque', (), sight, read)\n"
        "NONE = object()\n"
    )
    info = tmp_path / "other_readers-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-readers\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[slaunch.schedulers]\ntorque = other_readers:READER\nwrong = other_readers:NONE\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("other_readers", None)


@pytest.mark.usefixtures("other_package")
def test_a_reader_of_another_package_is_found_by_name():
    task = read({"T": "9"}, "torque")
    assert isinstance(task, Task)
    assert task.allocation.launcher == "torque"
    assert task.allocation.job == "9"


@pytest.mark.usefixtures("other_package")
def test_what_is_no_reader_is_refused():
    with pytest.raises(UsageError, match="other_readers:NONE is no reader"):
        read({}, "wrong")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="choose one of: auto, slurm, openmpi, hydra"):
        read({}, "sge")


def test_a_reader_by_name_reads_what_is_not_innermost():
    env = processes("openmpi4_in_step")[1].env
    assert read(env).allocation.launcher == "openmpi"
    outer = read(env, "slurm")
    assert isinstance(outer, Task)
    assert (outer.slot.rank, outer.slot.size) == (0, 1)
    assert read(env, "plain").allocation.launcher == "plain"


def test_sightings_are_all_told_deepest_first():
    seen = sightings(processes("mpich_in_salloc")[0].env)
    assert [(one.reader, one.depth) for one in seen] == [("hydra", 30), ("slurm", 20), ("plain", 0)]
    assert {evidence.variable for evidence in seen[0].evidence} == {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}


def test_two_batch_systems_at_once_are_a_tie():
    env = {**processes("slurm_batch")[0].env, **processes("documented/pbs_batch")[0].env}
    with pytest.raises(AllocationError, match="--scheduler slurm or --scheduler pbs"):
        read(env)


def test_a_host_file_or_a_flux_socket_is_outweighed_by_any_job():
    hints = {"SLAUNCH_HOSTFILE": "h", "FLUX_URI": "local:///tmp/x"}
    assert read({**processes("slurm_batch")[0].env, **hints}).allocation.launcher == "slurm"
    with pytest.raises(AllocationError, match="flux run -N NODES"):
        read({"FLUX_URI": "local:///tmp/x"})


def test_readers_are_values():
    assert isinstance(load("plain"), Reader)
    with pytest.raises(AttributeError):
        load("plain").name = "x"  # type: ignore[misc]
