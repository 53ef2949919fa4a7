"""Options of logs and console."""

from __future__ import annotations

import pytest

from slaunch.cli.options import read_options
from slaunch.cli.texts import log_name, size
from slaunch.errors import UsageError
from slaunch.launch import logging_wishes

SIZES = [("1024", 1024), ("500K", 512_000), ("1.5m", 3 << 19), ("2GiB", 2 << 30), ("1T", 1 << 40)]
NAMELESS = ["", "log", "{local_rank}", "{node}", "{rank", "{user}{rank}", "/tmp/{rank}", "../{rank}", "{}{rank}", "{rank.x}"]


@pytest.mark.parametrize(("text", "count"), SIZES)
def test_sizes(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize("text", ["0", "10", "-5M", "inf", "nan", "M", "5X", ""])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|could not|empty|nan"):
        size(text)


@pytest.mark.parametrize("text", ["{rank}", "w.{rank:04d}.{attempt}.{stream}", "{host}/{local_rank}.log", "{node}-{local_rank}"])
def test_names_that_differ_from_worker_to_worker(text: str) -> None:
    assert log_name(text) == text


@pytest.mark.parametrize("text", NAMELESS)
def test_names_that_do_not(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        log_name(text)


def test_all_of_them_on_a_command_line() -> None:
    line = "--log-name {rank}.{stream} --log-max-size 10M --log-keep 2 --log-timestamps yes --log-writer slaunch --tee all"
    more = "--tee-stream err --tee-match ^loss --tee-limit 50 --status-interval 0 --metrics-file /tmp/m --metrics-port 9100"
    options = read_options([*line.split(), *more.split(), "x.py"], {})
    assert (options.log_name, options.log_max_bytes, options.log_keep) == ("{rank}.{stream}", 10 << 20, 2)
    assert (options.log_timestamps, options.log_writer) == (True, "slaunch")
    assert (options.tee_stream, options.tee_match, options.tee_limit) == ("err", "^loss", 50.0)
    assert (options.status_interval_s, options.metrics_file, options.metrics_port) == (0.0, "/tmp/m", 9100)


@pytest.mark.parametrize(("option", "text", "word"), [("--tee-match", "(", "expression"), ("--log-name", "log", "{rank}")])
def test_what_is_wrong_is_told(option: str, text: str, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options([option, text, "x.py"], {})
    assert word in caught.value.seen


def test_f319_other_launchers_users_see_everything_as_they_did() -> None:
    assert read_options(["--tee", "all", "x.py"], {}).tee_limit > 0
    assert read_options(["torchrun", "x.py"], {}).tee_limit == 0
    assert read_options(["torchrun", "--tee", "3", "--redirects", "1", "x.py"], {}).tee_limit == 0
    assert read_options(["paddle", "x.py"], {}).tee_limit == 0
    assert read_options(["torchrun", "--tee-limit", "9", "x.py"], {}).tee_limit == 9


def test_where_tasks_are_workers_what_has_no_effect_is_named_as_it_was_given() -> None:
    given = read_options(["--tee", "all", "--log-name", "{rank}", "x.py"], {"SLAUNCH_LOG_TIMESTAMPS": "yes"})
    assert sorted(logging_wishes(given)) == ["--log-name", "--tee", "SLAUNCH_LOG_TIMESTAMPS"]
    assert logging_wishes(read_options(["torchrun", "x.py"], {})) == []
    assert logging_wishes(read_options(["x.py"], {})) == []
