"""Slurm's releases and settings."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from support.cluster import CHECKOUT

from slaunch.doctor.checks import slurm
from slaunch.doctor.values import ERROR, NOTE, WARNING

CONFIG = """\
Configuration data as of 2026-11-30T15:16:14
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
AuthType                = auth/munge
MpiDefault              = none
ProctrackType           = proctrack/linuxproc
SelectType              = select/cons_tres
SLURM_VERSION           = 22.05.8
TaskPlugin              = task/affinity

Slurmctld(primary) at ctl(10.85.255.254) is UP
"""
"""Of `scontrol show config` on the virtual cluster, shortened."""
NODES = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=4 NodeAddr=n1 NodeHostName=n1 Version=22.05.8 OS=Linux 6.1 State=IDLE\n"
    "NodeName=n2 Arch=x86_64 NodeAddr=n2 NodeHostName=n2 Version=23.02.7 State=IDLE\n"
    "NodeName=n3 State=DOWN\n"
)


def facts(**changed: Any) -> dict[str, Any]:
    seen = {
        "client": "slurm-wlm 24.11.5",
        "controller": "24.11.5",
        "fault": "",
        "config": {
            "TaskPlugin": "task/cgroup,task/affinity",
            "ProctrackType": "proctrack/cgroup",
            "SelectType": "select/cons_tres",
        },
        "nodes": {},
        "jobs": [],
        "job": "",
    }
    return seen | changed


def test_faults_begin_before_they_end() -> None:
    assert all(fault.first < fault.mended and fault.what and fault.source for fault in slurm.FAULTS)


@pytest.mark.parametrize(
    ("version", "words", "until"),
    [
        ("20.11.2", ["a step gets one core only", "CVE-2023-41914"], "22.05.10"),
        ("22.05.3", ["do not sort", "fail at random", "hang"], "22.05.10"),
        ("22.05.8", ["some valid requests for a step hang", "does not reach an srun"], "22.05.10"),
        ("22.05.9", ["CVE-2023-41914"], "22.05.10"),
        ("23.02.2", ["shared memory", "SLURM_NTASKS", "CVE-2023-41914"], "23.02.6"),
        ("23.02.5", ["CVE-2023-41914"], "23.02.6"),
        ("23.11.0", ["pmi2", "Hydra", "MIG"], "23.11.4"),
        ("23.11.1", ["Hydra", "MIG"], "23.11.4"),
    ],
)
def test_p62_releases_with_faults(version: str, words: list[str], until: str) -> None:
    (finding,) = slurm.known(f"slurm {version}")
    assert finding.severity == WARNING and finding.seen == f"Slurm {version}"
    assert all(word in finding.means for word in words) and f"update Slurm to {until} or later" in finding.todo


@pytest.mark.parametrize("version", ["22.05.10", "23.02.7", "23.11.10", "24.05.4", "25.05.0-0rc1", "no version"])
def test_releases_without_known_faults(version: str) -> None:
    assert slurm.known(version) == []


def test_client_and_controller_of_one_release_are_told_once() -> None:
    assert len(slurm.known("slurm 22.05.8", "22.05.8")) == 1
    assert len(slurm.known("slurm 22.05.8", "23.02.2")) == 2


def test_settings_are_read() -> None:
    assert slurm.read_config(CONFIG) == {
        "AuthType": "auth/munge",
        "MpiDefault": "none",
        "ProctrackType": "proctrack/linuxproc",
        "SelectType": "select/cons_tres",
        "SLURM_VERSION": "22.05.8",
        "TaskPlugin": "task/affinity",
    }


def test_versions_of_nodes_are_read() -> None:
    assert slurm.read_versions(NODES) == {"n1": "22.05.8", "n2": "23.02.7"}


@pytest.mark.parametrize(
    ("config", "severity"),
    [
        ({"TaskPlugin": "task/none"}, WARNING),
        ({"TaskPlugin": "(null)"}, WARNING),
        ({"TaskPlugin": ""}, WARNING),
        ({"ProctrackType": "proctrack/pgid"}, WARNING),
        ({"ProctrackType": "proctrack/linuxproc"}, WARNING),
        ({"SelectType": "select/linear"}, NOTE),
    ],
)
def test_harmful_settings(config: dict[str, str], severity: str) -> None:
    good = facts()
    (finding,) = slurm.judge(good | {"config": good["config"] | config})
    ((name, value),) = config.items()
    assert finding.severity == severity and finding.seen.startswith(f"{name}={value} ")


def test_good_settings() -> None:
    assert slurm.judge(facts()) == []


def test_no_slurm_is_no_finding() -> None:
    assert slurm.judge({}) == []


def test_a_controller_that_is_silent() -> None:
    found = slurm.judge(facts(client="slurm 22.05.8", controller="", config={}, fault="no answer within 8 s"))
    assert [each.severity for each in found] == [ERROR, WARNING]
    assert "no answer within 8 s" in found[0].seen


def test_the_page_lists_the_releases() -> None:
    with open(os.path.join(CHECKOUT, "docs", "doctor.md")) as file:
        rows = set(re.findall(r"^\| ([\d.]+|all before) \| ([\d.]+) \|", file.read(), re.MULTILINE))
    told = {
        ("all before" if fault.first == (0, 0, 0) else slurm.dotted(fault.first), slurm.dotted(fault.mended))
        for fault in slurm.FAULTS
    }
    assert rows == told
