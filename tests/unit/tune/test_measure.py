"""From logs to figures: windows, confidence, memory, classes of ends."""

import math
from pathlib import Path
from typing import Any

import pytest
from support.studies import make, setting

from slaunch.agent.values import Failure, Lost, RunReport, Stopped, Verdict
from slaunch.frozen import asdict, replace
from slaunch.node.devices.sampler import TABLE
from slaunch.node.values import Problem
from slaunch.tune.measure.logs import Eyes, has_logs, read_logs
from slaunch.tune.measure.memory import peak_memory, peak_of_devices, peak_of_workers, sampled_peak
from slaunch.tune.measure.stats import Figure, figure, over_ranks, window
from slaunch.tune.trial.classify import classify, read_report
from slaunch.tune.trial.values import Ended, Record
from slaunch.tune.values import Metric

METRIC = Metric("ips", maximize=True)


@pytest.mark.parametrize(
    ("count", "warmup", "width", "kept"),
    [
        (0, -1, 10, []),
        (1, -1, 10, [1]),
        (9, -1, 10, [9]),
        (10, -1, 10, [10]),
        (13, -1, 10, [10, 11, 12, 13]),
        (25, -1, 10, list(range(16, 26))),
        (5, 2, 10, [3, 4, 5]),
        (5, 2, 2, [4, 5]),
        (5, 9, 10, []),
    ],
)
def test_f245_w11_windows(count: int, warmup: int, width: int, kept: list[int]) -> None:
    assert list(window(range(1, count + 1), warmup, width)) == kept


def test_f245_means_have_five_decimals() -> None:
    assert figure([1.0, 2.0, 2.0]) == Figure(1.66667, pytest.approx(1.4342, rel=1e-3), 3)
    assert figure([5.0]) == Figure(5.0, None, 1)
    assert figure([]) is None


def test_w11_confidence_of_the_mean() -> None:
    found = figure([10.0, 12.0, 14.0])
    assert found is not None
    assert found.error == pytest.approx(4.30 * 2.0 / math.sqrt(3))


def test_w02_figures_that_are_no_numbers() -> None:
    found = figure([1.0, math.nan, math.inf])
    assert found is not None
    assert math.isnan(found.value)
    both = over_ranks(METRIC, [[1.0], [math.inf]])
    assert both is not None
    assert math.isnan(both.value)


@pytest.mark.parametrize(("combine", "value"), [("mean", 2.0), ("min", 1.0), ("max", 3.0), ("sum", 4.0)])
def test_w29_figures_of_several_ranks(combine: str, value: float) -> None:
    found = over_ranks(replace(METRIC, combine=combine), [[1.0], [3.0], []])
    assert found == Figure(value, None, 1)
    assert over_ranks(METRIC, [[], []]) is None


# -- logs ---------------------------------------------------------------------------------------------------------------


def write(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder)


def test_f245_w29_the_metric_of_any_rank(tmp_path: Path) -> None:
    """The last pipeline stage tells the metric, not rank 0."""
    folder = write(tmp_path, workerlog__0="nothing\n", workerlog__1="ips: 3\nips: 4\n", other__0="ips: 9\n")
    seen = read_logs(folder, Eyes(make(metric_cfg={"name": "ips", "OptimizationDirection": "Maximize"})))
    assert list(seen.samples.values()) == [(3.0, 4.0)]


def test_f246_f248_f249_f250_what_logs_tell(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        workerlog__0="tokens_per_sec: 5\nTraining Completed.\nmax_memory_allocated: 100\n",
        workerlog__1="max_memory_allocated: 300\nValueError: bad\nCUDA out of memory. Tried\nan error\nan error\n",
    )
    seen = read_logs(folder, Eyes(make()))
    assert seen.completed
    assert seen.peak == 300
    assert seen.oom == "CUDA out of memory. Tried"
    assert seen.errors == ("ValueError: bad", "an error")


def test_f250_only_the_last_lines_are_errors(tmp_path: Path) -> None:
    folder = write(tmp_path, workerlog__0="an early error\n" + "fine\n" * 100 + "late Error\n")
    assert read_logs(folder, Eyes(make())).errors == ("late Error",)


def test_w02_ambiguous_lines_are_counted_and_not_used(tmp_path: Path) -> None:
    folder = write(tmp_path, workerlog__0="tokens_per_sec: 1 tokens_per_sec: 2\ntokens_per_sec: 7\n")
    seen = read_logs(folder, Eyes(make()))
    assert (list(seen.samples.values()), seen.ambiguous) == ([(7.0,)], 1)


def test_a_metric_file_counts_alone(tmp_path: Path) -> None:
    folder = write(tmp_path, workerlog__0="tokens_per_sec: 1\n", metrics='{"tokens_per_sec": 8, "max_memory_allocated": 50}\n')
    seen = read_logs(folder, Eyes(make()))
    assert list(seen.samples.values()) == [(8.0,)]
    assert seen.peak == 50


def test_logs_in_folders_below_and_logs_that_are_not_there(tmp_path: Path) -> None:
    assert not has_logs(str(tmp_path))
    assert read_logs(str(tmp_path / "none"), Eyes(make())).samples == {}
    (tmp_path / "node0").mkdir()
    (tmp_path / "node0" / "workerlog.3").write_bytes(b"tokens_per_sec: 2 \xff\n")
    assert has_logs(str(tmp_path))
    assert list(read_logs(str(tmp_path), Eyes(make())).samples.values()) == [(2.0,)]


# -- memory -------------------------------------------------------------------------------------------------------------

GPU_LOG = """\
index,uuid,driver_version,name,gpu_serial,display_active,display_mode
0,GPU-1,550,NVIDIA H100,1,Disabled,Disabled

pid,process_name,gpu_uuid,gpu_name,used_memory

index,utilization_gpu,memory_total,memory_used,memory_free,timestamp
0,10,81559,500,81059,2026/01/01 10:00:00.000
1,10,81559,900,80659,2026/01/01 10:00:00.000
0,90,81559,700,80859,2026/01/01 10:00:05.000
"""


def sample(time: str, uuid: str, rank: str, mib: str) -> list[str]:
    """A row of the table of devices."""
    cells = {"time_s": time, "uuid": uuid, "rank": rank, "process_memory_mib": mib, "memory_used_mib": "900"}
    return [cells.get(name, "1") for name in TABLE.split(",")]


SAMPLES = [
    sample("1.0", "GPU-1", "0", "300"),
    sample("1.0", "GPU-1", "1", "100"),
    sample("1.0", "GPU-1", "", "500"),
    sample("2.0", "GPU-2", "2", "350"),
    sample("2.0", "GPU-3", "", ""),
]


def test_f247_the_most_memory_of_a_device() -> None:
    rows = [line.split(",") for line in GPU_LOG.splitlines()]
    assert peak_of_devices(rows) == 900
    assert peak_of_devices(rows[:3]) is None


def test_w10_only_the_workers_own_memory_counts() -> None:
    assert peak_of_workers(SAMPLES) == 400
    assert peak_of_workers(SAMPLES[4:]) is None


def test_f247_f330_w08_w10_the_best_source_counts_and_unknown_is_none(tmp_path: Path) -> None:
    assert sampled_peak(str(tmp_path)) is None
    (tmp_path / "auto_tuner_1.gpu.log").write_text(GPU_LOG)
    assert sampled_peak(str(tmp_path)) == 900
    (tmp_path / "devices.csv").write_text("\n".join([TABLE, *map(",".join, SAMPLES)]))
    assert sampled_peak(str(tmp_path)) == 400
    (tmp_path / "auto_tuner_1.gpu.log").write_text("broken")
    (tmp_path / "devices.csv").write_text("")
    assert sampled_peak(str(tmp_path)) is None


def test_f247_w08_w10_what_slaunch_reports_comes_first(tmp_path: Path) -> None:
    def told(**peak: int) -> dict[str, object]:
        return {"peaks": [{"rank": 0, "host_bytes": 0, "device_bytes": 0}, {"rank": 1, **peak}]}

    folder = str(tmp_path)
    assert peak_memory(told(device_bytes=3 << 20, host_bytes=9 << 20), folder, 2.0, on_host=False) == 3
    assert peak_memory(told(host_bytes=9 << 20), folder, 2.0, on_host=True) == 2
    assert peak_memory(told(host_bytes=9 << 20), folder, None, on_host=True) == 9
    assert peak_memory(told(host_bytes=9 << 20), folder, None, on_host=False) is None
    assert peak_memory({}, folder, None, on_host=True) is None


# -- the class of an end ------------------------------------------------------------------------------------------------

EXIT = Ended("exit", 0, started=True, start_s=1.0, run_s=2.0)
CUT = replace(EXIT, why="limit", code=143, run_s=60.0)
GOOD = Figure(5.0, None, 3)


def report(outcome: str, **fields: Any) -> dict[str, Any]:
    """A report as slaunch writes it, read back as the tuner does."""
    verdict = Verdict(outcome, fields.pop("code", 1), **fields)
    return dict(asdict(RunReport(verdict, verdict.code, True, "j", 0, 1, 1, "", 0.0, 1.0)))


def plain(value: Any) -> Any:
    """As JSON would have it."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def failure(rank: int, code: int, **fields: Any) -> Failure:
    return Failure(rank, rank, 0, "n1", 7, code, fields.pop("signal", 0), 0.0, **fields)


def seen(text: str = "", tmp: dict[str, str] | None = None) -> Any:
    eyes = Eyes(make())
    return eyes.read(text.splitlines(), "workerlog.0")


LOST = report("lost", code=75, lost=(Lost(1, "n2", "its node is down", 0.0),))
START = report("start", code=73, problem=Problem(73, "write logs", "no space", "make room"), problem_host="n3")
STOPPED = report("signal", code=143, stopped=Stopped(15, 0, "n1", "", 0.0))
CRASHED = report("failure", code=1, first=failure(3, 1, detail="RuntimeError: bad"))
KILLED = report("failure", code=139, first=failure(2, 139, signal=11))
OTHER_OOM = report("failure", code=1, first=failure(0, 1, cause="peer"), others=(failure(3, 1, cause="memory"),))
WELL = report("success", code=0)


@pytest.mark.parametrize(
    ("ended", "told", "text", "metric", "status", "detail"),
    [
        (EXIT, WELL, "", GOOD, "ok", ""),
        (EXIT, WELL, "", None, "error", "no rank told the metric"),
        (EXIT, WELL, "tokens_per_sec: 1", None, "error", "of 1 samples of the metric the warm-up takes all"),
        (EXIT, WELL, "tokens_per_sec: 1 tokens_per_sec: 2", None, "error", "1 lines give it two values"),
        (EXIT, WELL, "", Figure(math.nan, None, 3), "error", "no finite number"),
        (EXIT, WELL, "CUDA out of memory.", GOOD, "oom", "Out of memory"),
        (replace(EXIT, code=1), CRASHED, "", GOOD, "error", "rank 3: exit code 1: RuntimeError: bad"),
        (replace(EXIT, code=139), KILLED, "some error", None, "error", "rank 2: signal 11: some error"),
        (replace(EXIT, code=1), CRASHED, "torch.OutOfMemoryError: x", None, "oom", "Out of memory"),
        (replace(EXIT, code=1), OTHER_OOM, "", None, "oom", "Out of memory"),
        (CUT, STOPPED, "", GOOD, "timeout", "ended by its time limit after 60 s"),
        (CUT, {}, "", None, "timeout", "ended by its time limit"),
        (CUT, STOPPED, "training completed.", GOOD, "ok", ""),
        (CUT, STOPPED, "training completed.", None, "error", "no rank told the metric"),
        (CUT, STOPPED, "CUDA out of memory.", GOOD, "oom", ""),
        (
            replace(EXIT, why="start", started=False, code=143, start_s=300.0),
            {},
            "",
            None,
            "infrastructure",
            "no worker had started",
        ),
        (replace(EXIT, code=76), report("hang", code=76), "", GOOD, "timeout", "--hang-timeout"),
        (replace(EXIT, code=124), report("time", code=124), "", GOOD, "timeout", "--time-limit"),
        (replace(EXIT, code=75), LOST, "", GOOD, "infrastructure", "lost n2: its node is down"),
        (replace(EXIT, code=73, started=False), START, "", None, "infrastructure", "n3: cannot write logs: no space"),
        (replace(EXIT, code=143), STOPPED, "", GOOD, "infrastructure", "stopped by signal 15"),
        (replace(EXIT, code=1, started=False), {}, "", None, "infrastructure", "srun: error: Unable to create step"),
        (replace(EXIT, code=69), {}, "", None, "infrastructure", "srun: error"),
        (replace(EXIT, code=127, started=False), {}, "", None, "error", "srun: error"),
        (replace(EXIT, code=137), {}, "", None, "infrastructure", "it left no report"),
        (replace(EXIT, why="asked", code=143), STOPPED, "", GOOD, "cancelled", ""),
    ],
)
def test_f246_f251_f252_f269_f329_w11_w61_classes(
    ended: Ended, told: dict[str, Any], text: str, metric: Figure | None, status: str, detail: str
) -> None:
    end = classify(ended, plain(told), seen(text), metric, "srun: error: Unable to create step", count_cut=False)
    assert (end.status, detail in end.detail) == (status, True), end


def test_p33_ids_of_the_fabric_that_are_used_up() -> None:
    end = classify(replace(EXIT, code=1), {}, seen(), None, "mpiexec: No VNIs available in internal allocator.", count_cut=False)
    assert end.status == "infrastructure"
    assert "--step-args=--no-vni" in end.detail


def test_w11_a_cut_trial_counts_only_if_the_user_wants_it() -> None:
    assert classify(CUT, {}, seen(), GOOD, "", count_cut=True).status == "ok"
    assert classify(CUT, {}, seen(), None, "", count_cut=True).status == "timeout"


def test_a_report_that_is_not_there_or_torn(tmp_path: Path) -> None:
    assert read_report(str(tmp_path)) == {}
    (tmp_path / "report.json").write_text('{"verdict": {"outc')
    assert read_report(str(tmp_path)) == {}


@pytest.mark.parametrize(
    ("status", "metric", "memory", "bits"),
    [("ok", 1.0, 5.0, 0), ("error", None, 5.0, 1), ("oom", None, None, 7), ("ok", 1.0, None, 4)],
)
def test_f251_error_bits(status: str, metric: float | None, memory: float | None, bits: int) -> None:
    assert Record(1, "", "", setting(), status, metric=metric, memory_mib=memory).bits == bits
