"""Lists too long for a variable reach Paddle's own code."""

import os
import re

import pytest
from support.cluster import Cluster
from support.jobs import PROGRAMS, folder_in, logs

PROGRAM = os.path.join(PROGRAMS, "endpoints.py")


@pytest.mark.parametrize("tasks", [1, 2])
def test_f93_f94_paddle_reads_left_out_endpoints(cluster: Cluster, tasks: int) -> None:
    folder = folder_in(cluster.scratch)
    launch = ("-N2", f"--ntasks-per-node={tasks}", "slaunch", "--nproc_per_node", "2", "--log_dir", folder, PROGRAM)
    done = cluster.srun(*launch, env={"PADDLE_ENV_LIMIT_LEN": "10"}, timeout=120)
    assert done.returncode == 0, done.stderr
    told = dict(re.findall(r"^(?:\[\d+\] )?endpoints (\d+) (\S+)$", logs(folder) or done.stdout, re.MULTILINE))
    assert set(told) == {"0", "1", "2", "3"}
    assert len(set(told.values())) == 1
    assert len(set(told["0"].split(","))) == 4
