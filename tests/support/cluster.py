"""A real Slurm cluster of virtual nodes, as tests see it: commands run on its nodes as an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

VCLUSTER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cluster", "vcluster")
CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(VCLUSTER)))
ALREADY_UP = 3
USER = "hpc"
Result = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Job:
    """A batch job that has ended."""

    id: str
    state: str
    code: int
    output: str


@dataclass(frozen=True)
class Process:
    """A process of the cluster's user."""

    node: str
    pid: int
    argv: tuple[str, ...]


class Cluster:
    """The cluster. All times are in seconds; a command that is not done in time is ended and fails the test.

    Attributes:
        nodes: names of the compute nodes; `ctl` is the login node, which is not one of them.
        scratch: a folder that all nodes share and anybody may write to.
        python: the interpreter that the tests run with; slaunch is installed for it.
        path: what PATH is on the nodes.
    """

    def __init__(
        self, nodes: int = 4, cpus: int = 8, gpus: int = 4, shares: Sequence[str] = (), settings: Sequence[str] = ()
    ) -> None:
        """`settings`: other values in slurm.conf, as "NAME=VALUE"."""
        self.nodes = tuple(f"n{i}" for i in range(1, nodes + 1))
        self.python = sys.executable
        self.scratch = tempfile.mkdtemp(prefix="slaunch-scratch-")
        os.chmod(self.scratch, 0o777)
        self.path = f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin:/usr/sbin"
        self._shape = ("-n", str(nodes), "-c", str(cpus), "-g", str(gpus), *(word for each in settings for word in ("-o", each)))
        self._shares = [CHECKOUT, sys.prefix, self.scratch, *shares]
        self._broken: set[str] = set()
        self._cut: set[str] = set()
        self._started: list[subprocess.Popen[str]] = []
        self._instance = ""

    # -- life ---------------------------------------------------------------------------------------------------

    def up(self, owner: int = 0) -> None:
        """Start it as the first free instance from $VCLUSTER_INSTANCE on. It goes down when its owner, this process, ends."""
        shares = [word for share in self._shares for word in ("-s", share)]
        for instance in range(int(os.environ.get("VCLUSTER_INSTANCE", "0")), 16):
            self._instance = str(instance)
            done = self._vcluster("up", *self._shape, *shares, "-p", str(owner or os.getpid()), timeout=120, check=False)
            if done.returncode != ALREADY_UP:
                break
            self._instance = ""  # somebody else's, whom `down` must not end
        assert done.returncode == 0, f"the cluster did not start: {done.stderr}"

    @contextmanager
    def running(self) -> Iterator[Cluster]:
        """Up, as long as the `with` block lasts."""
        try:
            self.up()
            yield self
        finally:
            self.down()

    def is_up(self) -> bool:
        return os.path.isdir(self._state())

    def down(self) -> None:
        if self._instance:
            self._vcluster("down", timeout=60)
        shutil.rmtree(self.scratch, ignore_errors=True)

    # -- commands -----------------------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        node: str = "ctl",
        timeout: float = 60,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: str | None = None,
    ) -> Result:
        """Run a command to its end. Where its exit code or output is wrong, the test says so itself."""
        process = self.start(argv, node, env, cwd, stdin)
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            out, err = self._end(process)
            raise AssertionError(f"{list(argv)} on {node} was not done after {timeout} s\n{out}\n{err}") from None
        except BaseException:
            self._end(process)
            raise
        return subprocess.CompletedProcess(list(argv), process.returncode, out, err)

    def start(
        self,
        argv: Sequence[str],
        node: str = "ctl",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: str | None = None,
    ) -> subprocess.Popen[str]:
        """Start a command and do not wait. What is left of it when the test ends fails the test."""
        settings = [f"{name}={value}" for name, value in (env or {}).items()]
        process = subprocess.Popen(
            [VCLUSTER, "exec", node, "env", "-C", cwd or self.scratch, *settings, *argv],
            env=self._environment(),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def stop(self, process: subprocess.Popen[str], number: int = signal.SIGTERM, timeout: float = 30) -> Result:
        """Send a signal to a command from `start` and wait for its end."""
        os.killpg(process.pid, number)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            out, err = self._end(process)
            raise AssertionError(f"{process.args} went on {timeout} s after signal {number}\n{out}\n{err}") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def root(self, node: str, *argv: str) -> Result:
        """Run a command on a node as root, e.g. to mount something there."""
        return self._vcluster("root", node, *argv)

    def wait(self, process: subprocess.Popen[str], timeout: float) -> Result:
        """Wait for the end of a command from `start`."""
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            out, err = self._end(process)
            raise AssertionError(f"{process.args} was not done after {timeout} s\n{out}\n{err}") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def srun(self, *args: str, timeout: float = 60, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Result:
        """Run `srun` with these arguments from the login node."""
        return self.run(["srun", *args], timeout=timeout, env=env, cwd=cwd)

    def sbatch(
        self,
        script: str,
        *options: str,
        args: Sequence[str] = (),
        timeout: float = 120,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Job:
        """Submit a batch script with these arguments and wait until the job has ended; of an array all its tasks, one of which
        is returned: one that has failed, if any has."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        os.chmod(folder, 0o777)
        path = os.path.join(folder, "job.sh")
        with open(path, "w") as file:
            file.write(script)
        submitted = self.run(["sbatch", "--parsable", "-o", f"{folder}/out", *options, path, *args], env=env, cwd=cwd)
        assert submitted.returncode == 0, submitted.stderr
        job = submitted.stdout.strip()
        ended = lambda: all(task["JobState"] in ENDED for task in self.tasks(job))  # noqa: E731
        self.wait_until(ended, timeout, lambda: f"job {job} is {self.tasks(job)}")
        facts = max(self.tasks(job), key=lambda task: task["ExitCode"] != "0:0")
        output = _read(f"{folder}/out")
        code, _, number = facts["ExitCode"].partition(":")
        return Job(job, facts["JobState"], int(code) or (128 + int(number) if int(number) else 0), output)

    def job(self, job: str) -> dict[str, str]:
        """What `scontrol show job` says, by its own names."""
        return self.tasks(job)[-1]

    def tasks(self, job: str) -> list[dict[str, str]]:
        """As `job`, for each task of an array, or each component of a heterogeneous job."""
        shown = self.run(["scontrol", "--oneliner", "show", "job", job]).stdout
        lines = [line for line in shown.splitlines() if line.startswith("JobId=")]
        return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]

    def wait_until(self, true: Callable[[], object], timeout: float, otherwise: Callable[[], str]) -> None:
        """Wait for something, with a deadline after which the test fails with the text of `otherwise`."""
        deadline = time.monotonic() + timeout
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(f"after {timeout} s: {otherwise()}")
            time.sleep(0.1)

    # -- faults -------------------------------------------------------------------------------------------------

    def fail(self, node: str) -> None:
        """The node dies: its processes are killed and its link goes down."""
        self._broken.add(node)
        self._vcluster("fail", node)

    def heal(self, node: str) -> None:
        """A failed node comes back."""
        self._vcluster("heal", node)
        self._broken.discard(node)

    def cut(self, node: str) -> None:
        """Only the node's network link goes down."""
        self._cut.add(node)
        self._vcluster("cut", node)

    def join(self, node: str) -> None:
        """Its link comes back."""
        self._vcluster("join", node)
        self._cut.discard(node)

    # -- a look inside ------------------------------------------------------------------------------------------

    def processes(self, mark: str = "") -> list[Process]:
        """Processes of the user on all nodes; with a mark, those whose environment has that text."""
        uid = pwd.getpwnam(USER).pw_uid
        spaces = self._namespaces()
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            process = _look(int(name), uid, spaces, mark.encode())
            if process:
                found.append(process)
        return found

    def clean(self, patience: float = 15) -> list[str]:
        """Bring the cluster back to rest; returns what should not have been there, one line each."""
        for node in sorted(self._cut):
            self.join(node)
        for node in sorted(self._broken):
            self.heal(node)
        left, idle = self._rest()
        deadline = time.monotonic() + patience
        while left and time.monotonic() < deadline:
            time.sleep(0.2)
            left, idle = self._rest()
        for process in self._started:
            if process.stdout and not process.stdout.closed:
                self._end(process)
        self._started.clear()
        if left:
            self.run(["scancel", "--user", USER, "--signal=KILL"])
            self.run(["scancel", "--user", USER])
            for process in self.processes():
                _kill(process.pid)
        if left or not idle:
            idle_now = lambda: self._rest()[1]  # noqa: E731
            self.wait_until(idle_now, 60, lambda: f"the nodes are not idle:\n{self._vcluster('status', check=False).stdout}")
        return left

    # -- inside -------------------------------------------------------------------------------------------------

    def _vcluster(self, *args: str, timeout: float = 60, check: bool = True) -> Result:
        done = subprocess.run(
            [VCLUSTER, *args], env=self._environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
        assert not check or done.returncode == 0, f"vcluster {' '.join(args)}: {done.stderr}"
        return done

    def _state(self) -> str:
        return "/run/vcluster" if self._instance == "0" else f"/run/vcluster-{self._instance}"

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "VCLUSTER_INSTANCE": self._instance, "VCLUSTER_PATH": self.path}

    def _end(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                return process.communicate(timeout=10)
            except (subprocess.TimeoutExpired, ProcessLookupError):
                continue
        return "", ""

    def _namespaces(self) -> dict[str, str]:
        spaces = {}
        for node in ("ctl", *self.nodes):
            with open(f"{self._state()}/{node}/pid") as file:
                spaces[os.readlink(f"/proc/{file.read().strip()}/ns/pid")] = node
        return spaces

    def _rest(self) -> tuple[list[str], bool]:
        """Jobs and processes that are left, one line each, and whether all nodes are idle. One command, as each has its price."""
        jobs = f"squeue --noheader --user {USER} --format='job %A %T %j'"
        asked = self.run(["sh", "-c", f"{jobs}; echo --; sinfo --noheader --partition=main --states=idle --format=%D"])
        left, _, idle = asked.stdout.rpartition("--\n")
        processes = [f"process {p.pid} on {p.node}: {' '.join(p.argv)}" for p in self.processes()]
        return left.splitlines() + processes, idle.strip() == str(len(self.nodes))


ENDED = frozenset(
    [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    ]  # squeue(1), job states
)


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()


def _look(pid: int, uid: int, spaces: Mapping[str, str], mark: bytes) -> Process | None:
    try:
        if os.stat(f"/proc/{pid}").st_uid != uid:
            return None
        node = spaces.get(os.readlink(f"/proc/{pid}/ns/pid"))
        with open(f"/proc/{pid}/environ", "rb") as file:
            marked = mark in file.read()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            argv = tuple(word.decode(errors="replace") for word in file.read().rstrip(b"\0").split(b"\0"))
    except OSError:  # it has just ended
        return None
    return Process(node, pid, argv) if node and marked else None


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
