"""Restarts on a real Slurm cluster: exactly so many, one world at a time, from the last checkpoint, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest
from support.cluster import Cluster

from .test_supervision import PATIENCE_S, WORKERS, Launch, worker

TRAIN = """
import os, socket, sys, time
rank, world, attempt = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "SLAUNCH_ATTEMPT"))
place, last = os.environ["PLACE"], int(sys.argv[1])
crashes = dict(zip(map(int, sys.argv[2::2]), map(int, sys.argv[3::2])))  # step: rank

def note(text):
    file = os.open(f"{place}/notes.{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(file, f"{text}\\n".encode())

before, here = os.environ.get("SLAUNCH_PREVIOUS_RANK", "-"), os.uname().nodename
note(f"start {attempt} {rank} {world} {os.environ['MASTER_PORT']} {before} {here}")
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    server = socket.create_server(address)
    peers = [server.accept()[0] for _ in range(world - 1)]
else:
    for _ in range(600):
        try: hub = socket.create_connection(address, timeout=60); break
        except OSError: time.sleep(0.05)

def barrier():
    '''All wait for all; a lost peer is an error.'''
    if rank == 0:
        for peer in peers:
            if not peer.recv(1): raise ConnectionResetError("Connection closed by peer")
        for peer in peers: peer.sendall(b"x")
    else:
        hub.sendall(b"x")
        if not hub.recv(1): raise ConnectionResetError("Connection closed by peer")

checkpoint = f"{place}/checkpoint"
step = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
barrier()
while step < last:
    step += 1
    time.sleep(0.02)
    once = f"{place}/crashed.{step}"
    if crashes.get(step) == rank and not os.path.exists(once):
        open(once, "w").close()
        os._exit(7)
    barrier()
    if rank == 0:
        with open(checkpoint + ".part", "w") as file: file.write(str(step))
        os.replace(checkpoint + ".part", checkpoint)
note(f"end {attempt} {step}")
"""
"""A training in miniature: steps in which all wait for all, a checkpoint after each, and crashes at given steps."""


def notes(place: str, ranks: int) -> list[list[str]]:
    found = []
    for rank in range(ranks):
        with open(f"{place}/notes.{rank}") as file:
            found += [line.split() for line in file]
    return found


def train(cluster: Cluster, *options: str, args: tuple[str, ...]) -> Launch:
    return Launch(cluster, worker(cluster, "train", TRAIN), *options, args=args)


def report_of(place: str) -> dict[str, Any]:
    with open(f"{place}/logs/report.json") as file:
        found: dict[str, Any] = json.load(file)
    return found


def journal(place: str, node: int) -> list[dict[str, Any]]:
    with open(f"{place}/logs/agent.{node}.jsonl") as file:
        return [json.loads(line) for line in file]


def test_f122_f126_f324_p98_a_training_goes_on_from_its_checkpoint(cluster: Cluster) -> None:
    """Three crashes, on three nodes."""
    launch = train(cluster, "--max-restarts", "3", args=("60", "10", "5", "25", "0", "40", "2"))
    done = launch.result()
    assert done.returncode == 0, done.stderr
    said = notes(launch.place, launch.world)
    starts = [line[1:] for line in said if line[0] == "start"]
    by_attempt = {attempt: [start for start in starts if start[0] == attempt] for attempt in ("0", "1", "2", "3")}
    places = {(start[1], start[5]) for start in by_attempt["0"]}
    for attempt, group in by_attempt.items():
        assert sorted(int(start[1]) for start in group) == list(range(8)), f"attempt {attempt}: {group}"
        assert len({start[3] for start in group}) == 1, "one MASTER_PORT for all"
        assert all(start[4] == ("-" if attempt == "0" else start[1]) for start in group), "the same ranks"
        assert {(start[1], start[5]) for start in group} == places, "on the same nodes"
    assert len({group[0][3] for group in by_attempt.values()}) == 4, "a new port each time"
    assert [line for line in said if line[0] == "end"] == [["end", "3", "60"]] * 8
    assert "at attempt 3" in done.stderr
    report = report_of(launch.place)
    assert [each["verdict"]["first"]["rank"] for each in report["earlier"]] == [5, 0, 2]


@pytest.mark.parametrize("limit", [0, 2])
def test_w22_exactly_so_many_restarts(cluster: Cluster, limit: int) -> None:
    crashes = [str(word) for step in range(5, 40, 5) for word in (step, 1)]
    launch = train(cluster, "--max-restarts", str(limit), args=("60", *crashes))
    done = launch.result()
    assert done.returncode == 7, done.stderr
    starts = [line[1:3] for line in notes(launch.place, launch.world) if line[0] == "start"]
    assert sorted(starts) == [[str(attempt), str(rank)] for attempt in range(limit + 1) for rank in range(8)]
    assert report_of(launch.place)["attempt"] == limit


def test_all_workers_run_again_soon_after_a_crash(cluster: Cluster) -> None:
    """From the exit of a worker to the start of the last of the new ones; what it is on an idle machine, the benchmark tells."""
    launch = train(cluster, "--max-restarts", "1", args=("60", "30", "5"))
    assert launch.result().returncode == 0
    journals = [journal(launch.place, node) for node in range(4)]
    failures = [e["failure"] for entries in journals for e in entries if e.get("what") == "WorkerExited" and e["failure"]]
    first = min(failure["time_s"] for failure in failures)
    again = []
    for entries in journals:
        at = next(i for i, e in enumerate(entries) if e["kind"] == "begin" and e["attempt"] == 1)
        again += [e["time_s"] for e in entries[at:] if e["kind"] == "started"]
    assert len(again) == 8
    assert max(again) - first < 5


def test_no_restart_after_scancel(cluster: Cluster) -> None:
    """Slurm signals the step while the agents wait before a restart."""
    launch = train(cluster, "--max-restarts", "5", "--restart-delay", "60", args=("60", "10", "5"))
    cluster.wait_until(lambda: os.path.exists(f"{launch.place}/crashed.10"), PATIENCE_S, lambda: "no crash")
    time.sleep(2)
    cluster.run(["scancel", "--signal=TERM", launch.step()])
    done = launch.result()
    assert done.returncode == 143, done.stderr
    assert "stopped by SIGTERM" in done.stderr
    assert {line[1] for line in notes(launch.place, launch.world)} == {"0"}


def elastic(cluster: Cluster, *options: str) -> tuple[str, str]:
    """A batch job of four nodes that may lose one; its place and its number."""
    place = f"{cluster.scratch}/{os.urandom(4).hex()}"
    os.mkdir(place)
    os.chmod(place, 0o777)
    words = f"--nproc-per-node {WORKERS} --log-dir {place}/logs {' '.join(options)} {worker(cluster, 'train', TRAIN)} 2000"
    with open(f"{place}/job.sh", "w") as file:
        file.write(f"#!/bin/sh\nexport PLACE={place}\nslaunch {words} 2>{place}/err\necho $? >{place}/code\n")
    job = cluster.run(
        ["sbatch", "--parsable", "--no-kill", "-N4", "--ntasks-per-node=1", "-c2", f"--output={place}/out", f"{place}/job.sh"]
    ).stdout.strip()
    begun = lambda: os.path.exists(f"{place}/checkpoint")  # noqa: E731
    cluster.wait_until(begun, PATIENCE_S, lambda: str(os.listdir(place)))
    return place, job


def read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()


def test_f124_p98_survivors_go_on_when_a_node_dies(cluster: Cluster) -> None:
    place, job = elastic(cluster, "--nnodes", "3:4")
    cluster.fail("n3")
    failed_at = time.time()
    again = lambda: [line for line in notes(place, 6) if line[:2] == ["start", "1"]]  # noqa: E731
    cluster.wait_until(lambda: len(again()) == 6, 60, lambda: read(f"{place}/err"))
    starts = sorted(again(), key=lambda line: int(line[2]))
    assert [line[2:4] for line in starts] == [[str(rank), "6"] for rank in range(6)]
    assert [line[5] for line in starts] == ["0", "1", "2", "3", "6", "7"], "node order is kept, and each knows its old rank"
    begun = max(e["time_s"] for node in (0, 1, 3) for e in journal(place, node) if e["kind"] == "begin" and e["attempt"] == 1)
    assert begun - failed_at < 15
    reached = int(read(f"{place}/checkpoint"))
    cluster.wait_until(lambda: int(read(f"{place}/checkpoint") or 0) > reached + 10, PATIENCE_S, lambda: read(f"{place}/err"))
    assert "lost node 2 (n3); attempt 1 starts" in read(f"{place}/err")
    cluster.heal("n3")
    cluster.run(["scancel", job])


def test_f124_an_agent_that_is_killed_is_a_node_that_is_lost(cluster: Cluster) -> None:
    place, job = elastic(cluster, "--nnodes", "3:4", "--max-restarts", "0")
    own = [p for p in cluster.processes(f"PLACE={place}") if p.node == "n2" and "--nnodes" in p.argv]
    os.kill(min(p.pid for p in own), signal.SIGKILL)
    again = lambda: [line for line in notes(place, 6) if line[:2] == ["start", "1"]]  # noqa: E731
    cluster.wait_until(lambda: len(again()) == 6, 60, lambda: read(f"{place}/err"))
    assert {line[6] for line in again()} == {"n1", "n3", "n4"}
    cluster.run(["scancel", job])


def test_a_node_that_is_cut_off_ends_its_workers_before_the_others_go_on(cluster: Cluster) -> None:
    """Two worlds would write one checkpoint. The nodes' clocks are one clock here."""
    place, job = elastic(cluster, "--nnodes", "3:4", "--grace", "60")
    cluster.cut("n4")
    again = lambda: [line for line in notes(place, 6) if line[:2] == ["start", "1"]]  # noqa: E731
    cluster.wait_until(lambda: len(again()) == 6, 60, lambda: read(f"{place}/err"))
    begun = min(e["time_s"] for node in (0, 1, 2) for e in journal(place, node) if e["kind"] == "begin" and e["attempt"] == 1)
    ended = [e["time_s"] for e in journal(place, 3) if e.get("what") == "WorkerExited"]
    assert len(ended) == WORKERS
    assert max(ended) < begun
    cluster.join("n4")
    cluster.run(["scancel", job])


def test_where_nobody_watches_the_workers_a_note_says_so(cluster: Cluster) -> None:
    wishes = "--max-restarts", "3", "--requeue", "yes", "--warn-before-end", "60"
    done = cluster.srun("-N2", "--ntasks-per-node=2", "slaunch", *wishes, "-c", "pass")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("--warn-before-end, --requeue: no effect, nobody watches tasks that are workers") == 1
    assert done.stderr.count("--max-restarts: no effect, nobody watches tasks that are workers") == 1
