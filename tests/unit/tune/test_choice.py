"""Ranking, the choice of the best, tables."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.studies import make, setting

from slaunch.tune.choice import averaged, best, near_ties, ranked
from slaunch.tune.history.table import plain, render, rows
from slaunch.tune.history.warm import as_record, find
from slaunch.tune.trial.values import Record
from slaunch.tune.values import Choice, Limits, Metric

UP, DOWN = Metric("tokens_per_sec", maximize=True), Metric("loss", maximize=False)


def record(number: int, metric: float | None, memory: float | None = None, status: str = "", **fields: Any) -> Record:
    status = status or ("ok" if metric is not None else "error")
    given = fields.pop("setting", setting(micro_batch_size=number))
    return Record(number, f"auto_tuner_{number}", f"/t/{number}", given, status, metric=metric, memory_mib=memory, **fields)


def numbers(records: list[Record]) -> list[int]:
    return [each.number for each in records]


def test_f254_f261_ranking_puts_the_earlier_of_equals_first_and_failures_last() -> None:
    some = [record(1, 5.0), record(2, None), record(3, 9.0), record(4, 5.0)]
    assert numbers(ranked(some, maximize=True)) == [3, 1, 4, 2]
    assert numbers(ranked(some, maximize=False)) == [1, 4, 3, 2]
    assert numbers(ranked(some[::-1], maximize=True)) == [3, 1, 4, 2]


def test_w58_ranking_leaves_the_list_as_it_is() -> None:
    some = [record(1, 1.0), record(2, 2.0)]
    ranked(some, maximize=True)
    assert numbers(some) == [1, 2]


def test_f261_the_first_is_the_best() -> None:
    some = [record(1, 5.0), record(2, 9.0), record(3, 9.0)]
    chosen = best(some, UP, Choice())
    assert chosen is not None
    assert chosen.number == 2
    lowest = best(some, DOWN, Choice())
    assert lowest is not None
    assert lowest.number == 1


@pytest.mark.parametrize("some", [[], [record(1, None)], [record(1, None, status="oom")]])
def test_f263_no_best(some: list[Record]) -> None:
    assert best(some, UP, Choice()) is None


@pytest.mark.parametrize(
    ("memories", "chosen"),
    [
        ((900, 500, 100), 2),  # the first below 1000 - 200
        ((700, 500, 100), 1),
        ((900, 850, 870), 2),  # none has room: the one with least
        ((None, 850, 870), 2),
        ((None, 500, 100), 2),
        ((None, None, None), 1),  # nothing is known
        ((0.0, 500, 100), 1),
    ],
)
def test_f182_f262_w08_room_in_memory(memories: tuple[float | None, ...], chosen: int) -> None:
    some = [record(number, 10.0 - number, memory) for number, memory in enumerate(memories, 1)]
    found = best([*some, record(9, None, 50.0)], UP, Choice(buffer_mib=200, limit_mib=1000))
    assert found is not None
    assert found.number == chosen


def test_f171_of_the_four_fastest_the_one_with_least_memory() -> None:
    some = [record(number, 10.0 - number, 100.0 - number) for number in range(1, 7)]
    found = best(some, UP, Choice(thrifty=True))
    assert found is not None
    assert found.number == 4
    unknown = best([record(1, 2.0, None), record(2, 1.0, 5.0)], UP, Choice(thrifty=True))
    assert unknown is not None
    assert unknown.number == 2  # memory that is not known is not least


def test_w11_near_ties_are_run_again() -> None:
    limits = Limits(repeats=1, near=0.02)
    some = [record(1, 100.0), record(2, 99.0), record(3, 90.0), record(4, None)]
    assert numbers(near_ties(some, UP, limits)) == [1, 2]
    wide = [record(1, 100.0), record(2, 90.0, error=8.0), record(3, 91.0, error=1.0)]
    assert numbers(near_ties([*wide[:1], *wide[1:]], UP, limits)) == []
    noisy = [record(1, 100.0, error=4.0), record(2, 90.0, error=8.0), record(3, 91.0, error=1.0)]
    assert numbers(near_ties(noisy, UP, limits)) == [1, 2]
    again = [*some, record(5, 97.0, setting=some[0].setting, repeat_of=1), record(6, 99.5, setting=some[1].setting, repeat_of=2)]
    assert near_ties(again, UP, limits) == []
    assert near_ties([record(1, 100.0)], UP, limits) == []


def test_w11_repeats_are_averaged() -> None:
    some = [record(1, 100.0, 10.0), record(2, 99.0), record(3, 90.0, 30.0, setting=setting(micro_batch_size=1), repeat_of=1)]
    found = {each.number: (each.metric, each.memory_mib) for each in averaged(some)}
    assert found == {1: (95.0, 30.0), 2: (99.0, None)}
    chosen = best(some, UP, Choice())
    assert chosen is not None
    assert chosen.number == 2


@given(st.lists(st.one_of(st.none(), st.floats(-5, 5)), max_size=8), st.booleans())
def test_the_best_is_never_beaten(values: list[float | None], maximize: bool) -> None:
    found = best([record(number, value) for number, value in enumerate(values, 1)], Metric("x", maximize), Choice())
    known = [value for value in values if value is not None]
    assert (found is None) == (not known)
    if found is not None:
        assert found.metric == pytest.approx((max if maximize else min)(known))


# -- tables -------------------------------------------------------------------------------------------------------------


def table(records: list[Record], **keys: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(*rows(make(**keys), records)))))


SIZES = {"acc_steps": 16, "global_batch_size": 16}


def test_f252_f253_f254_columns_of_the_history() -> None:
    good = record(1, 1234.56789, 512.0, derived=SIZES, start_s=1.0, run_s=2.345)
    lacking = record(2, None, status="oom", detail="Out of memory", derived=SIZES, start_s=1.0)
    broken = record(3, None, None, detail="rank 0: exit code 1:\n  bad, very bad", derived=SIZES)
    head, *_ = render(*rows(make(), [good, lacking, broken])).splitlines()
    assert head.split(",")[:16] == [
        *("job_id", "mp_degree", "sharding_degree", "pp_degree", "dp_degree", "sharding_stage", "micro_batch_size", "vpp_degree"),
        *(
            "use_recompute",
            "recompute_granularity",
            "acc_steps",
            "global_batch_size",
            "exec_time",
            "max_mem_usage",
            "tokens_per_sec",
        ),
        "error_info",
    ]
    first, second, third = table([good, lacking, broken])
    assert (first["exec_time"], first["max_mem_usage"], first["tokens_per_sec"], first["error_info"]) == (
        "3.35",
        "512",
        "1234.56789",
        "",
    )
    assert (first["use_recompute"], first["recompute_granularity"]) == ("False", "")
    assert (second["max_mem_usage"], second["tokens_per_sec"], second["status"]) == ("OOM", "", "oom")
    assert (third["max_mem_usage"], third["error_info"], third["memory_known"]) == (
        "",
        "rank 0: exit code 1: bad, very bad",
        "False",
    )


def test_f248_the_peak_has_a_column_if_any_trial_told_one() -> None:
    assert "max_peak_memory" not in table([record(1, 1.0)])[0]
    assert table([record(1, 1.0, peak_mib=7.0), record(2, 1.0)])[0]["max_peak_memory"] == "7"


def test_cells() -> None:
    assert [plain(value) for value in (None, True, 3, 3.0, 3.5, "x")] == ["", "True", "3", "3", "3.5", "x"]


# -- earlier tables -----------------------------------------------------------------------------------------------------

PADDLE = """\
job_id,mp_degree,sharding_degree,pp_degree,dp_degree,sharding_stage,micro_batch_size,vpp_degree,use_recompute,recompute_granularity,\
acc_steps,global_batch_size,exec_time,max_mem_usage,tokens_per_sec,error_info
1,2,1,1,1,1,2,1,True,full,8,16,30.5,1000,500.5,
2,2,1,1,1,1,4,1,True,full,4,16,10.0,OOM,,Out of memory
3,2,1,1,1,1,8,1,True,full,2,16,12.0,0.0,,"some, error"
"""


def test_f185_f257_results_of_an_earlier_table() -> None:
    study = make()
    earlier: list[Any] = list(csv.DictReader(io.StringIO(PADDLE)))
    tried = setting(mp_degree=2, micro_batch_size=2, use_recompute=True, recompute_granularity="full")
    row = find(study, earlier, tried)
    assert row is not None
    first = as_record(study, row, tried, 7, "h.csv")
    assert (first.number, first.status, first.metric, first.memory_mib, first.run_s) == (7, "ok", 500.5, 1000, 30.5)
    second = as_record(study, earlier[1], {**tried, "micro_batch_size": 4}, 8, "h.csv")
    assert (second.status, second.metric, second.memory_mib) == ("oom", None, None)
    third = as_record(study, earlier[2], {**tried, "micro_batch_size": 8}, 9, "h.csv")
    assert (third.status, third.memory_mib, third.detail) == ("error", None, "some, error")


@pytest.mark.parametrize(
    "other", [{"micro_batch_size": 1}, {"use_recompute": False}, {"recompute_granularity": None}, {"mp_degree": 4}]
)
def test_f257_another_setting_is_not_found(other: dict[str, Any]) -> None:
    earlier: list[Any] = list(csv.DictReader(io.StringIO(PADDLE)))
    tried = setting(mp_degree=2, micro_batch_size=2, use_recompute=True, recompute_granularity="full")
    assert find(make(), earlier, {**tried, **other}) is None
    assert find(make(model={"global_batch_size": 32}), earlier, tried) is None


def test_f257_own_dimensions_have_to_be_in_the_table() -> None:
    study = make(custom_search_dim={"bucket": {"value": [1], "prune": False}})
    earlier: list[Any] = list(csv.DictReader(io.StringIO(PADDLE)))
    tried = setting(mp_degree=2, micro_batch_size=2, use_recompute=True, recompute_granularity="full", bucket=1)
    assert find(study, earlier, tried) is None
    assert find(study, [{**earlier[0], "bucket": "1"}], tried) is not None
