"""Log files and the console copy, with real workers and a real agent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .job import Job, python, shell, wait_for

MANY = 200_000


def lines(count: int) -> list[str]:
    return [sys.executable, "-c", f"import sys; sys.stdout.writelines(f'line {{i}}\\n' for i in range({count}))"]


def test_f135_one_log_file_for_each_rank_with_output_and_errors(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("echo out; echo err >&2")] * 2, [shell("echo other")]]) as job:
        assert job.wait() == [0, 0]
        logs = [name for name in sorted(os.listdir(job.log_dir)) if not name.startswith("agent.")]
        assert logs == ["status.json", "workerlog.0", "workerlog.1", "workerlog.2"]
        assert (job.log(1), job.log(2)) == ("out\nerr\n", "other\n")


def test_f140_append_with_a_line_between_the_runs(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with Job(tmp_path, [[shell(f"echo {text}")]]) as job:
            assert job.wait() == [0]
            assert job.text("out.0") == f"{text}\n", "the console shows this run only"
    first, mark, second = job.log(0).splitlines()
    assert (first, second) == ("first", "second")
    assert mark.startswith("---- slaunch: attempt 0, ")


def test_f9_f140_overwrite(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with Job(tmp_path, [[shell(f"echo {text}")]], options={"log_overwrite": True}) as job:
            assert job.wait() == [0]
    assert job.log(0) == "second\n"


def test_f141_f294_w47_the_console_copy_is_complete(tmp_path: Path) -> None:
    with Job(tmp_path, [[lines(MANY), lines(1000)]]) as job:
        assert job.wait() == [0]
        assert job.text("out.0") == job.log(0)
        assert job.log(0).count("\n") == MANY


def test_f319_w47_chosen_ranks_with_their_number_in_front(tmp_path: Path) -> None:
    with Job(tmp_path, [[lines(MANY // 4)] * 3], options={"tee": [0, 2], "tee_limit": 0}) as job:
        assert job.wait() == [0]
        shown = job.text("out.0").splitlines()
        for rank in (0, 2):
            assert [line for line in shown if line.startswith(f"[{rank}] ")] == [
                f"[{rank}] line {i}" for i in range(MANY // 4)
            ]
        assert len(shown) == 2 * (MANY // 4)


def test_no_console_copy(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("echo quiet")]], options={"tee": []}) as job:
        assert job.wait() == [0]
        assert (job.text("out.0"), job.log(0)) == ("", "quiet\n")


def test_output_is_shown_while_the_worker_runs(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(f"echo early; while ! [ -e {tmp_path}/go ]; do sleep 0.05; done; echo late")]]) as job:
        wait_for(lambda: job.text("out.0") == "early\n", "the first line")
        (tmp_path / "go").touch()
        assert job.wait() == [0]
        assert job.text("out.0") == "early\nlate\n"


def test_one_ranks_progress_bar_reaches_the_console_as_it_is(tmp_path: Path) -> None:
    code = "import sys\nfor i in range(100): sys.stderr.write(f'\\r{i} %')\nsys.stderr.write('\\ndone\\n')"
    with Job(tmp_path, [[python(code)]]) as job:
        assert job.wait() == [0]
        with open(f"{job.folder}/out.0", "rb") as out, open(f"{job.log_dir}/workerlog.0", "rb") as log:
            assert out.read() == log.read()


def test_several_ranks_progress_bars_are_shown_as_lines(tmp_path: Path) -> None:
    bar = "import sys, time\nfor i in range(101): sys.stderr.write(f'\\r{i} %'); time.sleep(0.03)\n"
    code = bar + "sys.stderr.write('\\ndone\\n')"
    with Job(tmp_path, [[python(code)] * 2], options={"tee": [0, 1]}) as job:
        assert job.wait() == [0]
        for rank in (0, 1):
            shown = [line[4:] for line in job.text("out.0").split("\n") if line.startswith(f"[{rank}] ")]
            assert shown[-2:] == ["100 %", "done"]
            assert 3 <= len(shown) <= 12, "now and then, not every state"


def test_a_slow_reader_gets_everything_and_delays_nobody(tmp_path: Path) -> None:
    read, write = os.pipe()
    failing = shell(f"while ! [ -e {tmp_path}/go ]; do sleep 0.05; done; exit 3")
    with Job(tmp_path, [[lines(MANY // 10), failing]], stdout=write) as job:
        os.close(write)
        wait_for(lambda: job.log(0).count("\n") == MANY // 10, "the worker's end, though nobody reads")
        (tmp_path / "go").touch()
        shown = b""
        while data := os.read(read, 65536):
            shown += data
            time.sleep(0.002)
        os.close(read)
        assert job.wait() == [3]
        assert shown.decode() == job.log(0)


def test_a_reader_that_never_reads_does_not_hold_the_job(tmp_path: Path) -> None:
    read, write = os.pipe()
    with Job(tmp_path, [[lines(MANY // 10)]], stdout=write, limits={"console.NO_PROGRESS_S": 1.0}) as job:
        os.close(write)
        assert job.wait() == [0]
        assert "output were not shown" in job.text("err.0")
    os.close(read)


def test_a_reader_that_has_gone_away_does_no_harm(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with Job(tmp_path, [[lines(MANY // 10)]], stdout=write) as job:
        os.close(write)
        assert job.wait() == [0]


def test_a_log_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with Job(tmp_path, [[shell("echo never")]], log_dir=f"{tmp_path}/file/logs") as job:
        assert job.wait() == [73]
        assert "cannot write the workers' output" in job.text("err.0")
        assert f"{tmp_path}/file/logs: Not a directory" in job.text("err.0")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_full_before_the_start(tmp_path: Path, small_disk: Path) -> None:
    fill(small_disk)
    with Job(tmp_path, [[shell("echo never")]], log_dir=str(small_disk / "logs")) as job:
        assert job.wait() == [73]
        assert "No space left on device" in job.text("err.0")


def test_a_disk_that_fills_up_does_not_stop_the_agent(tmp_path: Path, small_disk: Path) -> None:
    """The worker sees the error, as it would without slaunch, and its end is told."""
    with Job(tmp_path, [[lines(MANY), shell("sleep 600")]], log_dir=str(small_disk / "logs")) as job:
        assert job.wait() not in ([0], [143])
        verdict = job.report()["verdict"]
        assert (verdict["outcome"], verdict["first"]["rank"]) == ("failure", 0)


def fill(place: Path) -> None:
    with open(place / "ballast", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_f143_the_tail_is_of_this_run_only(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("echo old trouble")]]) as job:
        job.wait()
    with Job(tmp_path, [[shell("exit 4")]]) as job:
        assert job.wait() == [4]
        assert job.report()["verdict"]["first"]["tail"] == []
        assert "old trouble" not in job.text("err.0")


def test_f143_the_tail_of_a_huge_log_with_a_huge_line(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('x' * 5_000_000 + '\\n' + '\\n'.join(map(str, range(100)))); sys.exit(6)"
    with Job(tmp_path, [[python(code)]], options={"tee": []}) as job:
        assert job.wait() == [6]
        assert job.report()["verdict"]["first"]["tail"] == [str(i) for i in range(80, 100)]
