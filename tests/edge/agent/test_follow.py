"""Log files that rotate: written whole, read whole."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from slaunch.agent.follow import Follower
from slaunch.agent.logfile import LogFile, Stamper
from slaunch.agent.outlets import Form


def open_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def log_file(path: Path, **form: int) -> LogFile:
    return LogFile(str(path), open_file(path), Form(**form))


def everything(follower: Follower) -> bytes:
    found = b""
    while data := follower.read():
        found += data
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_reader_follows_rotations_and_gets_each_byte_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    file = log_file(tmp_path / "log", most=200, keep=50)
    follower = Follower(str(tmp_path / "log"))
    written = read = b""
    for number in range(400):
        line = b"%d %s\n" % (number, b"x" * chance.randrange(60))
        file.write(line)
        written += line
        if chance.random() < 0.1:
            read += everything(follower)
    file.close()
    read += everything(follower)
    follower.close()
    assert read == written
    assert len(os.listdir(tmp_path)) == 51


def test_a_reader_that_lags_too_far_goes_on_with_the_oldest_file(tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", most=10, keep=1)
    follower = Follower(str(tmp_path / "log"))
    for number in range(10):
        file.write(b"line %d\n" % number)
    file.close()
    read = everything(follower)
    follower.close()
    assert read.splitlines()[-2:] == [b"line 8", b"line 9"]


def test_nothing_is_kept_if_so_wished_and_long_lines_stay_whole(tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", most=10, keep=0)
    file.write(b"short\n" + b"long" * 10 + b"\nend")
    file.write(b"ing\n")
    file.close()
    assert os.listdir(tmp_path) == ["log"]
    assert (tmp_path / "log").read_bytes() == b"ending\n"


def test_what_an_attempt_said_ends_where_it_ended(tmp_path: Path) -> None:
    file = log_file(tmp_path / "log")
    file.write(b"first\n")
    follower = Follower(str(tmp_path / "log"), 2)
    follower.seal()
    file.write(b"second\n")
    file.close()
    assert (follower.left(), everything(follower)) == (4, b"rst\n")
    follower.close()


def test_the_time_stands_in_front_of_each_line_once() -> None:
    stamper = Stamper()
    pieces = [b"one\ntw", b"o\n", b"\nthree\n", b"\r10 %\r20 %", b"\n"]
    text = b"".join(stamper.stamp(piece, 1_700_000_000.25) for piece in pieces)
    mark = stamper.stamp(b"", 1_700_000_000.25)
    assert text == b"".join(mark + line + b"\n" for line in (b"one", b"two", b"", b"three", b"\r10 %\r20 %"))
    assert b".250" in mark
