"""What a start costs: modules that an ordinary job does not need are not loaded, and the process ends at once."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

FRAMEWORKS = ("mpi4py", "torch", "paddle", "numpy", "psutil", "pynvml")
STANDARD = (
    *("asyncio", "concurrent.futures", "dataclasses", "encodings.idna", "hashlib", "heapq", "hmac", "importlib.metadata"),
    *("inspect", "logging", "multiprocessing", "pathlib", "random", "subprocess", "tempfile", "threading", "typing"),
    *("urllib.parse", "uuid"),
)
OWN = (
    *("slaunch.agent.exporter", "slaunch.agent.pump", "slaunch.api", "slaunch.channel.hub", "slaunch.doctor", "slaunch.late"),
    *("slaunch.node.devices.custom", "slaunch.rendezvous.library", "slaunch.rendezvous.mpi_child", "slaunch.report.handover"),
    *("slaunch.slurm.why", "slaunch.slurm.client", "slaunch.staging", "slaunch.submit", "slaunch.tune"),
)


def python(cwd: Path, program: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Without `site`, whose `.pth` files import what they like."""
    argv = [sys.executable, "-S", "-c", program, *args]
    return subprocess.run(argv, cwd=cwd, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60)


def test_p59_an_ordinary_job_loads_only_what_it_needs(tmp_path: Path) -> None:
    program = (
        "import sys; from slaunch.cli.main import main\n"
        "code = main(['--nproc_per_node', '2', '--log_dir', 'logs', '/bin/true'])\n"
        f"print(code, sorted(set(sys.modules) & {set(FRAMEWORKS + STANDARD + OWN)!r}))"
    )
    done = python(tmp_path, program)
    assert done.stdout == "0 []\n", done.stderr


def test_p59_nor_does_a_meeting_load_more(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from slaunch.rendezvous import agents, check, codec, mpi, resolve, slurm, tcp\n"
        "from slaunch.channel import munge, succession\n"
        "resolve.look_up(sys.argv[1])\n"
        f"print(sorted(set(sys.modules) & {set(FRAMEWORKS + STANDARD)!r}))"
    )
    done = python(tmp_path, program, os.uname().nodename)
    assert done.stdout == "[]\n", done.stderr


def test_nothing_is_lost_where_the_process_ends_at_once(tmp_path: Path) -> None:
    """Output that is still held back is written, and what others have registered for the end is done."""
    program = "import atexit; from slaunch.cli.main import main; atexit.register(print, 'registered'); main()"
    done = python(tmp_path, program, "--version")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["registered"]), done.stderr
    done = python(tmp_path, "from slaunch.cli.main import main; main(); print('it went on')", "--nproc_per_node", "1", "nosuch")
    assert (done.returncode, done.stdout) == (127, ""), done.stderr
