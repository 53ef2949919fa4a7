"""Options on requests to save and on requeues."""

from __future__ import annotations

import pytest

from slaunch.cli.options import read_options
from slaunch.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", ()),
        ("yes", (-1, -1, 0)),
        ("failure=3", (-1, -1, 3)),
        ("preempt=2,timeout=any,failure=1", (2, -1, 1)),
        ("timeout=0", (-1, 0, 0)),
    ],
)
def test_p87_budgets_by_kind(text: str, value: tuple[int, ...]) -> None:
    assert read_options(["--requeue", text, "x.py"], {}).requeue == value
    assert read_options(["x.py"], {"SLAUNCH_REQUEUE": text}).requeue == value


@pytest.mark.parametrize("text", ["maybe", "preempt", "preempt=-1", "hang=2", "failure=x"])
def test_budgets_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="read --requeue"):
        read_options(["--requeue", text, "x.py"], {})


@pytest.mark.parametrize(("text", "number"), [("USR1", 10), ("SIGUSR1", 10), ("usr2", 12), ("15", 15), ("none", 0)])
def test_p81_signals_by_name_or_number(text: str, number: int) -> None:
    for option in ("--warn-signal", "--warn_signal"):
        assert read_options([option, text, "x.py"], {}).warn_signal == number
    assert read_options(["--stop-signal", text, "x.py"], {}).stop_signal == number


@pytest.mark.parametrize("text", ["KILL", "9", "STOP", "USR3", "0", ""])
def test_signals_that_are_none_or_cannot_be_heeded(text: str) -> None:
    with pytest.raises(UsageError, match="read --warn-signal"):
        read_options(["--warn-signal", text, "x.py"], {})


def test_what_holds_if_nothing_is_said() -> None:
    found = read_options(["x.py"], {})
    assert (found.warn_before_end_s, found.warn_signal, found.stop_signal, found.requeue) == (0.0, 12, 15, ())
    assert read_options(["--warn_before_end", "300", "x.py"], {}).warn_before_end_s == 300.0
