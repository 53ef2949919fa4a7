"""MPI libraries, launchers and Slurm's plug-ins."""

from __future__ import annotations

from typing import Any

import pytest

from slaunch.doctor.checks import mpi
from slaunch.doctor.values import NOTE, WARNING
from slaunch.rendezvous.library import INTEL, MPICH, OPENMPI
from slaunch.rendezvous.pmi import NONE, PALS, PMI2, PMIX

from .sites import NO_SITE, SITE, severities


def library(kind: str, interface: str = NONE, **changed: Any) -> dict[str, Any]:
    facts = {
        "kind": kind,
        "where": f"/opt/{kind}/libmpi.so",
        "loaded": "",
        "fault": "",
        "step": True,
        "interface": interface,
        "evidence": "PMI_FD",
        "default": "",
        "offered": ["pmix", "pmix_v4", "pmi2", "cray_shasta", "none"],
        "mpirun": "",
    }
    return facts | changed


@pytest.mark.parametrize(
    ("kind", "interface", "todo"),
    [
        (OPENMPI, PMIX, ""),
        (MPICH, PMI2, ""),
        (INTEL, PMI2, ""),
        (MPICH, PALS, ""),
        (OPENMPI, PMI2, "srun --mpi=pmix "),
        (OPENMPI, NONE, "srun --mpi=pmix "),
        (MPICH, PMIX, "srun --mpi=pmi2 "),
        (MPICH, NONE, "srun --mpi=pmi2 "),
    ],
)
def test_p53_p54_p63_p64_plugin_and_library_in_a_step(kind: str, interface: str, todo: str) -> None:
    found = mpi.judge(library(kind, interface), SITE)
    assert severities(found) == [WARNING] * bool(todo)
    assert all(each.todo.startswith(todo) and kind in each.seen for each in found)


@pytest.mark.parametrize(
    ("default", "variable", "kind", "expected"),
    [
        ("pmix", "", OPENMPI, []),
        ("pmix_v4", "", OPENMPI, []),
        ("pmi2", "", OPENMPI, [WARNING]),
        ("none", "pmix", OPENMPI, []),
        ("none", "", MPICH, [WARNING]),
        ("pmi2", "", MPICH, []),
        ("cray_shasta", "", MPICH, []),
    ],
)
def test_default_plugin_on_a_login_node(default: str, variable: str, kind: str, expected: list[str]) -> None:
    facts = library(kind, step=False, default=variable)
    assert severities(mpi.judge(facts, {"config": {"MpiDefault": default}})) == expected


def test_a_plugin_that_is_not_offered_is_not_advised() -> None:
    (finding,) = mpi.judge(library(OPENMPI, PMI2, offered=["pmi2", "none"]), SITE)
    assert "none of which Open MPI understands" in finding.todo


def test_without_slurm_only_mpirun_is_judged() -> None:
    (finding,) = mpi.judge(library(MPICH, step=False, mpirun="openmpi"), NO_SITE)
    assert finding.severity == WARNING and "mpirun on PATH is of the kind openmpi" in finding.seen


def test_another_mpirun_is_a_note_under_slurm() -> None:
    assert severities(mpi.judge(library(MPICH, PMI2, mpirun="openmpi"), SITE)) == [NOTE]


def test_library_that_does_not_load() -> None:
    (finding,) = mpi.judge(library(MPICH, PMI2, fault="RuntimeError: cannot load MPI library"), SITE)
    assert "cannot load MPI library" in finding.seen and finding.severity == WARNING


def test_no_mpi_is_a_note() -> None:
    assert severities(mpi.judge(library("", where="mpi4py is not installed for this interpreter"), SITE)) == [NOTE]


@pytest.mark.parametrize(
    "text",
    [
        "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n",
        "srun: MPI types are...\nsrun: cray_shasta\nsrun: none\nsrun: pmi2\nsrun: pmix\nsrun: pmix_v4\n",
    ],
    ids=["22.05", "20.11"],
)
def test_list_of_plugins(text: str) -> None:
    assert mpi.read_list(text) == ["pmix", "pmix_v4", "pmi2", "cray_shasta", "none"]
