"""A PyTorch training that checkpoints goes through faults of all kinds and comes to the result of one that nothing disturbed."""

from __future__ import annotations

import pytest
from support.cluster import Cluster
from support.elastic import DDP, Fault, Training

from .test_supervision import worker


@pytest.mark.timeout(400)
def test_f122_f123_f124_p98_a_training_goes_through_faults_to_the_undisturbed_result(cluster: Cluster) -> None:
    """It begins on three of four nodes; two that were lost come back, and the fourth comes with them. No step is missing, and
    each has the loss that it has in the undisturbed training."""
    training = Training(cluster, worker(cluster, "elastic", DDP), begin=3)
    training.inflict(Fault("agent", "n1"))
    training.inflict(Fault("cut", "n3"))
    training.inflict(Fault("join", "n1,n3,n4"))
    training.inflict(Fault("worker", "n2"))
    training.inflict(Fault("node", "n3"))
    training.end()
    assert training.faults() == [], training.said()
    assert [went.workers for went in training.went] == [(3, 2), (2, 1), (1, 4), (4, 4), (4, 3)]
    said = training.ended[0].stderr
    for text in ("lost node 0 (n1);", "lost node 2 (n3);", "workers were stopped for ", " on n2 was killed by signal 9;"):
        assert said.count(text) == 1, said
    assert said.count(" (n3); attempt ") == 2, said
    assert "3 workers on 3 nodes ended well" in said
    with open(f"{training.place}/bad") as file:
        bad = file.read().strip()
    assert bad == "n[1,3]", "the node that was cut off blames nobody"
    later = cluster.run(["srun", f"--exclude={bad}", "-N2", "hostname"])
    assert sorted(later.stdout.split()) == ["n2", "n4"], later.stderr
