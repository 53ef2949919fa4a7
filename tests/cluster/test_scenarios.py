"""Thirty kinds of failure on the cluster: what slaunch says of each is right, and it says it soon."""

from __future__ import annotations

import pytest
from support.cluster import Cluster
from support.scenarios import SCENARIOS, Row, Scenario, matches, play

NAMES = [scenario.name for scenario in SCENARIOS]


@pytest.fixture(scope="module")
def rows(_cluster: Cluster) -> dict[str, Row]:
    """All of them, several at a time."""
    rows = play(_cluster, SCENARIOS)
    left = _cluster.clean()
    assert not left, "left on the cluster:\n" + "\n".join(left)
    return {row.name: row for row in rows}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_p93_p94_p95_w3_the_first_cause_is_right(rows: dict[str, Row], scenario: Scenario) -> None:
    row = rows[scenario.name]
    assert matches(row.seen, scenario.expected), f"{row.seen}\n{row.said}"
    assert scenario.says in row.said
    assert row.said.count("Traceback") <= 2  # the worker's own, in its last lines
