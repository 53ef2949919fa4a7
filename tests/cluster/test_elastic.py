"""A PyTorch training that checkpoints goes through faults of all kinds and comes to the result of one that nothing disturbed."""

from __future__ import annotations

import pytest
from support.cluster import Cluster
from support.elastic import DDP, Fault, Training

from .test_supervision import worker


@pytest.mark.timeout(400)
def test_f122_f123_f124_p98_a_training_goes_through_faults_to_the_undisturbed_result(cluster: Cluster) -> None:
    """The first node's agent is killed, and one comes back there by a step of its own; another node dies."""
    training = Training(cluster, worker(cluster, "elastic", DDP))
    world = training.inflict(Fault("agent", "n1"), 4)
    world = training.inflict(Fault("node", "n3"), world)
    assert world == 3
    found, wanted = training.end()
    assert found == pytest.approx(wanted, abs=1e-9), training.said()
    for process in (training.main, *training.steps):
        cluster.wait(process, 60)
    with open(f"{training.place}/bad") as file:
        bad = file.read().strip()
    assert bad == "n[1,3]"
    later = cluster.run(["srun", f"--exclude={bad}", "-N2", "hostname"])
    assert sorted(later.stdout.split()) == ["n2", "n4"], later.stderr
    cluster.heal("n3")
