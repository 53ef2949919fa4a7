"""Failures of every kind on the cluster, and what slaunch says of each: which rank or node, what class, and how soon.

A scenario is one step of two nodes with two workers each; rank 2 is the first on the second node. Many run at the same time.
Times are of one clock, as all nodes are one machine: from the fault to the first entry on it in any agent's journal, and to the
end of the last worker.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import nan

from support.cluster import Cluster
from support.jobs import PROGRAMS, folder_in

FAULTY = f"{PROGRAMS}/faulty.py"
PATIENCE_S = 60
WORLD = 4
NEWS = ("WorkerExited", "AgentGone", "SignalArrived", "WorkersSilent", "StartFailed", "Succeeded")
"""Events by which an agent may notice a fault."""


@dataclass(frozen=True)
class Expected:
    """The verdict: its outcome and code; the rank or node it names; the class of the cause where a worker is it."""

    outcome: str
    code: int
    who: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Scenario:
    """One failure.

    Attributes:
        name: what the worker does (`programs/faulty.py`), or what is done to the job.
        expected: what slaunch must say.
        culprit: rank of the worker that does it; -1 = none does, and `act` is the fault.
        options: slaunch's.
        act: done to the running job, once all workers are up.
        nodes: where it runs; "" = anywhere.
        says: words of the report or remark.
        log_dir, program: where they matter.
        prepare: done to the cluster before.
    """

    name: str
    expected: Expected
    culprit: int = 2
    options: tuple[str, ...] = ()
    act: Callable[[Launched], None] | None = None
    nodes: str = ""
    says: str = ""
    log_dir: str = ""
    program: str = FAULTY
    prepare: Callable[[Cluster], None] | None = None


@dataclass
class Row:
    """What came of it. Times are not a number where there was no fault at a certain moment."""

    name: str
    seen: Expected
    detected_s: float
    stopped_s: float
    said: str


@dataclass
class Launched:
    """A scenario that runs."""

    cluster: Cluster
    scenario: Scenario
    folder: str = ""
    process: subprocess.Popen[str] | None = None
    fault_s: float = 0.0
    broken: list[Callable[[str], object]] = field(default_factory=list)
    begun: bool = False
    deadline: float = 0.0

    def start(self) -> None:
        self.deadline = time.monotonic() + PATIENCE_S
        self.folder = folder_in(self.cluster.scratch)
        one = self.scenario
        if one.prepare is not None:
            one.prepare(self.cluster)
        place = ("-w", one.nodes) if one.nodes else ("-x", "n3,n4")
        step = ("srun", "-N2", "--ntasks-per-node=1", "-c1", "--mem-per-cpu=50", "-K0", "--no-kill", "--disable-status", *place)
        logs = one.log_dir or f"{self.folder}/logs"
        slaunch = ("slaunch", "--nproc-per-node", "2", "--rendezvous", "slurm", "--log-dir", logs, "--tee", "none")
        worker = (one.program, self.folder, one.name, str(one.culprit))
        self.process = self.cluster.start([*step, *slaunch, *one.options, *worker], env={"PLACE": self.folder})

    def up(self) -> bool:
        return all(os.path.exists(f"{self.folder}/up.{rank}") for rank in range(WORLD))

    def over(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def begin(self) -> None:
        """All workers run: what is to be done to the job is done."""
        self.begun = True
        if self.scenario.act is not None:
            self.fault_s = time.time()
            self.scenario.act(self)

    def nodes(self) -> list[str]:
        return (self.scenario.nodes or "n1,n2").split(",")

    def repair(self) -> None:
        """Once slaunch has told what happened, a node that was lost may come back."""
        while self.broken and os.path.exists(f"{self.folder}/logs/report.json"):
            self.broken.pop()("n4")

    def pid(self, rank: int) -> int:
        """A worker's, as this machine sees it."""
        node = self.nodes()[rank // 2]
        found = [p.pid for p in self._own(node) if f"RANK={rank}".encode() in _environ(p.pid).split(b"\0")]
        return min(found)

    def agent(self, index: int) -> int:
        return min(p.pid for p in self._own(self.nodes()[index]) if "--log-dir" in p.argv)

    def _own(self, node: str) -> list:  # type: ignore[type-arg]
        return [p for p in self.cluster.processes(f"PLACE={self.folder}") if p.node == node]

    def step(self) -> str:
        """Its step id, which Slurm told its agents."""
        words = dict(word.split(b"=", 1) for word in _environ(self.agent(0)).split(b"\0") if b"=" in word)
        return f"{words[b'SLURM_JOB_ID'].decode()}.{words[b'SLURM_STEP_ID'].decode()}"

    def row(self, ended_s: float) -> Row:
        """What slaunch says of it."""
        assert self.process is not None
        _, err = self.process.communicate(timeout=PATIENCE_S)
        events = [entry for path in glob.glob(f"{self.folder}/logs/agent.*.jsonl") for entry in _entries(path)]
        fault_s = self.fault_s or _number(f"{self.folder}/fault") or nan
        news = [e["time_s"] for e in events if e["time_s"] >= fault_s - 0.05 and is_news(e)]
        exits = [e["time_s"] for e in events if e.get("what") == "WorkerExited"]
        detected_s = min(news, default=nan) - fault_s
        stopped_s = max(exits, default=ended_s) - fault_s
        return Row(self.scenario.name, seen(self.folder, self.process.returncode), detected_s, stopped_s, err)


def is_news(entry: dict[str, object]) -> bool:
    """Whether an entry of a journal is about a fault; a good end is none."""
    if entry["kind"] == "remark":
        return "stopped by a signal" in str(entry.get("text"))
    if entry.get("what") == "WorkerExited":
        return entry.get("failure") is not None
    return entry.get("what") in NEWS or entry.get("says") in ("StopWorkers",)


def seen(folder: str, code: int) -> Expected:
    """The verdict by the report for programs; by the exit code alone if there was no run."""
    path = f"{folder}/logs/report.json"
    if not os.path.exists(path):
        return Expected("refused", code)
    with open(path) as file:
        report = json.load(file)
    verdict = report["verdict"]
    first, hung, lost = verdict["first"], verdict["hung"], verdict["lost"]
    who, cause = "", ""
    if verdict["outcome"] == "failure":
        who, cause = f"rank {first['rank']}", first["cause"]
    elif hung:
        who = f"rank {hung[0]['rank']}"
    elif lost:
        who = f"node {lost[0]['node']}"
    elif verdict["problem"]:
        who = verdict["problem_host"]
    return Expected(verdict["outcome"], report["code"], who, cause)


def matches(seen: Expected, expected: Expected) -> bool:
    """Whether a verdict is the expected one; `*` = any number."""
    who = expected.who.removesuffix("*")
    same_who = seen.who == expected.who or (who != expected.who and seen.who.startswith(who))
    return same_who and (seen.outcome, seen.code, seen.cause) == (expected.outcome, expected.code, expected.cause)


def play(cluster: Cluster, scenarios: Sequence[Scenario], at_once: int = 6) -> list[Row]:
    """Run them, some at a time; their rows in order."""
    waiting, running, rows = list(scenarios), [], {}
    while waiting or running:
        held = {one.scenario.nodes for one in running if one.scenario.nodes}
        free = [one for one in waiting if one.nodes not in held]
        if free and len(running) < at_once:
            waiting.remove(free[0])
            running.append(Launched(cluster, free[0]))
            running[-1].start()
        for one in list(running):
            if not one.begun and one.up():
                one.begin()
            one.repair()
            if one.over():
                running.remove(one)
                rows[one.scenario.name] = one.row(time.time())
            assert time.monotonic() < one.deadline, f"{one.scenario.name} has not ended: {sorted(os.listdir(one.folder))}"
        time.sleep(0.02)
    return [rows[one.name] for one in scenarios]


def _environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _entries(path: str) -> list[dict]:  # type: ignore[type-arg]
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def _number(path: str) -> float:
    if not os.path.exists(path):
        return 0.0
    with open(path) as file:
        return float(file.read())


# -- what is done to a job


def kill_worker(one: Launched) -> None:
    os.kill(one.pid(2), signal.SIGKILL)


def stop_worker(one: Launched) -> None:
    os.kill(one.pid(2), signal.SIGSTOP)


def kill_agent(one: Launched) -> None:
    os.kill(one.agent(1), signal.SIGKILL)


def kill_hub(one: Launched) -> None:
    os.kill(one.agent(0), signal.SIGKILL)


def stop_step(one: Launched) -> None:
    one.cluster.run(["scancel", "--signal=TERM", one.step()])


def cancel_job(one: Launched) -> None:
    one.cluster.run(["scancel", one.step().partition(".")[0]])


def interrupt_srun(one: Launched) -> None:
    sruns = [p.pid for p in one.cluster.processes(f"PLACE={one.folder}") if p.argv[0] == "srun"]
    os.kill(min(sruns), signal.SIGINT)


def cut_node(one: Launched) -> None:
    one.cluster.cut("n4")
    one.broken.append(one.cluster.join)


def kill_node(one: Launched) -> None:
    """With --no-kill Slurm goes on waiting for the node when slaunch has ended."""
    job = one.step().partition(".")[0]
    one.broken += [lambda node: one.cluster.run(["scancel", job]), one.cluster.heal]
    one.cluster.fail("n4")


def fill_disk(cluster: Cluster) -> None:
    """On n4 alone."""
    full = "mkdir -p /tmp/full; mount -t tmpfs -o size=4k,mode=777 none /tmp/full; head -c 4096 /dev/zero >/tmp/full/fill"
    cluster.root("n4", "sh", "-c", full)


def copy_program(cluster: Cluster) -> None:
    """To n3 alone."""
    cluster.run(["cp", FAULTY, "/tmp/f.py"], node="n3")


def nothing(one: Launched) -> None:
    """The time limit does it."""


def of_worker(name: str, code: int, cause: str = "error", **more: object) -> Scenario:
    return Scenario(name, Expected("failure", code, "rank 2", cause), **more)  # type: ignore[arg-type]


FAR = "n3,n4"
SCENARIOS = (
    Scenario("full disk", Expected("refused", 73), nodes=FAR, log_dir="/tmp/full/logs", prepare=fill_disk, says="n4"),
    Scenario("script on one node", Expected("refused", 127), nodes=FAR, program="/tmp/f.py", prepare=copy_program, says="n4"),
    Scenario("cut link", Expected("lost", 75, "node *"), -1, ("--grace", "2"), cut_node, FAR, "node 1 (n4)"),
    Scenario("dead node", Expected("lost", 75, "node 1"), -1, ("--grace", "2"), kill_node, FAR, "node 1 (n4)"),
    of_worker("exit", 9),
    of_worker("exit 255", 255),
    of_worker("exception", 1, says="ValueError: a bad value"),
    of_worker("error file", 1, says="KeyError: 'layer'"),
    of_worker("SIGSEGV", 139, "signal", says="SIGSEGV"),
    of_worker("SIGKILL", 137, "signal", says="SIGKILL"),
    of_worker("SIGABRT", 134, "signal", says="SIGABRT"),
    of_worker("SIGBUS", 135, "signal", says="SIGBUS"),
    of_worker("SIGFPE", 136, "signal", says="SIGFPE"),
    of_worker("SIGILL", 132, "signal", says="SIGILL"),
    of_worker("memory", 1, "memory", says="MemoryError"),
    of_worker("device memory", 1, "memory", says="CUDA out of memory"),
    of_worker("import", 1, says="No module named 'nothing_of_this_name'"),
    of_worker("port", 1, says="another process holds that port"),
    of_worker("silent, others lose it", 5),
    of_worker("slow to end, others lose it", 1, says="ValueError: the real reason"),
    of_worker("leak", 6),
    of_worker("ignored stop", 9, options=("--grace", "1")),
    Scenario("exit 0", Expected("success", 0), culprit=3),
    Scenario("hang", Expected("hang", 76, "rank 2"), options=("--hang-timeout", "3", "--grace", "2")),
    Scenario("no such program", Expected("failure", 127, "rank *", "start"), options=("--python", "/nowhere/python")),
    Scenario("killed worker", Expected("failure", 137, "rank 2", "signal"), -1, act=kill_worker),
    Scenario(
        "stopped worker",
        Expected("hang", 76, "rank 2"),
        -1,
        ("--hang-timeout", "5", "--grace", "2"),
        stop_worker,
        says="has been stopped by a signal",
    ),
    Scenario("killed agent", Expected("lost", 75, "node 1"), -1, act=kill_agent),
    Scenario("killed hub", Expected("lost", 75, "node 0"), -1, act=kill_hub),
    Scenario("SIGTERM to the step", Expected("signal", 143), -1, act=stop_step),
    Scenario("scancel", Expected("signal", 143), -1, act=cancel_job, says="reason: the job was cancelled"),
    Scenario("Ctrl-C", Expected("signal", 130), -1, act=interrupt_srun),
    Scenario("--time-limit", Expected("time", 124), -1, ("--time-limit", "4"), nothing),
)
