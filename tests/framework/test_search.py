"""The GPT example under the tuner on four nodes, with every fault on the way; the parallelism is real where it matters."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.search import BEST, BUDGET_MIB, TRAIN, Search

SHARDED, REPLICATED = "2-1-2-4-1", "1-1-1-2-0"
"""Tensor parallelism, sharding and recomputation; and four whole copies, for which the memory does not suffice."""


def one_process(folder: Path) -> "subprocess.Popen[str]":
    """The same training in a single process."""
    words = ["--nproc-per-node", "1", "--log-dir", str(folder / "alone"), TRAIN, "--steps", "2", "--micro-batch", "8"]
    return subprocess.Popen([sys.executable, "-m", "slaunch", *words], cwd=folder, stdout=subprocess.PIPE, text=True)


@pytest.mark.timeout(900)
def test_f246_f248_f266_f269_f270_f271_f272_f273_f323_f326_p70_p104_w27_w29_w58_the_best_is_found_whatever_happens(
    cluster: Cluster, tmp_path: Path
) -> None:
    """26 settings; trials lack memory, hang and crash, the tuner is killed, the job requeued, a node dies."""
    search = Search(cluster, (BEST, SHARDED, REPLICATED), {"warmup_time": 7, "max_time_per_task": 200})
    search.run(timeout=400)
    search.check()
    results = search.results()
    assert results[REPLICATED]["status"] == "oom"
    assert results[SHARDED]["peak_mib"] < results[BEST]["peak_mib"] < BUDGET_MIB
    logs = [path.read_text() for path in Path(results[BEST]["folder"]).glob("workerlog.*")]
    peaks = [float(peak) for log in logs for peak in re.findall(r"max_memory_allocated: ([\d.]+)", log)]
    assert len(set(peaks)) > 1
    assert results[BEST]["peak_mib"] == max(peaks), "the largest of all ranks counts"
    assert len(search.losses()) == 3
    with one_process(tmp_path) as alone:
        said, _ = alone.communicate(timeout=120)
    (loss,) = re.findall(r"final loss: ([\d.]+)", said)
    assert abs(float(loss) - search.losses()["best_cfg"]) < 0.001, "parallelism does not change what is learnt"
