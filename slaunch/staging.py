"""`--stage`: copies of files, archives or folders on every node's own disk before the workers start.

Under Slurm the first task sends each of them once, by sbcast, which spreads it over the nodes as a tree; a folder travels as one
archive. Where that does not work every node reads the source itself, which it must then see. All tasks know after each part
whether it went well everywhere, and end with the same error if it did not.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from slaunch.allocation.values import Task
from slaunch.errors import OutputError, SlaunchError
from slaunch.frozen import dataclass
from slaunch.node import stage
from slaunch.options import Options
from slaunch.plan.staged import Item, folder, items
from slaunch.plan.values import Plan
from slaunch.rendezvous.meet import Meeting
from slaunch.report.style import counted, duration, size


@dataclass(frozen=True)
class Sent:
    """What the first task has sent to `path` on every node: how many bytes (-1 = nothing), and whether it is a packed folder."""

    path: str
    bytes: int
    packed: int


@dataclass(frozen=True)
class Ground:
    """All that staging has to go on."""

    task: Task
    meeting: Meeting
    place: stage.Place
    end: float
    say: Callable[[str], None]

    @property
    def first(self) -> bool:
        """Whether this is the first task."""
        return self.meeting.membership.rank == 0


def staged(task: Task, plan: Plan, meeting: Meeting, options: Options, say: Callable[[str], None]) -> stage.Place:
    """Make all copies on this node; what it returns removes them at its end, as a context manager.

    Args:
        task: this task.
        plan: the job.
        meeting: its tasks.
        options: what to copy, where to, and in what time.
        say: how to tell the user something, on the first task only.

    Raises:
        OutputError: it did not work on some node; all tasks raise it.
        RendezvousError: some task did not answer in time.
    """
    wanted = items(options, plan.job)
    end = time.monotonic() + options.stage_timeout_s
    place: stage.Place | None = None

    def prepare() -> str:
        nonlocal place
        place = stage.Place(folder(options, plan.job), [item.target for item in wanted])
        return ""

    end_in_order()
    try:
        together(meeting, end, prepare)
        assert place is not None
        ground = Ground(task, meeting, place, end, say)
        for number, item in enumerate(wanted):
            one(item, number, ground)
    except BaseException:
        if place is not None:
            place.close()
        raise
    return place


def staged_late(options: Options, say: Callable[[str], None]) -> stage.Place:
    """Make all copies on a node that comes to a running job, of which not even the name is known yet: see `Place.rename`.

    Raises:
        OutputError: it did not work.
    """
    began = time.monotonic()
    name = f"late-{os.uname().nodename}-{os.getpid()}"
    wanted = items(options, name)
    end_in_order()
    place = stage.Place(folder(options, name), [item.target for item in wanted])
    try:
        for item in wanted:
            settle(item, Sent("", -1, 0), began + options.stage_timeout_s)
    except BaseException:
        place.close()
        raise
    say(f"staged {', '.join(item.source for item in wanted)} in {duration(time.monotonic() - began)}")
    return place


def end_in_order() -> None:
    """From now on SIGTERM ends this process as an error does, so that copies are removed. While workers run the agent takes its
    signals from a descriptor, and this has no effect."""
    signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def one(item: Item, number: int, ground: Ground) -> None:
    """One copy on all nodes."""
    began = time.monotonic()
    path = os.path.join(ground.place.folder, f".sent-{number}")
    answers = together(ground.meeting, ground.end, lambda: send(item, path, ground) if ground.first else "")
    sent = Sent(path, *map(int, answers[0].split()))
    took_s = time.monotonic() - began
    together(ground.meeting, ground.end, lambda: settle(item, sent, ground.end))
    much = f", {size(sent.bytes)} by sbcast in {duration(took_s)}" if sent.bytes >= 0 else ""
    nodes = counted(len({facts.host for facts in ground.meeting.membership.facts}), "node")
    ground.say(f"staged {item.source} to {item.target} on {nodes} in {duration(time.monotonic() - began)}{much}")


def send(item: Item, path: str, ground: Ground) -> str:
    """On the first task: send the source to `path` on all nodes. Size, and 1 for a packed folder; "-1 0" = nothing was sent."""
    allocation = ground.task.allocation
    if not os.path.lexists(item.source):
        seen = f"no such file or folder, seen from {os.uname().nodename}"
        raise OutputError(f"make copies of {item.source}", seen, "check the path of --stage")
    if ground.task.slot.size == 1 or allocation.launcher != "slurm" or not allocation.step:
        return "-1 0"
    packed, source = f"{path}.tar", item.source
    try:
        if os.path.isdir(item.source):
            stage.pack(item.source, packed, ground.end)
            source = packed
        stage.run(("sbcast", "--preserve", f"--jobid={allocation.job}.{allocation.step}", source, path), ground.end)
        return f"{stage.size_bytes(source)} {int(source == packed)}"
    except OutputError as error:
        ground.say(f"note: --stage: every node reads {item.source} itself: {error.seen}")
        return "-1 0"
    finally:
        stage.remove((packed,))


def settle(item: Item, sent: Sent, end: float) -> str:
    """On each node: the copy, from what was sent, or from the source if that has not come."""
    came = sent.bytes >= 0 and stage.size_bytes(sent.path) == sent.bytes
    source = sent.path if came else item.source
    if item.unpack or (came and sent.packed):
        stage.unpack(source, item.target, end)
    elif came:
        stage.move(source, item.target)
    else:
        stage.copy(source, item.target, end)
    stage.remove((sent.path,))
    return ""


def together(meeting: Meeting, end: float, work: Callable[[], str]) -> Sequence[str]:
    """Do a part on every task and exchange what came of it: everybody's answers, or the first error of all.

    Raises:
        OutputError: some task had an error.
    """
    import json

    try:
        mine = {"answer": work()}
    except SlaunchError as error:
        mine = {"host": os.uname().nodename, "wanted": error.wanted, "seen": error.seen, "todo": error.todo}
    everybody = [json.loads(each) for each in meeting.exchange(json.dumps(mine).encode(), end)]
    failed = next((each for each in everybody if "wanted" in each), None)
    if failed:
        raise OutputError(f"{failed['wanted']} on {failed['host']}", failed["seen"], failed["todo"])
    return [each["answer"] for each in everybody]
