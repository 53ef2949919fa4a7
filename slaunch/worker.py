"""For programs that slaunch starts: a worker's place in its job.

    from slaunch import worker
    if worker.rank() == 0: ...

A program that was started without slaunch is the only worker of its job. These functions read the process's environment when they
are called; nothing else of slaunch is loaded.
"""

from __future__ import annotations

import os


def rank() -> int:
    """Number of this worker in the job, from 0."""
    return _number("SLAUNCH_RANK", 0)


def world_size() -> int:
    """Number of workers in the job."""
    return _number("SLAUNCH_WORLD_SIZE", 1)


def local_rank() -> int:
    """Number of this worker on its node, from 0."""
    return _number("SLAUNCH_LOCAL_RANK", 0)


def local_world_size() -> int:
    """Number of workers on this node."""
    return _number("SLAUNCH_LOCAL_WORLD_SIZE", 1)


def node_rank() -> int:
    """Number of this node in the job, from 0."""
    return _number("SLAUNCH_NODE_RANK", 0)


def attempt() -> int:
    """How often the job's workers have been started before."""
    return _number("SLAUNCH_ATTEMPT", 0)


def progress(step: int) -> None:
    """Tell slaunch how far the training has come, as a number that grows; `--max-no-progress` depends on it.

    It costs one write into memory. Call it from any worker, as often as you like; without slaunch it does nothing.
    """
    path = os.environ.get("SLAUNCH_PROGRESS_FILE")
    if path:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(file, b"%-20d\n" % step, 0)
        finally:
            os.close(file)


def complete() -> None:
    """Tell slaunch that nothing is left to do: the job is not put back into the queue, though it was asked to save and end.

    A program that ends well without having been asked to need not call it.
    """
    progress(10**18)


def should_stop() -> bool:
    """Whether the workers have been asked to save and end: by a signal, as the job's time runs out, or since it is being stopped.

    It costs one read from memory. Workers on different nodes may see it a moment apart: in a program whose workers wait for each
    other, let rank 0 ask and tell the others, so that all end after the same step.
    """
    return bool(stop_reason())


def stop_reason() -> str:
    """Why: "time" (the job's time runs out), the name of a signal, e.g. "SIGUSR2", "join" (nodes have come, with which all go on
    afterwards), or "stop" (it is being stopped); "" if not."""
    return _line("SLAUNCH_STOP_FILE")


def seconds_left() -> float:
    """Seconds until the job's time runs out, as the scheduler tells; infinite if it has no limit, or none is known (yet)."""
    import time

    end = _line("SLAUNCH_END_FILE")
    return float(end) - time.time() if end else float("inf")


def trial() -> dict[str, object]:
    """The tuner's settings for this run, by the names of its configuration, e.g. `trial()["mp_degree"]`; {} without the tuner."""
    import json

    found: dict[str, object] = json.loads(os.environ.get("SLAUNCH_TRIAL", "{}"))
    return found


def report(**figures: float) -> None:
    """Tell the tuner the figures of a step: `report(tokens_per_sec=812.5)`, by the metric's name in its configuration.

    Call it once for each step, from one worker or from several. It takes the place of figures in the logs. Without the tuner it
    does nothing.
    """
    path = os.environ.get("SLAUNCH_METRIC_FILE")
    if path:
        import json

        with open(f"{path}.{rank()}", "a", encoding="utf-8") as file:
            file.write(json.dumps(figures) + "\n")


def previous_rank() -> int:
    """This worker's rank in the attempt before; its rank in the first one."""
    return _number("SLAUNCH_PREVIOUS_RANK", rank())


def previous_world_size() -> int:
    """Number of workers in the attempt before; in the first one, of its own."""
    return _number("SLAUNCH_PREVIOUS_WORLD_SIZE", world_size())


def _line(name: str) -> str:
    """What a file that a variable names has in its line; "" without slaunch."""
    path = os.environ.get(name)
    if not path:
        return ""
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _number(name: str, alone: int) -> int:
    """A variable's number, or what holds for a program alone.

    Raises:
        ValueError: the variable was changed to something else.
    """
    return int(os.environ.get(name, alone))
