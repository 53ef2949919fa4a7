"""The last lines of a log file."""

from __future__ import annotations

from pathlib import Path

import pytest

from slaunch.agent.logs import LINE_CHARS, TAIL_LINES, tail


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ()),
        (b"\n\n\n", ()),
        (b"one\ntwo", ("one", "two")),
        (b"one\r\ntwo\r\n", ("one", "two")),
        (b"\r10 %\r20 %\r30 %\ndone\n", ("30 %", "done")),
        (b"\r10 %\r20 %\r", ("20 %",)),
        (b"one\n\ntwo\n\n", ("one", "", "two")),
        (b"caf\xc3\xa9 \xff\n", ("caf\u00e9 \ufffd",)),
        (b"x" * 10_000 + b"\n", ("x" * LINE_CHARS,)),
    ],
)
def test_f143_tail(tmp_path: Path, data: bytes, shown: tuple[str, ...]) -> None:
    (tmp_path / "log").write_bytes(data)
    assert tail(str(tmp_path / "log"), 0) == shown


def test_f143_only_the_last_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(map(str, range(10_000))))
    assert tail(str(tmp_path / "log"), 0) == tuple(map(str, range(10_000 - TAIL_LINES, 10_000)))


def test_f143_nothing_from_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("old\nnew\n")
    assert tail(str(tmp_path / "log"), 4) == ("new",)
    assert tail(str(tmp_path / "log"), 8) == ()
    assert tail(str(tmp_path / "gone"), 0) == ()
