"""MPI: the library that mpi4py loads, the interface by which srun's tasks find each other, and whether the two fit.

Facts:
    kind, where: the library, as `rendezvous.library` finds it.
    loaded: what the library says of itself when loaded; "" if it was not tried.
    fault: why it does not load.
    step: this is a task of Slurm.
    interface, evidence: the process manager interface.
    default: srun's default as far as variables tell; "".
    offered: plug-ins of `srun --mpi=list`, those for most sites first.
    mpirun: its flavour; "" if there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import NOTE, WARNING, Check, Facts, Finding, Request, Trait
from slaunch.errors import SlaunchError
from slaunch.rendezvous.library import INTEL, MPICH, OPENMPI, Library, find_library
from slaunch.rendezvous.pmi import NONE, PALS, PMI2, PMIX, Interface, fits, read_interface
from slaunch.slurm.client import ask
from slaunch.slurm.start import find

NAME = "mpi"
LIMIT_S = 4.0
OWN = "slaunch itself meets without MPI then"
GIVES = {"pmix": PMIX, "pmi2": PMI2, "cray_shasta": PALS, "none": NONE, "openmpi": NONE}
"""The interface that each of srun's plug-ins gives, without the version in its name."""
RUNS = {"openmpi": (OPENMPI,), "hydra": (MPICH, INTEL), "intelmpi": (INTEL, MPICH), "pals": (MPICH,)}
"""Libraries whose processes each mpirun can start."""


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Look at files and variables, and ask srun and mpirun; load the library unless in a hurry."""
    library = find_library(env)
    interface = read_interface(env)
    loaded, fault = load() if library.kind and not request.quick else ("", "")
    return {
        "kind": library.kind,
        "where": library.where,
        "loaded": loaded,
        "fault": fault,
        "step": "SLURM_STEP_ID" in env,
        "interface": interface.kind,
        "evidence": interface.evidence,
        "default": env.get("SLURM_MPI_TYPE", ""),
        "offered": offered(),
        "mpirun": "" if request.quick else mpirun(env),
    }


def load() -> tuple[str, str]:
    """What the library says of itself, without starting MPI; or why it does not load."""
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI

        return MPI.Get_library_version().strip("\0\n ").splitlines()[0], ""
    except Exception as error:  # the loader's complaint, in the words of whichever library it is
        return "", f"{type(error).__name__}: {error}"


def offered() -> list[str]:
    """Plug-ins of this srun."""
    try:
        return read_list(ask(("srun", "--mpi=list"), LIMIT_S))
    except SlaunchError:
        return []


def read_list(text: str) -> list[str]:
    """Names in the answer of `srun --mpi=list`, whose form differs between releases."""
    lines = [line for line in text.splitlines() if not line.rstrip().endswith((":", "..."))]
    words = {word.strip(",:") for line in lines for word in line.split()}
    return [name for kind in GIVES for name in sorted(words) if name.partition("_v")[0] == kind]


def mpirun(env: Mapping[str, str]) -> str:
    """Flavour of the mpirun on PATH; "" if there is none, or none that we know."""
    from slaunch.allocation.mpirun import flavour

    try:
        program = find(("mpirun", "mpiexec"), env.get("PATH", ""))
        return flavour(ask((program, "--version"), LIMIT_S), program)
    except SlaunchError:
        return ""


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Whether the parts fit."""
    if not facts["kind"]:
        means = "MPI cannot be used to meet; slaunch meets in another way, and needs no MPI"
        return [Finding(NAME, NOTE, facts["where"], means, "nothing, unless your program uses MPI")]
    return [*unloadable(facts), *unfit(facts, site), *strange_mpirun(facts, site)]


def unloadable(facts: Facts) -> list[Finding]:
    """The library does not load."""
    if not facts["fault"]:
        return []
    todo = "load the site's MPI module, or name the library in MPI4PY_LIBMPI"
    return [Finding(NAME, WARNING, f"mpi4py does not load: {facts['fault']}", "programs that use MPI end at once", todo)]


def unfit(facts: Facts, site: Facts) -> list[Finding]:
    """The library does not find its peers by what srun gives it."""
    if not facts["step"] and not site:
        return []
    interface, said = given(facts, site)
    library = Library(facts["kind"], facts["where"])
    if fits(library, Interface(interface, "")):
        return []
    seen = f"mpi4py loads {facts['kind']} ({facts['where']}), and {said}"
    by = f"by {interface}" if interface != NONE else "at all"
    means = f"tasks of an MPI program find no peers {by}: each is a world of one; {OWN}"
    return [Finding(NAME, WARNING, seen, means, plugin_for(facts, library))]


def given(facts: Facts, site: Facts) -> tuple[str, str]:
    """The interface that tasks get, and what tells: in a step its variables, else srun's default."""
    if facts["step"]:
        return facts["interface"], f"srun gave the tasks {facts['interface']} ({facts['evidence']})"
    default = facts["default"] or site.get("config", {}).get("MpiDefault", "none")
    source = "SLURM_MPI_TYPE" if facts["default"] else "MpiDefault in slurm.conf"
    kind = GIVES.get(default.partition("_v")[0], NONE)
    return kind, f"srun gives tasks {kind} ({source} is {default})"


def plugin_for(facts: Facts, library: Library) -> str:
    """What to do: the plug-in that fits, if this srun has it."""
    good = [name for name in facts["offered"] if fits(library, Interface(GIVES[name.partition("_v")[0]], ""))]
    if good:
        return f"srun --mpi={good[0]} (or SLURM_MPI_TYPE={good[0]})"
    has = ", ".join(facts["offered"]) or "none"
    return f"srun offers {has}, none of which {library.kind} understands: use another MPI, or start it by its own mpirun"


def strange_mpirun(facts: Facts, site: Facts) -> list[Finding]:
    """The mpirun on PATH belongs to another library."""
    if not facts["mpirun"] or facts["kind"] in RUNS[facts["mpirun"]]:
        return []
    seen = f"mpirun on PATH is of the kind {facts['mpirun']}, and mpi4py loads {facts['kind']} ({facts['where']})"
    means = "MPI programs started by this mpirun find no peers: each would be a world of one"
    todo = "load one MPI module only, or name the library in MPI4PY_LIBMPI" + ("; with srun it does not matter" if site else "")
    return [Finding(NAME, NOTE if site else WARNING, seen, means, todo)]


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    library = facts["loaded"] or facts["kind"] or "none"
    return [Trait("the MPI library", library), Trait("the process manager interface", facts["interface"])]


CHECK = Check(
    NAME,
    look,
    judge,
    traits,
    ("MPI programs crash or hang between libraries of different kinds", "load the same modules on all nodes"),
    limit_s=15.0,
    asks="srun, mpirun, or the file system with the MPI library",
)
