"""A module path on which mpi4py is a wheel's folder, whatever is installed for the interpreter of the tests."""

import pytest


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """mpi4py as its wheels are laid out: an extension module for each ABI."""
    folder = tmp_path / "site" / "mpi4py"
    folder.mkdir(parents=True)
    for abi in ("mpich", "openmpi"):
        (folder / f"MPI.{abi}.cpython-311-x86_64-linux-gnu.so").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    return folder
