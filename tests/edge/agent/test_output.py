"""Log files that slaunch writes itself, and a console that several workers share: real agents and workers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .job import Job, python, shell, wait_for

FAST = 200_000
STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4} ", re.MULTILINE)


def lines(count: int, text: str = "line") -> list[str]:
    return [sys.executable, "-c", f"import sys; sys.stdout.writelines(f'{text} {{i}}\\n' for i in range({count}))"]


def until_told(folder: Path, code: str) -> list[str]:
    """A worker that ends once the test has made the file `go`."""
    return python(f"import os, sys, time\n{code}\nwhile not os.path.exists('{folder}/go'): time.sleep(0.02)")


def writer_of(job: Job) -> int:
    """The process that writes the logs; 0 if there is none."""
    for line in job.left():
        pid = int(line.split()[0])
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read() == "slaunch-logs\n":
                    return pid
        except FileNotFoundError:
            continue
    return 0


# -- files --------------------------------------------------------------------------------------------------------


def test_f141_w47_w48_fast_printers_lose_no_line_with_timestamps_and_tee(tmp_path: Path) -> None:
    options = {"log_timestamps": True, "tee": [0, 1]}
    with Job(tmp_path, [[lines(FAST), lines(FAST)]], options=options) as job:
        assert job.wait() == [0]
        wanted = "".join(f"line {i}\n" for i in range(FAST))
        for rank in (0, 1):
            text = job.log(rank)
            assert len(STAMP.findall(text)) == FAST, "each line has its time"
            assert STAMP.sub("", text) == wanted
        shown = job.text("out.0")
        left_out = sum(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) lines? w\w+ left out here", shown))
        assert left_out + len(re.findall(r"^\[\d\] \d{4}-", shown, re.MULTILINE)) == 2 * FAST, "what is not shown is counted"
        assert f"the whole output is in {job.log_dir}/workerlog.1" in shown


def test_workers_write_their_files_themselves_unless_something_else_is_asked_for(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("readlink /proc/self/fd/1")]]) as job:
        assert job.wait() == [0]
        assert job.log(0) == f"{job.log_dir}/workerlog.0\n"


def test_output_and_errors_apart_and_the_report_has_the_errors(tmp_path: Path) -> None:
    failing = shell("echo step 1; echo trouble >&2; exit 4")
    with Job(tmp_path, [[failing]], apart=True, options={"tee_stream": "err"}) as job:
        assert job.wait() == [4]
        assert (job.log(0), job.text("logs/workerlog.0.err"), job.text("out.0")) == ("step 1\n", "trouble\n", "trouble\n")
        first = job.report()["verdict"]["first"]
        assert (first["tail"], first["log"]) == (["trouble"], f"{job.log_dir}/workerlog.0.err")


def test_w48_rotation_keeps_whole_lines_and_the_console_follows(tmp_path: Path) -> None:
    options = {"log_max_bytes": 10_000, "log_keep": 3}
    with Job(tmp_path, [[lines(5000)]], options=options) as job:
        assert job.wait() == [0]
        names = [name for name in sorted(os.listdir(job.log_dir)) if name.startswith("workerlog")]
        assert names == ["workerlog.0", "workerlog.0.1", "workerlog.0.2", "workerlog.0.3"]
        pieces = [job.text(f"logs/{name}") for name in (*reversed(names[1:]), "workerlog.0")]
        assert all(piece.endswith("\n") and len(piece) <= 10_000 for piece in pieces)
        assert "".join(f"line {i}\n" for i in range(5000)).endswith("".join(pieces))


def test_f143_the_last_lines_of_a_worker_whose_log_others_write(tmp_path: Path) -> None:
    code = "print('\\n'.join(map(str, range(100)))); sys.exit(6)"
    with Job(tmp_path, [[python(f"import sys; {code}")]], options={"log_writer": "slaunch", "log_max_bytes": 100}) as job:
        assert job.wait() == [6]
        assert job.report()["verdict"]["first"]["tail"][-1] == "99"


def test_attempts_and_the_line_between_them(tmp_path: Path) -> None:
    worker = shell(f"echo $ATTEMPT; [ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; exit 3; }}")
    with Job(tmp_path, [[worker]], options={"max_restarts": 1, "log_writer": "slaunch"}) as job:
        assert job.wait() == [0]
        assert re.fullmatch(r"\n---- slaunch: attempt 1, .* ----\n1\n", job.log(0))


# -- disks that do not work ---------------------------------------------------------------------------------------


def test_no_worker_waits_for_a_disk_that_hangs(tmp_path: Path) -> None:
    """The log is a pipe that nobody reads: each write to it hangs, as with a file server that is gone."""
    (tmp_path / "logs").mkdir()
    os.mkfifo(tmp_path / "logs" / "workerlog.0")
    reader = os.open(tmp_path / "logs" / "workerlog.0", os.O_RDONLY | os.O_NONBLOCK)
    code = f"for i in range(100): print('x' * (1 << 20))\nopen('{tmp_path}/done', 'w')"
    options = {"log_writer": "slaunch", "tee": [], "status_interval_s": 0}
    with Job(tmp_path, [[python(code)]], options=options) as job:
        job.started("done")
        os.set_blocking(reader, True)
        read = 0
        end = b""
        while data := os.read(reader, 1 << 20):
            read += len(data)
            end = (end + data)[-200:]
        assert job.wait() == [0]
        assert 64 << 20 <= read < 100 << 20
        assert re.search(rb"---- slaunch: \d+ lines \(\d+ bytes\) are missing here, the disk did not take them ----\n$", end)
    os.close(reader)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_told_once_and_survived(tmp_path: Path, small_disk: Path) -> None:
    worker = until_told(tmp_path, "for i in range(20_000): print(i, 'x' * 100)")
    with Job(tmp_path, [[worker]], log_dir=str(small_disk / "logs"), options={"log_writer": "slaunch", "tee": []}) as job:
        wait_for(lambda: "No space left on device" in job.text("err.0"), "word of the full disk")
        subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
        (tmp_path / "go").touch()
        assert job.wait() == [0]
        assert (small_disk / "logs" / "workerlog.0").read_text() == "".join(f"{i} {'x' * 100}\n" for i in range(20_000))
        assert job.text("err.0").count("No space left on device") == 1


def test_a_full_disk_is_told_where_workers_write_themselves(tmp_path: Path, small_disk: Path) -> None:
    worker = until_told(tmp_path, "try:\n  while True: print('x' * 1000)\nexcept OSError: pass")
    with Job(tmp_path, [[worker]], log_dir=str(small_disk / "logs"), options={"status_interval_s": 0.1, "tee": []}) as job:
        wait_for(lambda: "the disk of the logs is full" in job.text("err.0"), "word of the full disk")
        (tmp_path / "go").touch()
        job.wait()
        assert job.text("err.0").count("the disk of the logs is full") == 1


def test_the_process_that_writes_the_logs_is_killed_and_another_one_goes_on(tmp_path: Path) -> None:
    worker = until_told(tmp_path, "print('before')\nwhile not os.path.exists('GO/more'): time.sleep(0.02)\nprint('after')")
    worker[-1] = worker[-1].replace("GO", str(tmp_path))
    with Job(tmp_path, [[worker]], options={"log_writer": "slaunch"}) as job:
        wait_for(lambda: job.log(0) == "before\n", "the first line")
        os.kill(wait_for(lambda: writer_of(job), "the process that writes the logs"), signal.SIGKILL)
        (tmp_path / "more").touch()
        wait_for(lambda: job.log(0) == "before\nafter\n", "a line written by the next one")
        (tmp_path / "go").touch()
        assert job.wait() == [0]
        assert "the process that writes the logs was ended; another one goes on" in job.text("err.0")


# -- the console --------------------------------------------------------------------------------------------------


def test_f319_w47_the_first_nodes_console_has_all_nodes_lines(tmp_path: Path) -> None:
    commands = [[shell("echo a; printf 'b \\377'")], [shell("echo c")], [shell("printf '10 %%\\r20 %%'")]]
    with Job(tmp_path, commands, options={"tee": [-1]}) as job:
        assert job.wait() == [0, 0, 0]
        assert sorted(job.text("out.0").splitlines()) == ["[0] a", "[0] b \ufffd", "[1] c", "[2] 20 %"]
        assert (job.text("out.1"), job.text("out.2")) == ("", "")


def test_f319_without_a_limit_each_node_shows_its_own_lines(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("echo a")], [shell("echo c")]], options={"tee": [-1], "tee_limit": 0}) as job:
        assert job.wait() == [0, 0]
        assert (job.text("out.0"), job.text("out.1")) == ("[0] a\n", "[1] c\n")


def test_w47_other_nodes_lines_are_shown_while_they_run_and_only_those_that_match(tmp_path: Path) -> None:
    worker = until_told(tmp_path, "print('epoch 1'); print('noise')")
    with Job(tmp_path, [[worker], [worker]], options={"tee": [0, 1], "tee_match": "epoch [0-9]"}) as job:
        wait_for(lambda: sorted(job.text("out.0").splitlines()) == ["[0] epoch 1", "[1] epoch 1"], "the lines of both nodes")
        (tmp_path / "go").touch()
        assert job.wait() == [0, 0]
        assert "noise" in job.log(1)
        assert "noise" not in job.text("out.0")


def test_w47_a_limit_holds_over_all_nodes(tmp_path: Path) -> None:
    with Job(tmp_path, [[lines(3000)], [lines(3000)]], options={"tee": [-1], "tee_limit": 10}) as job:
        assert job.wait() == [0, 0]
        shown = job.text("out.0").splitlines()
        for rank in (0, 1):
            own = [line for line in shown if line.startswith(f"[{rank}] line")]
            assert 20 <= len(own) < 1500
            assert any(line.startswith(f"[{rank}] ---- slaunch: ") for line in shown)
            assert job.log(rank).count("\n") == 3000


# -- the state from outside ---------------------------------------------------------------------------------------


def status(job: Job) -> dict[str, Any]:
    text = job.text("logs/status.json")
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def test_the_hub_writes_down_what_all_workers_do(tmp_path: Path) -> None:
    port = free_port()
    busy = until_told(tmp_path, "print('step 1'); held = bytearray(50 << 20); held[::4096] = bytes(len(held[::4096]))")
    options = {"status_interval_s": 0.1, "time_limit_s": 500, "metrics_file": f"{tmp_path}/figures.prom", "metrics_port": port}
    with Job(tmp_path, [[busy], [busy, busy]], options=options) as job:
        workers = wait_for(lambda: large(job) if len(large(job)) == 3 else None, "all workers, with their memory")
        assert [(each["rank"], each["state"], each["last"], each["out_lines"]) for each in workers] == [
            (rank, "running", "step 1", 1) for rank in (0, 1, 2)
        ]
        assert 0 < status(job)["left_s"] < 500
        assert os.stat(f"{job.log_dir}/status.json").st_mode & 0o777 == 0o600
        text = ask(port)
        assert 'slaunch_worker_output_bytes_total{job="job",node="1",host="n1",rank="2"} 7' in text
        os.kill(workers[2]["pid"], signal.SIGSTOP)
        wait_for(lambda: 'slaunch_workers{job="job",state="stopped"} 1' in ask(port), "the stopped worker")
        os.kill(workers[2]["pid"], signal.SIGCONT)
        (tmp_path / "go").touch()
        assert job.wait() == [0, 0]
        ended = status(job)
        assert (ended["state"], ended["outcome"], ended["code"]) == ("ended", "success", 0)
        assert {each["state"] for node in ended["nodes"] for each in node["workers"]} == {"ended"}
        assert 'slaunch_up{job="job"} 0' in (tmp_path / "figures.prom").read_text()


def large(job: Job) -> list[dict[str, Any]]:
    """Workers that hold much memory."""
    return [each for node in status(job).get("nodes", ()) for each in node["workers"] if each["host_bytes"] > 50 << 20]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        number: int = found.getsockname()[1]
        return number


def ask(port: int) -> str:
    """What Prometheus gets."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = b""
        while data := connection.recv(65536):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4"), head
    return body.decode()
