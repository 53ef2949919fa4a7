"""A job that began on a part of its nodes grows by a second step, and the training goes on there, too, from a boundary on."""

from __future__ import annotations

import os
import re

from support.cluster import Cluster

from .test_restarts import read
from .test_supervision import worker

PATIENCE_S = 90
TRAINING = """
import os, socket, sys, time
from slaunch import worker

place, rank, world = os.environ["PLACE"], worker.rank(), worker.world_size()
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
peers = []
if rank == 0:
    with socket.create_server(address) as server:
        peers = [server.accept()[0] for _ in range(world - 1)]
while rank and not peers:
    try:
        peers = [socket.create_connection(address, timeout=60)]
    except OSError:
        time.sleep(0.05)

def agreed(word):
    "Rank 0's word; nobody is further than the others."
    if rank:
        peers[0].sendall(b"?")
        return peers[0].recv(1)
    for peer in peers:
        assert peer.recv(1) == b"?"
    for peer in peers:
        peer.sendall(word)
    return word

step = int(open(f"{place}/saved").read()) if os.path.exists(f"{place}/saved") else 0
word = b"g"
while word == b"g":
    step += 1  # kept nowhere but here
    with open(f"{place}/steps", "a") as file:
        file.write(f"{worker.attempt()} {world} {rank} {step}\\n")
    time.sleep(0.05)
    word = agreed(b"e" if os.path.exists(f"{place}/end") else b"s" if worker.should_stop() else b"g")
if rank == 0:
    with open(f"{place}/saved.part", "w") as file: file.write(str(step))
    os.replace(f"{place}/saved.part", f"{place}/saved")
    if word == b"s": print("saved for", worker.stop_reason(), "at", step, flush=True)
"""


def steps(place: str) -> list[tuple[int, ...]]:
    """Attempt, number of workers, rank and step, of all steps that have been made."""
    return [tuple(map(int, line.split())) for line in read(f"{place}/steps").splitlines()]


def test_f123_p80_a_step_joins_and_the_training_goes_on_with_it_from_a_boundary(cluster: Cluster) -> None:
    """The workers end by themselves when they are asked to; no step is lost or made twice."""
    place = f"{cluster.scratch}/{os.urandom(4).hex()}"
    os.mkdir(place)
    os.chmod(place, 0o777)
    options = ["--nnodes", "1:3", "--nproc-per-node", "1", "--join-policy", "boundary", "--log-dir", f"{place}/logs"]
    options.append(worker(cluster, "boundary", TRAINING))
    env = {"PLACE": place}
    with open(f"{place}/job.sh", "w") as file:
        file.write("#!/bin/bash\nsrun --overlap -N2 -n2 -c2 slaunch " + " ".join(options) + "\n")
    batch = ["sbatch", "--parsable", "-N3", "--ntasks-per-node=1", "-c2", "-w", "n[1-3]", "-o", f"{place}/out", f"{place}/job.sh"]
    job = cluster.run(batch, env=env).stdout.strip()
    said = lambda: f"{read(f'{place}/out')}\n{steps(place)[-6:]}\n{cluster.job(job)['JobState']}"  # noqa: E731
    cluster.wait_until(lambda: any(step > 3 for _, _, _, step in steps(place)), PATIENCE_S, said)

    words = ["srun", "--jobid", job, "--overlap", "-N1", "-n1", "-c2", "-w", "n3", "slaunch", "--join", "yes", *options]
    late = cluster.start(words, env=env)
    grown = lambda: len([world for _, world, _, _ in steps(place) if world == 3]) > 9  # noqa: E731
    cluster.wait_until(grown, PATIENCE_S, said)
    with open(f"{place}/end", "w"):
        pass
    ended = cluster.wait(late, PATIENCE_S)
    assert ended.returncode == 0, ended.stderr + said()
    cluster.wait_until(lambda: cluster.job(job)["JobState"] == "COMPLETED", PATIENCE_S, said)

    found = re.findall(r"saved for (\w+) at (\d+)", read(f"{place}/logs/workerlog.0"))
    assert [reason for reason, _ in found] == ["join"], said()
    boundary, last = int(found[0][1]), int(read(f"{place}/saved"))
    before = [(0, 2, rank, step) for rank in range(2) for step in range(1, boundary + 1)]
    after = [(1, 3, rank, step) for rank in range(3) for step in range(boundary + 1, last + 1)]
    assert sorted(steps(place)) == sorted(before + after), said()
