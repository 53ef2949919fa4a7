"""Failure, stop and loss on a real Slurm cluster: one verdict, everywhere, soon, and nothing left behind.

The `cluster` fixture itself fails a test that leaves a job or process behind.
"""

from __future__ import annotations

import json
import os
import signal
import time

from support.cluster import Cluster, Process, Result

PATIENCE_S = 60
WORKERS = 2  # on each node


def worker(cluster: Cluster, name: str, text: str) -> str:
    """A training script on the shared folder."""
    path = f"{cluster.scratch}/{name}.py"
    with open(path, "w") as file:
        file.write(text)
    return path


STAY = """
import os, sys, time
open(f"{os.environ['PLACE']}/up.{os.environ['RANK']}", "w").close()
time.sleep(600)
"""
"""A worker that says that it runs, and stays."""


def fails_after_2_s(rank: int, code: int) -> str:
    """As STAY, but for one worker."""
    return STAY.replace("sleep(600)", f"sleep(2 if os.environ['RANK'] == '{rank}' else 600)\nsys.exit({code})")


class Launch:
    """A step of slaunch agents that runs beside the test."""

    def __init__(
        self, cluster: Cluster, script: str, *options: str, nodes: int = 4, srun: tuple[str, ...] = (), args: tuple[str, ...] = ()
    ):
        self.cluster = cluster
        self.place = f"{cluster.scratch}/{os.urandom(4).hex()}"
        os.mkdir(self.place)
        os.chmod(self.place, 0o777)
        self.world = nodes * WORKERS
        step = ("srun", f"-N{nodes}", "--ntasks-per-node=1", "-c2", *srun)
        slaunch = ("slaunch", "--nproc-per-node", str(WORKERS), "--log-dir", f"{self.place}/logs", *options, script, *args)
        self.began = time.monotonic()
        self.process = cluster.start([*step, *slaunch], env={"PLACE": self.place})

    def up(self) -> None:
        """Wait until all workers run."""
        self.cluster.wait_until(
            lambda: all(os.path.exists(f"{self.place}/up.{rank}") for rank in range(self.world)),
            PATIENCE_S,
            lambda: f"workers that run: {sorted(os.listdir(self.place))}",
        )

    def result(self) -> Result:
        """Its end."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Result(self.process.args, self.process.returncode, out, err)

    def agent(self, node: str) -> int:
        """Process id of the agent on a node."""
        own = [p for p in self.cluster.processes(f"PLACE={self.place}") if p.node == node]
        agents = [p.pid for p in own if any("slaunch" in word for word in p.argv) and p.argv[-1].endswith(".py")]
        return min(agents)

    def srun(self) -> int:
        """Process id of its srun."""
        return min(p.pid for p in self.cluster.processes(f"PLACE={self.place}") if p.argv[0] == "srun")

    def step(self) -> str:
        """Its step id."""
        return self.cluster.run(["squeue", "--steps", "--noheader", "--user", "hpc", "--format=%i"]).stdout.split()[0]


def end_of(launch: Launch, fault_at: float, within_s: float) -> Result:
    done = launch.result()
    assert time.monotonic() - fault_at < within_s, done.stderr
    return done


def test_w3_w24_p73_p74_one_failing_worker_ends_the_step_with_its_code(cluster: Cluster) -> None:
    done = Launch(cluster, worker(cluster, "fails", fails_after_2_s(rank=5, code=42))).result()
    assert done.returncode == 42, done.stderr
    assert "rank 5 on n3 failed with exit code 42" in done.stderr
    assert sum(line.startswith("slaunch: rank") for line in done.stderr.splitlines()) == 1, done.stderr


def test_p94_p95_the_first_failure_is_named_though_the_others_fail_as_well(cluster: Cluster) -> None:
    text = """
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    server = socket.create_server((host, port))
    peers = [server.accept()[0] for _ in range(world - 1)]
    for peer in peers: peer.sendall(b"go")
    for peer in peers:
        peer.settimeout(0.001)
    while True:
        for peer in peers:
            try:
                if peer.recv(1) == b"": raise ConnectionResetError("Connection closed by peer")
            except TimeoutError: pass
for attempt in range(500):
    try: sock = socket.create_connection((host, port)); break
    except OSError: time.sleep(0.02)
sock.recv(2)
if rank == 6:
    time.sleep(0.5)
    raise ValueError("the real reason")
if sock.recv(1) == b"": raise ConnectionResetError("Connection closed by peer")
"""
    done = Launch(cluster, worker(cluster, "collective", text)).result()
    assert done.returncode == 1, done.stderr
    assert "slaunch: rank 6 on n4 failed" in done.stderr  # first to exit, or still on its way out when its peers failed
    assert "ValueError: the real reason" in done.stderr


def test_w27_a_killed_agent_is_named_and_nothing_is_left(cluster: Cluster) -> None:
    launch = Launch(cluster, worker(cluster, "stay", STAY), srun=("-K0",))
    launch.up()
    os.kill(launch.agent("n3"), signal.SIGKILL)
    done = end_of(launch, time.monotonic(), 20)
    assert done.returncode != 0
    assert "lost the agent on node 2 (n3)" in done.stderr
    assert "exit code 75" in done.stderr


def test_w27_a_killed_hub(cluster: Cluster) -> None:
    launch = Launch(cluster, worker(cluster, "stay", STAY), srun=("-K0",))
    launch.up()
    os.kill(launch.agent("n1"), signal.SIGKILL)
    done = end_of(launch, time.monotonic(), 20)
    assert done.returncode != 0
    assert done.stderr.count("slaunch: lost the agent on node 0 (n1)") == 1


def test_w24_a_cut_link_ends_the_job(cluster: Cluster) -> None:
    launch = Launch(cluster, worker(cluster, "stay", STAY), srun=("-K0",))
    launch.up()
    cluster.cut("n2")
    cut_at = time.monotonic()

    def others() -> list[Process]:
        return [p for p in cluster.processes(f"PLACE={launch.place}") if p.node in ("n1", "n3", "n4")]

    cluster.wait_until(lambda: not others(), 30, lambda: f"on the other nodes: {others()}")
    assert time.monotonic() - cut_at < 20
    cluster.join("n2")
    done = launch.result()
    assert "lost the agent on node 1 (n2)" in done.stderr


def test_f128_p78_scancel_term_ends_the_step_in_good_order(cluster: Cluster) -> None:
    saving = """
import os, signal, sys
def save(number, frame):
    open(f"{os.environ['PLACE']}/saved.{os.environ['RANK']}", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
"""
    launch = Launch(cluster, worker(cluster, "saves", saving + STAY))
    launch.up()
    cluster.run(["scancel", "--signal=TERM", launch.step()])
    done = end_of(launch, time.monotonic(), 20)
    assert sum(name.startswith("saved.") for name in os.listdir(launch.place)) == launch.world
    assert "stopped by SIGTERM" in done.stderr
    assert done.returncode == 143, done.stderr


def test_f128_ctrl_c_at_srun(cluster: Cluster) -> None:
    """With --disable-status srun passes the first one on; without, it asks for a second one and kills the step with that."""
    launch = Launch(cluster, worker(cluster, "stay", STAY), srun=("--disable-status",))
    launch.up()
    os.kill(launch.srun(), signal.SIGINT)
    done = end_of(launch, time.monotonic(), 20)
    assert done.returncode == 130, done.stderr
    assert "stopped by SIGINT" in done.stderr


def test_f129_ctrl_c_twice_at_srun(cluster: Cluster) -> None:
    launch = Launch(cluster, worker(cluster, "stay", STAY))
    launch.up()
    srun = launch.srun()
    os.kill(srun, signal.SIGINT)
    time.sleep(0.3)
    os.kill(srun, signal.SIGINT)
    assert end_of(launch, time.monotonic(), 20).returncode != 0


def test_p80_scancel_usr1_reaches_the_workers_and_the_job_goes_on(cluster: Cluster) -> None:
    text = """
import os, signal, sys, time
place, rank = os.environ["PLACE"], os.environ["RANK"]
signal.signal(signal.SIGUSR1, lambda n, f: open(f"{place}/got.{rank}", "w").close())
open(f"{place}/up.{rank}", "w").close()
while not os.path.exists(f"{place}/end"): time.sleep(0.05)
"""
    launch = Launch(cluster, worker(cluster, "usr1", text))
    launch.up()
    cluster.run(["scancel", "--signal=USR1", launch.step()])
    cluster.wait_until(
        lambda: all(os.path.exists(f"{launch.place}/got.{rank}") for rank in range(launch.world)),
        20,
        lambda: f"{sorted(os.listdir(launch.place))}",
    )
    open(f"{launch.place}/end", "w").close()
    done = launch.result()
    assert done.returncode == 0, done.stderr


def test_w28_f127_a_stubborn_job_is_ended_after_its_grace(cluster: Cluster) -> None:
    text = "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + fails_after_2_s(rank=0, code=9)
    launch = Launch(cluster, worker(cluster, "stubborn", text), "--grace", "2")
    launch.up()
    done = end_of(launch, time.monotonic(), 25)
    assert done.returncode == 9, done.stderr


def test_p96_grandchildren_in_their_own_session_are_gone(cluster: Cluster) -> None:
    text = STAY.replace(
        "time.sleep(600)",
        """
import subprocess
subprocess.Popen(["setsid", "sh", "-c", "trap '' TERM HUP INT; sleep 600"])
time.sleep(2 if os.environ["RANK"] == "3" else 600); sys.exit(3)
""",
    )
    done = Launch(cluster, worker(cluster, "family", text), "--grace", "1").result()
    assert done.returncode == 3, done.stderr
    assert not [p for p in cluster.processes() if "sleep" in p.argv]


def test_p75_w24_a_dead_node_is_named_and_ends_the_job(cluster: Cluster) -> None:
    """The allocation must survive it for anybody to hear the verdict (P75), hence --no-kill."""
    script = worker(cluster, "stay", STAY)
    place = f"{cluster.scratch}/dead"
    os.mkdir(place)
    os.chmod(place, 0o777)
    slaunch = f"slaunch --nproc-per-node 2 --log-dir {place}/logs {script}"
    batch = f"#!/bin/sh\nexport PLACE={place}\nsrun --no-kill -K0 -N4 --ntasks-per-node=1 {slaunch} 2>{place}/err\n"
    path = f"{place}/job.sh"
    with open(path, "w") as file:
        file.write(batch)
    options = ("--parsable", "--no-kill", "-N4", "--ntasks-per-node=1", "-c2", f"--output={place}/out")
    job = cluster.run(["sbatch", *options, path]).stdout.strip()
    running = [f"{place}/up.{rank}" for rank in range(8)]
    cluster.wait_until(lambda: all(map(os.path.exists, running)), PATIENCE_S, lambda: str(os.listdir(place)))
    cluster.fail("n3")
    failed_at = time.monotonic()

    def said() -> str:
        with open(f"{place}/err") as err:
            return err.read()

    def others() -> list[Process]:
        return [p for p in cluster.processes(f"PLACE={place}") if script in p.argv and "--log-dir" not in p.argv]

    cluster.wait_until(lambda: "lost the agent on node 2 (n3)" in said(), 30, said)
    assert time.monotonic() - failed_at < 25
    assert said().count("slaunch: lost the agent on node 2 (n3)") == 1
    cluster.wait_until(lambda: not others(), 30, lambda: f"workers on the other nodes: {others()}")
    cluster.heal("n3")
    cluster.run(["scancel", job])


def test_the_report_as_json(cluster: Cluster) -> None:
    script = worker(cluster, "fails", "import sys, os; sys.exit(4 * (os.environ['RANK'] == '1'))")
    launch = Launch(cluster, script, nodes=2)
    assert launch.result().returncode == 4
    with open(f"{launch.place}/logs/report.json") as file:
        report = json.load(file)
    assert report["code"] == 4
    assert report["verdict"]["first"]["rank"] == 1
