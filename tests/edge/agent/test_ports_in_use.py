"""Workers that find the port taken that slaunch chose for them: the attempt is repeated with new ones."""

from __future__ import annotations

import socket
from pathlib import Path

from .job import Job, python, shell

CODE = """
import os, socket
port, attempt = int(os.environ["PORT"]), int(os.environ.get("ATTEMPT", 0))
print("port", port, flush=True)
if 0 < attempt < {taken}:  # stands for another process, which was quicker
    other = socket.create_server(("127.0.0.1", port))
socket.create_server(("127.0.0.1", port)).close()
"""


def port_of(server: socket.socket) -> dict[str, str]:
    """The first attempt gets a port that this process has."""
    return {"PORT": str(server.getsockname()[1])}


def test_p30_an_attempt_that_found_its_port_in_use_is_repeated_with_a_new_one(tmp_path: Path) -> None:
    """Though no restarts are wanted; the other node's worker is started anew as well."""
    other = socket.create_server(("127.0.0.1", 0))
    again = shell('echo attempt ${ATTEMPT:-0}; [ "${ATTEMPT:-0}" = 2 ] && exit 0; exec sleep 600')
    with other, Job(tmp_path, [[python(CODE.format(taken=2))], [again]], new_ports=True, worker_env=port_of(other)) as job:
        assert job.wait() == [0, 0], job.text("err.0")
        ports = [line.split()[1] for line in job.log(0).splitlines() if line.startswith("port")]
        assert len(set(ports)) == 3
        assert "attempt 2" in job.log(1)
        said = job.text("err.0")
        assert said.count("rank 0 on n0 found its port in use; attempt") == 2
        assert job.report()["verdict"]["outcome"] == "success"


def test_a_port_that_is_always_taken_ends_the_job(tmp_path: Path) -> None:
    other = socket.create_server(("127.0.0.1", 0))
    given = {"new_ports": True, "options": {"max_restarts": 1}, "worker_env": port_of(other)}
    with other, Job(tmp_path, [[python(CODE.format(taken=99))]], **given) as job:
        assert job.wait() == [1]
        assert job.report()["attempt"] == 4, "three times for the port, and the one restart"
        assert "Address already in use" in job.text("err.0")
