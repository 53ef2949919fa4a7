"""What the tests of doctor's checks share: sites, and what is looked at in findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import Finding

SITE: Mapping[str, Any] = {"config": {"AuthType": "auth/munge", "MpiDefault": "none"}, "job": "7", "jobs": ["7", "8"]}
NO_SITE: Mapping[str, Any] = {}


def severities(findings: list[Finding]) -> list[str]:
    assert all(each.seen and each.means and each.todo for each in findings)
    return [each.severity for each in findings]
