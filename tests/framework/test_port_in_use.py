"""A real framework finds its port taken: the attempt is repeated with another port, though no restarts are wanted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TAKE = """
import os, socket
attempt, rank = int(os.environ["SLAUNCH_ATTEMPT"]), int(os.environ["RANK"])
port = int(os.environ["MASTER_PORT"] if {torch} else os.environ["PADDLE_MASTER"].rpartition(":")[2])
if attempt == 0 and rank == 0:  # stands for another process, which was quicker
    other = socket.create_server(("", port))
"""
USE = {
    "torch": "import torch.distributed as dist\ndist.init_process_group('gloo')\ndist.barrier()\n",
    "paddle": "import paddle\npaddle.distributed.init_parallel_env()\n",
}


@pytest.mark.parametrize("framework", USE)
def test_p30_a_framework_that_finds_its_port_taken_gets_another(tmp_path: Path, framework: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(TAKE.format(torch=framework == "torch") + USE[framework] + "print('attempt', attempt, flush=True)\n")
    command = [sys.executable, "-m", "slaunch", "--nproc-per-node", "2", "--log-dir", str(tmp_path / "logs"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "found its port in use; attempt 1 starts on 1 node" in done.stderr
    assert "attempt 1" in done.stdout
