"""Which MPI library mpi4py would load in this interpreter, found by looking at files: no import, no MPI_Init.

mpi4py's wheels (from 4.1) carry one extension module for each MPI ABI, and at import look for a library in this order: the ABI
that `MPI4PY_MPIABI` names; the files that `MPI4PY_LIBMPI` names; `libmpi.so`, `libmpi.so.12` (MPICH and its kin), `libmpi.so.40`
(Open MPI) in the `lib` folder of the virtual environment, of the user's site, of the interpreter, and then wherever the loader
finds them (`mpi4py/_mpiabi.py`). An mpi4py that was built for one library has it among the names in its extension module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from slaunch.frozen import dataclass

MPICH, INTEL, OPENMPI = "MPICH", "Intel MPI", "Open MPI"
NAMES = ("libmpi.so", "libmpi.so.12", "libmpi.so.40")
MARK = {b"ompi_mpi_comm_self": OPENMPI, b"MPICH": MPICH}
NEEDED = {
    b"libmpi.so.40": OPENMPI,
    b"libmpi.so.20": OPENMPI,
    b"libmpi.so.12": MPICH,
    b"libmpich.so": MPICH,
    b"libmpi_cray": MPICH,
}


@dataclass(frozen=True)
class Library:
    """An MPI library.

    Attributes:
        kind: `MPICH` (also Cray MPICH and MVAPICH), `INTEL` or `OPENMPI`; "" if there is none, or none that we know.
        where: what told us: a file, a variable; if there is none, why.
    """

    kind: str
    where: str


def find_library(env: Mapping[str, str]) -> Library:
    """The library of this interpreter's mpi4py."""
    folder = package_folder()
    if not folder:
        return Library("", "mpi4py is not installed for this interpreter")
    if fixed := built_for(folder):
        return Library(first_mark(fixed, NEEDED), fixed)
    if env.get("MPI4PY_MPIABI"):
        word = env["MPI4PY_MPIABI"].translate({ord(each): None for each in " -_"}).lower()
        return Library({"mpich": MPICH, "impi": MPICH, "openmpi": OPENMPI}.get(word, ""), f"MPI4PY_MPIABI={env['MPI4PY_MPIABI']}")
    for path in candidates(env):
        kind = kind_of(path)
        if kind:
            return Library(kind, path)
    return Library("", "mpi4py is installed, but no libmpi.so that it would load")


def suitable_library(env: Mapping[str, str], suits: Callable[[Library], bool]) -> Library | None:
    """The first library that suits, of those that mpi4py could be told to load; the site's own come before a Python package's.

    None where there is nothing to choose: no mpi4py, one that was built for its library, or a user who has chosen.
    """
    folder = package_folder()
    if not folder or env.get("MPI4PY_MPIABI") or env.get("MPI4PY_LIBMPI") or built_for(folder):
        return None
    packages = [os.path.join(prefix, "lib") for prefix in prefixes()]
    for path in (*in_folders(loaded_from(env)), *by_loader(env), *in_folders(packages)):
        found = Library(kind_of(path), path)
        if found.kind and suits(found):
            return found
    return None


def built_for(folder: str) -> str:
    """The extension module of an mpi4py that was built for one library; "" if it is a wheel for all of them."""
    fixed = [name for name in sorted(os.listdir(folder)) if name.startswith("MPI.cpython-") or name == "MPI.abi3.so"]
    return os.path.join(folder, fixed[0]) if fixed else ""


def package_folder() -> str:
    """Folder of mpi4py on the module path; "" if it is not there."""
    return next((path for path in (os.path.join(entry or ".", "mpi4py") for entry in sys.path) if os.path.isdir(path)), "")


def candidates(env: Mapping[str, str]) -> Iterator[str]:
    """Files that mpi4py would try, in its order."""
    if env.get("MPI4PY_LIBMPI"):
        for word in env["MPI4PY_LIBMPI"].split(os.pathsep):
            entry = os.path.expanduser(os.path.expandvars(word))
            if os.path.isdir(entry):
                yield from in_folders([entry])
            elif "/" in entry:
                yield entry
            else:
                yield from by_loader(env, names=(entry,))
        return
    yield from in_folders(os.path.join(folder, "lib") for folder in prefixes())
    yield from by_loader(env)


def prefixes() -> Iterator[str]:
    """Where Python packages put libraries: virtual environment, user's site, interpreter (unless that is the system's)."""
    site = sys.modules.get("site")
    if sys.exec_prefix != sys.base_exec_prefix:
        yield sys.exec_prefix
    if site and getattr(site, "ENABLE_USER_SITE", False):
        yield os.path.abspath(site.USER_BASE)
    if site and sys.base_exec_prefix in getattr(site, "PREFIXES", ()) and sys.base_exec_prefix != "/usr":
        yield sys.base_exec_prefix


def in_folders(folders: Iterable[str]) -> Iterator[str]:
    """The names in each of these folders."""
    yield from (os.path.join(folder, name) for folder in folders for name in NAMES)


def loaded_from(env: Mapping[str, str]) -> list[str]:
    """The folders of LD_LIBRARY_PATH, where `module load` puts a site's MPI."""
    return [folder for folder in env.get("LD_LIBRARY_PATH", "").split(":") if folder]


def by_loader(env: Mapping[str, str], cache: str = "/etc/ld.so.cache", names: tuple[str, ...] = NAMES) -> Iterator[str]:
    """Where the dynamic loader finds the names (ld.so(8)): LD_LIBRARY_PATH, then its cache."""
    folders = loaded_from(env)
    try:
        with open(cache, "rb") as file:
            cached = file.read()
    except OSError:
        cached = b""
    for name in names:
        yield from (os.path.join(folder, name) for folder in folders)
        end = cached.find(f"/{name}\0".encode())
        if end >= 0:
            start = cached.rfind(b"\0", 0, end) + 1
            yield cached[start:end].decode("utf-8", "replace") + f"/{name}"


def kind_of(path: str) -> str:
    """Kind of a library file; "" if it is not there, or a linker script, or unknown."""
    try:
        real = os.path.basename(os.path.realpath(path))
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return ""
    except OSError:
        return ""
    if real.startswith(("libmpi.so.40", "libmpi.so.20")):
        return OPENMPI
    if os.path.exists(os.path.join(os.path.dirname(path), "libmpi_ilp64.so")):  # beside it in Intel MPI only
        return INTEL
    return MPICH if real.startswith(("libmpi.so.12", "libmpich.so", "libmpi_cray.so")) else first_mark(path, MARK)


def first_mark(path: str, marks: Mapping[bytes, str]) -> str:
    """What the first of these marks that occurs in a file stands for."""
    import mmap

    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return next((kind for mark, kind in marks.items() if content.find(mark) >= 0), "")
