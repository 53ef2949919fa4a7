"""Names of log files: the user's template, and files apart."""

from __future__ import annotations

from support import plans

from slaunch.plan.modes.logs import err_name, log_name
from slaunch.plan.seat import take_seat


def names(rank: int = 3, attempt: int = 0, **chosen: object) -> tuple[str, str]:
    made = plans.plan([plans.facts(0), plans.facts(1)], attempt=attempt, **chosen)
    seat = take_seat(made, rank, plans.options(**chosen))
    return log_name(seat), err_name(seat)


def test_f135_as_paddle_names_them_unless_the_user_says_otherwise() -> None:
    assert names() == ("workerlog.3", "")
    assert names(tee_stream="err") == ("workerlog.3", "workerlog.3.err")


def test_f320_w48_the_users_names() -> None:
    assert names(log_name="{host}/{local_rank}-{rank:04d}.{attempt}", attempt=2) == ("n2/1-0003.2", "")
    assert names(log_name="{job}.{role}.{node}.{rank}") == ("job7.worker.1.3", "")


def test_output_and_errors_apart() -> None:
    assert names(log_name="{rank}.{stream}") == ("3.out", "3.err")
    assert names(log_name="{rank}", tee_stream="out") == ("3", "3.err")
