"""Cray PALS: the layout file."""

import ctypes

import pytest
from support.recorded import files, processes

from slaunch.allocation.apinfo import parse
from slaunch.allocation.select import read
from slaunch.errors import AllocationError

PATH = "/var/run/palsd/0f4a3c9e/apinfo"
c_int, c_size, c_char = ctypes.c_int, ctypes.c_size_t, ctypes.c_char


class Header(ctypes.Structure):
    """As in Slurm's src/plugins/mpi/cray_shasta/apinfo.c, in the compiler's own layout."""

    _fields_ = [
        ("version", c_int),
        ("total_size", c_size),
        *[
            field
            for table in ("comm_profile", "cmd", "pe", "node", "nic")
            for field in ((f"{table}_size", c_size), (f"{table}_offset", c_size), (f"n{table}s", c_int))
        ],
    ]


class Process(ctypes.Structure):
    _fields_ = [("localidx", c_int), ("cmdidx", c_int), ("nodeidx", c_int)]


class Node(ctypes.Structure):
    _fields_ = [("nid", c_int), ("hostname", c_char * 64)]


class Command(ctypes.Structure):
    _fields_ = [("npes", c_int), ("pes_per_node", c_int), ("cpus_per_pe", c_int)]


def written(places, hosts):
    """The file as C writes it, as text."""
    tables = {
        "cmd": [Command(len(places), 2, 1)],
        "pe": [Process(local, 0, node) for node, local in places],
        "node": [Node(i, host.encode()) for i, host in enumerate(hosts)],
    }
    header = Header(version=1)
    at = ctypes.sizeof(Header)
    for name, kind in (("comm_profile", Command), ("cmd", Command), ("pe", Process), ("node", Node), ("nic", Command)):
        entries = tables.get(name, [])
        setattr(header, f"{name}_size", ctypes.sizeof(kind))
        setattr(header, f"{name}_offset", at)
        setattr(header, f"n{name}s", len(entries))
        at += ctypes.sizeof(kind) * len(entries)
    header.total_size = at
    data = bytes(header) + b"".join(bytes(entry) for name in ("cmd", "pe", "node") for entry in tables[name])
    return data.decode("utf-8", "surrogateescape")


LAYOUT = written([(0, 0), (0, 1), (1, 0), (1, 1)], ["x30", "x31"])


def test_p68_pals_without_slurm_and_without_a_size():
    layout = files({PATH: LAYOUT})
    found = [read(process.env, host=process.host, read_text=layout) for process in processes("documented/pals_pmix")]
    assert [(task.slot.rank, task.slot.size, task.slot.local_rank, task.slot.node) for task in found] == [
        (0, 4, 0, 0),
        (1, 4, 1, 0),
        (2, 4, 0, 1),
        (3, 4, 1, 1),
    ]
    assert {task.allocation.nodes for task in found} == {("x30", "x31")}
    assert {task.allocation.tasks_per_node for task in found} == {(2, 2)}
    assert {task.allocation.root for task in found} == {"x30"}
    assert {task.allocation.job for task in found} == {"2187459.pbs-01.example.org"}


def test_layouts_of_many_sizes():
    places = [(rank % 300, rank // 300) for rank in range(1200)]
    hosts = tuple(f"x1000c{i}s0b0n0" for i in range(300))
    layout = parse(written(places, hosts), PATH)
    assert (layout.hosts, layout.places, layout.counts) == (hosts, tuple(places), (4,) * 300)


@pytest.mark.parametrize("text", ["", "garbage", LAYOUT[:150], written([(2, 0)], ["x30"]), written([], ["x30"])])
def test_a_file_of_another_kind_is_refused_or_not_needed(text):
    env = processes("documented/pals_pmix")[1].env
    with pytest.raises(AllocationError, match=PATH):
        read(env, read_text=files({PATH: text}))
    task = read({**env, "PMI_SIZE": "4"}, read_text=files({PATH: text}))
    assert (task.slot.rank, task.slot.size, task.allocation.nodes) == (1, 4, ())


@pytest.mark.parametrize("changes", [{"PALS_RANKID": "4"}, {"PMI_SIZE": "5"}, {"PALS_LOCAL_RANKID": "0"}, {"PALS_NODEID": "1"}])
def test_variables_that_contradict_the_file(changes):
    env = {**processes("documented/pals_pmix")[1].env, **changes}
    with pytest.raises(AllocationError, match=next(iter(changes))):
        read(env, read_text=files({PATH: LAYOUT}))
