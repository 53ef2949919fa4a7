"""The workers of this node: the effects behind the supervisor's actions."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping

from slaunch._failpoint import failpoint
from slaunch.agent import errorfile, oom, process, tree
from slaunch.agent.cause import FENCED, classify
from slaunch.agent.deliver import deliver
from slaunch.agent.events import Event, StartFailed, TreeSeen, WorkerExited
from slaunch.agent.guardian import Guardian
from slaunch.agent.logs import prepare, tail
from slaunch.agent.memory import Memory
from slaunch.agent.outlets import Outlets
from slaunch.agent.policy import NO_PROGRESS
from slaunch.agent.progress import Progress
from slaunch.agent.silence import Watched
from slaunch.agent.values import Failure
from slaunch.clock import wall_s
from slaunch.errors import SlaunchError
from slaunch.frozen import dataclass, replace
from slaunch.node.values import Problem
from slaunch.plan.values import WorkerSpec

SPARE_FDS = 8
"""Descriptors that the agent must still be able to open once its workers run: for /proc, logs, the journal."""
SWEEP_S = 0.02
"""How often to look at processes that have been told to go."""


@dataclass
class Worker:
    """A worker that has been started. `pidfd` is -1 on a kernel without pidfd_open(2), `peak_bytes` known once it has ended.
    `err_log` is "" where its errors go to the same file. `ending_at`: when it was seen to be ending as it was told to, seconds
    since the epoch; 0 = it was not.
    """

    spec: WorkerSpec
    pid: int
    pidfd: int
    log: str
    log_start: int
    err_log: str = ""
    err_start: int = 0
    told: bool = False
    ending_at: float = 0.0
    ended: bool = False
    peak_bytes: int = 0


@dataclass(frozen=True)
class Place:
    """Where the workers run and write.

    Attributes:
        node, host: this node.
        log_dir: directory of the logs.
        overwrite: start log files anew.
        attempt: number of the attempt.
    """

    node: int
    host: str
    log_dir: str
    overwrite: bool
    attempt: int


class Crew:
    """Starts, signals, reaps and clears away this node's workers; tells what happened as events.

    Attributes:
        workers: by rank.
        events: what happened, to be taken from here.
        sweep_due: when to look again at what is left of the workers.
        spared: process ids of the agent's own helpers, which are no workers'.
        guardian: ends the workers if the agent cannot.

    Args:
        progress: where workers tell how far they have come.
        outlets: where their output goes; None = into files that they write themselves.
    """

    def __init__(  # noqa: PLR0917 - one of each
        self,
        place: Place,
        selector: selectors.BaseSelector,
        mark: str,
        guardian: Guardian,
        watch: Callable[[Worker], None] = lambda worker: None,
        progress: Progress | None = None,
        outlets: Outlets | None = None,
    ) -> None:
        self._progress = progress
        self._watch = watch
        self.workers: dict[int, Worker] = {}
        self.events: list[Event] = []
        self.sweep_due = float("inf")
        self.spared: set[int] = set()
        self._outlets = outlets or Outlets(place.log_dir, selector)
        self._outlets.spared = self.spared
        self._place = place
        self._memory = Memory()
        self._selector = selector
        self._mark = mark
        self.guardian = guardian
        self._killing = False
        self._stuck: set[int] = set()
        self._waiting: tuple[tuple[WorkerSpec, ...], Mapping[str, str]] = ((), {})
        self._group = oom.own_group()
        self._oom_before = oom.count(self._group)

    @property
    def ranks(self) -> frozenset[int]:
        """All workers of this node, those that wait for their start included."""
        return frozenset(self.workers) | {spec.rank for spec in self._waiting[0]}

    def renew(self, attempt: int) -> None:
        """Nothing of the last attempt is left: be ready to start those of another one, whose output follows in the same files."""
        self.finish_logs()
        self.workers.clear()
        self.sweep_due = float("inf")
        self._place = replace(self._place, attempt=attempt, overwrite=False)
        self._memory.close()
        self._killing = False
        self._oom_before = oom.count(self._group)

    def start(self, specs: tuple[WorkerSpec, ...], env: Mapping[str, str]) -> None:
        """Start all workers, or those that must end before the others start; the first problem is told as an event."""
        first = tuple(spec for spec in specs if spec.first)
        if first:
            self._waiting = tuple(spec for spec in specs if not spec.first), env
        self._start_all(first or specs, env)

    def finish_logs(self) -> None:
        """No worker is left: all that they have said is in their files."""
        self._outlets.finish()

    def watched(self) -> tuple[Watched, ...]:
        """The workers that run, but for services, which may well be silent."""
        running = (worker for worker in self.workers.values() if not worker.ended and not worker.spec.service)
        return tuple(Watched(worker.spec.rank, worker.pid, worker.log, worker.err_log) for worker in running)

    def _start_waiting(self) -> None:
        """The workers that waited for others to end."""
        specs, env = self._waiting
        self._waiting = (), {}
        self._start_all(specs, env)

    def _drop_waiting(self) -> None:
        """The workers that wait will not be started."""
        place = self._place
        for spec in self._waiting[0]:
            never = Failure(spec.rank, spec.local_rank, place.node, place.host, 0, 0, 0, wall_s(), told=True)
            self.events.append(WorkerExited(spec.rank, never))
        self._waiting = (), {}

    def _start_all(self, specs: tuple[WorkerSpec, ...], env: Mapping[str, str]) -> None:
        """Start workers; the first problem ends the starting and is told as an event."""
        spare: list[int] = []  # so that the agent can go on if the workers' pidfds use up all descriptors
        try:
            while len(spare) < SPARE_FDS:
                spare.append(os.open(os.devnull, os.O_RDONLY))
            prepare(self._place.log_dir)
            for spec in specs:
                failpoint("agent.before_spawn")
                self._start(spec, env)
                failpoint("agent.after_spawn")
        except SlaunchError as error:
            self.events.append(StartFailed(Problem(error.exit_code, error.wanted, error.seen, error.todo)))
        except OSError as error:  # no process, no descriptor, no memory
            seen = f"{error.strerror} on {self._place.host} after {len(self.workers)} of {len(specs)} workers"
            self.events.append(StartFailed(Problem(1, "start the workers", seen, "raise the limit that was hit (ulimit -a)")))
        finally:
            for descriptor in spare:
                os.close(descriptor)

    def _start(self, spec: WorkerSpec, env: Mapping[str, str]) -> None:
        place = self._place
        outlet = self._outlets.open(spec, place.overwrite, place.attempt)
        try:
            files = self._memory.variables(spec.files)
            errorfile.clear(spec.set_env.get(errorfile.VARIABLE, ""))
            own = self._progress.variables() if self._progress else {}
            worker_env = {**process.worker_env(spec, env, self._mark), **files, **own}
            pid = process.start(spec, worker_env, outlet.out, outlet.err)
        finally:
            outlet.close()
        self.guardian.started(pid)
        worker = Worker(spec, pid, _pidfd(pid), outlet.log, outlet.start, outlet.err_log, outlet.err_start)
        self.workers[spec.rank] = worker
        if worker.pidfd >= 0:
            self._selector.register(worker.pidfd, selectors.EVENT_READ, lambda: self._reap(worker))
        self._watch(worker)

    def signal(self, number: int) -> None:
        """Send a stop signal (0 = none) to every worker's process group; who is dead already is reaped first, as not told."""
        self._drop_waiting()
        alive = [worker for worker in self.workers.values() if not worker.ended and not self._reap(worker)]
        if number == signal.SIGABRT:
            _forbid_cores(alive)
        for worker in alive:
            self._tell(worker)
            _signal_group(worker.pid, number)
            if number:
                _signal_group(worker.pid, signal.SIGCONT)  # one that is stopped would not hear of it

    def _tell(self, worker: Worker) -> None:
        """From now on the worker's end is a consequence. Not if it is ending already: to free its memory and devices may take
        seconds, and its peers, whose connections the kernel has closed by then, are often gone before."""
        if not worker.told and not worker.ended and tree.is_ending(worker.pid):
            worker.ending_at = wall_s()
        worker.told = True

    def forward(self, number: int) -> None:
        """Pass a signal on to each worker's outermost processes that catch it; what those started is theirs to tell."""
        for worker in self.workers.values():
            if not worker.ended:
                deliver(worker.pid, number)

    def signal_all(self, number: int) -> None:
        """Stop the workers' process groups, or let them go on; no request to end."""
        for worker in self.workers.values():
            if not worker.ended:
                _signal_group(worker.pid, number)

    def sweep(self) -> None:
        """Ask what the workers left behind to go, and start looking until it has."""
        tree.kill(self._descendants(), signal.SIGTERM)
        self.look()

    def kill(self) -> None:
        """Kill everything that stems from a worker, and keep doing so."""
        self._killing = True
        self._drop_waiting()
        for worker in self.workers.values():
            self._tell(worker)
        self.look()

    def look(self) -> None:
        """Tell what is left of the workers' processes."""
        pids = self._descendants()
        if self._killing:
            tree.kill(pids, signal.SIGKILL)
        left = tree.running(pids, self._place.node, self._place.host)
        self._stuck = {process.pid for process in left} if self._killing else set()
        self.events.append(TreeSeen(left))
        busy = bool(left) or not all(worker.ended for worker in self.workers.values())
        self.sweep_due = time.monotonic() + SWEEP_S if busy else float("inf")

    def reap(self) -> bool:
        """After SIGCHLD: orphans that have become our children. False if that has to be tried again.

        Workers are left to their pidfds, which tell the order of their exits; to us only where the kernel has none.
        """
        by_pid = {worker.pid: worker for worker in self.workers.values() if not worker.ended}
        while (pid := _dead_child()) > 0:
            if pid in by_pid:
                if by_pid[pid].pidfd >= 0:
                    return False
                self._reap(by_pid[pid])
            elif pid == self.guardian.pid:
                self.guardian.reap()
            else:
                os.waitpid(pid, os.WNOHANG)
        return True

    def close(self) -> None:
        """Whatever happened, nothing of the workers stays but what could not be killed."""
        give_up = time.monotonic() + 5.0
        while (pids := set(self._descendants()) - self._stuck) and time.monotonic() < give_up:
            tree.kill(pids, signal.SIGKILL)
            for worker in self.workers.values():
                self._reap(worker)
            self.reap()
            if tree.running(pids, 0, ""):
                time.sleep(SWEEP_S)
        for worker in self.workers.values():
            if worker.pidfd >= 0 and not worker.ended:
                os.close(worker.pidfd)
        self._outlets.finish()

    def _descendants(self) -> list[int]:
        return tree.descendants(os.getpid(), (self.guardian.pid, *self.spared))

    def _reap(self, worker: Worker) -> bool:
        """Take a worker's exit status if it has ended; whether it has."""
        if worker.ended:
            return True
        pid, status, usage = os.wait4(worker.pid, os.WNOHANG)
        if pid == 0:
            return False
        now = wall_s()
        worker.ended = True
        worker.peak_bytes = usage.ru_maxrss << 10  # getrusage(2): in kibibytes
        self.guardian.ended(worker.pid)
        if worker.pidfd >= 0:
            self._selector.unregister(worker.pidfd)
            os.close(worker.pidfd)
        code = os.waitstatus_to_exitcode(status)
        progress = self._progress.read() if self._progress else NO_PROGRESS
        self.events.append(WorkerExited(worker.spec.rank, self._failure(worker, code, now) if code else None, progress))
        if worker.spec.first and not code:
            self._start_waiting()
        return True

    def _failure(self, worker: Worker, code: int, now: float) -> Failure:
        spec, number = worker.spec, max(0, -code)
        shell_code = 128 + number if number else code
        self._outlets.sync()
        errors = tail(worker.err_log, worker.err_start) if worker.err_log else ()
        log = worker.err_log if errors else worker.log
        lines = errors or tail(worker.log, worker.log_start)
        killed = oom.explain(self._group, self._oom_before, oom.count(self._group)) if number == signal.SIGKILL else ""
        said = errorfile.read(spec.set_env.get(errorfile.VARIABLE, ""))
        fenced = number == signal.SIGKILL and self.guardian.has_acted(time.monotonic())
        told = " ".join(spec.set_env.values())
        cause, detail = FENCED if fenced else classify(shell_code, number, lines, killed, said, told)
        who = (spec.rank, spec.local_rank, self._place.node, self._place.host, worker.pid)
        consequence = worker.told and not worker.ending_at
        return Failure(*who, shell_code, number, worker.ending_at or now, cause, detail, log, lines, consequence, spec.role)


def _forbid_cores(workers: list[Worker]) -> None:
    """SIGABRT is sent for Python's fault handler; a core file for each of many workers would fill the disk."""
    import resource

    for worker in workers:
        try:
            resource.prlimit(worker.pid, resource.RLIMIT_CORE, (0, resource.prlimit(worker.pid, resource.RLIMIT_CORE)[1]))
        except (OSError, ValueError):
            pass


def _dead_child() -> int:
    """A child that has ended and not been reaped; 0 if there is none."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0
    return found.si_pid if found else 0


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError:  # a kernel before 5.3: SIGCHLD tells, later and without order
        return -1


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # a new child has not made its own group yet: it dies with its first instruction
        os.kill(pid, number)
