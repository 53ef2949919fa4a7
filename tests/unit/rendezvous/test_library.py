"""Which library mpi4py would load, on made-up trees of files; tests/mpi compares with what the real one loads."""

import os
import sys

import pytest

from slaunch.rendezvous.library import (
    INTEL,
    MPICH,
    OPENMPI,
    Library,
    by_loader,
    candidates,
    find_library,
    kind_of,
    suitable_library,
)

ELF = b"\x7fELF"


def make(path, content=ELF):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("libmpi.so.12", ELF, MPICH),
        ("libmpi.so.12.2.2", ELF, MPICH),
        ("libmpi.so.40.30.4", ELF, OPENMPI),
        ("libmpich.so.12", ELF, MPICH),
        ("libmpi_cray.so.12", ELF, MPICH),
        ("libmpi.so", ELF + b"...ompi_mpi_comm_self...", OPENMPI),
        ("libmpi.so", ELF + b"...MPICH Version...", MPICH),
        ("libmpi.so", ELF + b"...", ""),
        ("libmpi.so", b"INPUT(libmpi.so.12)\n", ""),  # a linker script, as in the wheels
    ],
)
def test_kinds_of_files(tmp_path, name, content, kind):
    assert kind_of(make(tmp_path / name, content)) == kind


def test_p63_intel_mpi_is_known_by_its_neighbour(tmp_path):
    make(tmp_path / "libmpi_ilp64.so")
    assert kind_of(make(tmp_path / "libmpi.so.12")) == INTEL


def test_links_are_followed(tmp_path):
    make(tmp_path / "libmpi.so.40.30.4")
    os.symlink("libmpi.so.40.30.4", tmp_path / "libmpi.so")
    assert kind_of(str(tmp_path / "libmpi.so")) == OPENMPI
    assert kind_of(str(tmp_path / "missing.so")) == ""


def test_the_virtual_environment_comes_before_the_loader(tmp_path, wheel, monkeypatch):
    monkeypatch.setattr(sys, "exec_prefix", str(tmp_path / "venv"))
    make(tmp_path / "venv/lib/libmpi.so.12")
    make(tmp_path / "site-libs/libmpi.so", ELF + b"ompi_mpi_comm_self")
    env = {"LD_LIBRARY_PATH": str(tmp_path / "site-libs")}
    assert find_library(env) == Library(MPICH, str(tmp_path / "venv/lib/libmpi.so.12"))
    os.remove(tmp_path / "venv/lib/libmpi.so.12")
    assert find_library(env) == Library(OPENMPI, str(tmp_path / "site-libs/libmpi.so"))


def test_mpi4pys_own_variables_come_first(tmp_path, wheel):
    ours = make(tmp_path / "ours/libmpi.so.40")
    assert find_library({"MPI4PY_LIBMPI": str(tmp_path / "ours")}) == Library(OPENMPI, ours)
    assert find_library({"MPI4PY_LIBMPI": ours}) == Library(OPENMPI, ours)
    assert find_library({"MPI4PY_LIBMPI": f"$NOWHERE/x:{ours}"}) == Library(OPENMPI, ours)
    assert find_library({"MPI4PY_LIBMPI": ours, "MPI4PY_MPIABI": "I-MPI"}) == Library(MPICH, "MPI4PY_MPIABI=I-MPI")


def test_an_mpi4py_built_for_one_library_has_it_in_its_module(tmp_path, wheel):
    module = make(wheel / "MPI.cpython-311-x86_64-linux-gnu.so", ELF + b"\0libmpi.so.40\0libc.so.6\0")
    assert find_library({"MPI4PY_MPIABI": "mpich"}) == Library(OPENMPI, module)


def test_no_library(tmp_path, wheel):
    found = find_library({"MPI4PY_LIBMPI": str(tmp_path / "nothing.so")})
    assert found == Library("", "mpi4py is installed, but no libmpi.so that it would load")


def test_no_mpi4py(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_library({}) == Library("", "mpi4py is not installed for this interpreter")


def test_the_loaders_cache_is_read(tmp_path):
    cache = tmp_path / "ld.so.cache"
    cache.write_bytes(b"glibc-ld.so.cache1.1\0libmpi.so.40\0/usr/lib/x/libmpi.so.40\0libz.so\0/usr/lib/libz.so\0")
    assert list(by_loader({}, str(cache))) == ["/usr/lib/x/libmpi.so.40"]
    assert list(by_loader({}, str(tmp_path / "none"))) == []


def test_the_order_of_names_is_mpi4pys(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "exec_prefix", "/venv")
    assert list(candidates({}))[:3] == ["/venv/lib/libmpi.so", "/venv/lib/libmpi.so.12", "/venv/lib/libmpi.so.40"]


def test_p53_the_first_that_suits_and_the_sites_own_first(tmp_path, wheel, monkeypatch):
    own, site = tmp_path / "own", tmp_path / "site-lib"
    for folder, name in ((own / "lib", "libmpi.so.12"), (site, "libmpi.so.12"), (site, "libmpi.so.40")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\x7fELF")
    monkeypatch.setattr(sys, "exec_prefix", str(own))
    env = {"LD_LIBRARY_PATH": str(site)}
    for kind, file in ((MPICH, "libmpi.so.12"), (OPENMPI, "libmpi.so.40")):
        assert suitable_library(env, lambda found, kind=kind: found.kind == kind) == Library(kind, str(site / file))
    assert suitable_library(env, lambda found: str(own) in found.where) == Library(MPICH, str(own / "lib" / "libmpi.so.12"))
    assert suitable_library(env, lambda found: False) is None


@pytest.mark.parametrize("chosen", [{"MPI4PY_LIBMPI": "/x/libmpi.so"}, {"MPI4PY_MPIABI": "mpich"}])
def test_a_user_who_has_chosen_the_library_is_heeded(wheel, chosen):
    assert suitable_library(chosen, lambda found: True) is None


def test_an_mpi4py_built_for_one_library_has_no_choice(wheel):
    (wheel / "MPI.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF libmpi.so.40")
    assert suitable_library({}, lambda found: True) is None
