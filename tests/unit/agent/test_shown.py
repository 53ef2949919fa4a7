"""What of several workers' output the console shows."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from slaunch.agent.shown import BURST, LONGEST, Budget, Lines


def lines(rate: float = 0.0, match: str = "", prefix: bytes = b"[3] ") -> Lines:
    return Lines(prefix, "/logs/workerlog.3", Budget(rate), re.compile(match.encode()) if match else None)


def test_whole_lines_with_a_prefix_whatever_the_pieces() -> None:
    maker = lines()
    assert maker.feed(b"one\ntw", 0.0) == b"[3] one\n"
    assert maker.feed(b"o\n\nthree", 0.1) == b"[3] two\n[3] \n"
    assert maker.idle(0.2) == b""
    assert maker.idle(2.0) == b"[3] three\n", "a line without end is shown after a while"
    assert maker.end(3.0) == b""


def test_of_a_progress_bar_the_last_state() -> None:
    maker = lines()
    assert maker.feed(b"\r10 %\r20 %\r", 0.0) == b""
    assert maker.idle(5.0) == b"[3] 20 %\n"
    assert maker.feed(b"\r30 %\r40 %\ndone\r\n", 6.0) == b"[3] 40 %\n[3] done\n"


def test_beyond_the_limit_lines_are_counted_and_told() -> None:
    maker = lines(rate=1.0)
    many = b"".join(b"%d\n" % i for i in range(100))
    shown = maker.feed(many, 0.0)
    assert shown == b"".join(b"[3] %d\n" % i for i in range(int(BURST)))
    assert maker.feed(b"more\n", 0.1) == b""
    assert maker.idle(1.0).decode() == (
        "[3] ---- slaunch: 81 lines were left out here; the whole output is in /logs/workerlog.3 ----\n"
    )
    assert maker.feed(b"again\n", 5.0) == b"[3] again\n", "with time there is room again"
    assert maker.end(5.0) == b""


def test_what_is_left_out_is_told_before_the_next_line() -> None:
    maker = lines(rate=1.0)
    maker.feed(b"x\n" * 21, 0.0)
    note, line = maker.feed(b"y\n", 3.0).splitlines()
    assert b"1 line was left out here" in note
    assert line == b"[3] y"


def test_only_lines_that_match_and_only_they_count_against_the_limit() -> None:
    maker = lines(rate=1.0, match="loss")
    assert maker.feed(b"noise\n" * 1000 + b"loss 1\nmy loss\n", 0.0) == b"[3] loss 1\n[3] my loss\n"
    assert maker.end(0.0) == b""


def test_long_lines_are_cut_where_there_is_a_limit() -> None:
    assert len(lines(rate=5.0).feed(b"x" * 100_000 + b"\n", 0.0)) < LONGEST + 20
    assert len(lines().feed(b"x" * 100_000 + b"\n", 0.0)) == 100_005


def test_output_that_is_not_looked_at_is_counted() -> None:
    maker = lines()
    maker.feed(b"half", 0.0)
    maker.leave_out(b" line\nsecond\nthird")
    assert b" 2 lines were left out" in maker.end(0.0)


def test_a_budget_is_shared() -> None:
    budget = Budget(100.0)
    assert budget.take(150, 0.0) == 150
    assert budget.take(100, 0.0) == 50
    assert budget.take(100, 0.1) == 10
    assert budget.take(1000, 100.0) == 200
    assert Budget().take(10**9, 0.0) == 10**9


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 30))
def test_every_line_is_shown_or_counted(pieces: list[bytes], rate: int) -> None:
    maker = Lines(b"> ", "log", Budget(float(rate)))
    shown = b"".join(maker.feed(piece, i / 10) for i, piece in enumerate(pieces)) + maker.end(100.0)
    told = sum(int(number) for number in re.findall(rb"slaunch: (\d+) lines? w\w+ left out here", shown))
    notes = shown.count(b"left out here")
    whole = b"".join(pieces)
    expected = whole.count(b"\n") + (not whole.endswith(b"\n") and bool(whole))
    assert shown.count(b"\n") - notes + told == expected
