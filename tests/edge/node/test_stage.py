"""Copies on a node's own disk: made, and gone in the end, also those of agents that were killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slaunch.errors import OutputError
from slaunch.node import stage
from slaunch.node.stage import LIST, Place
from slaunch.options import Options, Program
from slaunch.plan.staged import folder
from slaunch.staging import staged_late


def name(tmp_path: Path, job: str = "12.0") -> str:
    return str(tmp_path / f"slaunch-stage-{os.getuid()}-{job}")


def later() -> float:
    return time.monotonic() + 60


def test_p91_files_archives_and_folders(tmp_path: Path) -> None:
    source = tmp_path / "data"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "tool").write_text("#!/bin/sh\n")
    (source / "sub" / "tool").chmod(0o755)
    os.symlink("sub/tool", source / "link")
    with Place(name(tmp_path), [str(tmp_path / "elsewhere")]) as place:
        packed = f"{place.folder}/packed.tar"
        stage.pack(str(source), packed, later())
        stage.unpack(packed, f"{place.folder}/unpacked", later())
        stage.copy(str(source), str(tmp_path / "elsewhere"), later())
        for copy in (f"{place.folder}/unpacked", str(tmp_path / "elsewhere")):
            assert os.readlink(f"{copy}/link") == "sub/tool"
            assert os.access(f"{copy}/sub/tool", os.X_OK)
        stage.move(packed, f"{place.folder}/deep/er")
        assert stage.size_bytes(f"{place.folder}/deep/er") > 0
        assert stage.size_bytes(place.folder) == stage.size_bytes(packed) == -1
        assert os.stat(place.folder).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(tmp_path)) == ["data"]


def test_a_node_that_comes_late_has_the_copies_before_it_knows_the_jobs_name(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    options = Options(Program("a.py"), stage=(str(tmp_path / "data"),), stage_to=str(tmp_path / "disk"))
    said: list[str] = []
    (tmp_path / "disk").mkdir()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with staged_late(options, said.append) as place:
            place.rename(folder(options, "12.0"))
            assert Path(folder(options, "12.0"), "data").read_text() == "x"
            assert os.listdir(tmp_path / "disk") == [f"slaunch-stage-{os.getuid()}-12.0"]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert os.listdir(tmp_path / "disk") == []
    assert said[0].startswith(f"staged {tmp_path}/data in ")


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(OutputError) as caught:
        Place(name(tmp_path), [str(tmp_path / "precious")])
    assert "precious" in caught.value.seen
    assert os.listdir(tmp_path) == ["precious"]


def test_copies_of_a_killed_agent_are_removed_before_the_next_and_others_not(tmp_path: Path) -> None:
    code = """
import sys
from slaunch.node.stage import Place
place = Place(sys.argv[1], [sys.argv[2]])
open(sys.argv[2], "w").close()
print("ready", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", code, name(tmp_path, "11.0"), str(tmp_path / "outside")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        (tmp_path / f"slaunch-stage-{os.getuid()}-foreign").mkdir()  # no list: none of ours
        with Place(name(tmp_path), []):
            assert os.path.exists(tmp_path / "outside")
            assert os.path.exists(f"{name(tmp_path, '11.0')}/{LIST}")
        other.kill()
    with Place(name(tmp_path), []):
        assert not os.path.exists(tmp_path / "outside")
        assert not os.path.exists(name(tmp_path, "11.0"))
    assert os.listdir(tmp_path) == [f"slaunch-stage-{os.getuid()}-foreign"]


def test_a_copy_that_fails_or_takes_too_long_is_an_error_with_its_command(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        stage.unpack(str(tmp_path / "nothing.tar"), str(tmp_path / "to"), later())
    assert "tar --extract" in caught.value.wanted
    assert "No such file" in caught.value.seen or "recoverable" in caught.value.seen
    with pytest.raises(OutputError) as caught:
        stage.run(("sleep", "60"), time.monotonic() + 0.1)
    assert "--stage-timeout" in caught.value.todo


def start(tmp_path: Path, source: str, *args: str) -> subprocess.Popen[str]:
    """slaunch with two workers on this machine, and copies."""
    slaunch = [sys.executable, "-m", "slaunch", "--nproc-per-node", "2", "--tee", "all", "--log-dir", str(tmp_path / "logs")]
    command = [*slaunch, "--stage-to", str(tmp_path / "disk"), "--stage", source, *args]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    (tmp_path / "disk").mkdir()
    return subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_without_a_scheduler_workers_find_the_copies_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("content")
    code = "import os; print('has', open(os.environ['SLAUNCH_STAGE_DIR'] + '/data/x').read(), flush=True)"
    out, err = start(tmp_path, "data", "-c", code).communicate(timeout=60)
    assert out.count("has content") == 2, err
    assert "on 1 node in" in err
    assert os.listdir(tmp_path / "disk") == []


def test_a_stop_while_copies_are_made_leaves_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.tar")  # nobody writes into it: tar waits
    process = start(tmp_path, "slow.tar", "-c", "pass")
    end = later()
    while not list((tmp_path / "disk").glob("*/slow")):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert os.listdir(tmp_path / "disk") == []
