"""Results of an earlier table, of this tuner or of Paddle's, as a start (`resume_csv_file_path`)."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from slaunch.errors import UsageError
from slaunch.tune.space.grid import accumulation, whole
from slaunch.tune.trial.values import ERROR, OK, OOM, Record
from slaunch.tune.values import Setting, Study

COMPARED = (
    *("mp_degree", "sharding_degree", "pp_degree", "dp_degree", "sharding_stage", "micro_batch_size", "vpp_degree"),
    *("use_recompute", "recompute_granularity", "num_gpus", "nodes", "global_batch_size", "sharding_overlap", "acc_steps"),
    *("cp_degree", "ep_degree", "recompute_layers", "sequence_parallel", "optimizer_offload"),
)
Row = Mapping[str, str]


def read_table(path: str) -> list[Row]:
    """The rows of a table.

    Raises:
        UsageError: it cannot be read, or has no column for the setting.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows: list[Row] = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError("start from earlier results", f"resume_csv_file_path {path}: {error}", "name a readable CSV") from None
    if rows and "mp_degree" not in rows[0]:
        seen = f"{path} has the columns {', '.join(rows[0])}"
        raise UsageError("start from earlier results", seen, "name the history of a tuner")
    return rows


def find(study: Study, rows: list[Row], setting: Setting) -> Row | None:
    """The row of a setting: all dimensions agree as text; what is empty on both sides agrees."""
    wanted = compared(study, setting)
    return next((row for row in rows if all((row.get(name) or "") == text for name, text in wanted.items())), None)


def compared(study: Study, setting: Setting) -> dict[str, str]:
    """The texts to compare. Devices and nodes only where the setting has them: the table has them as columns only then."""
    batch = whole(setting, "global_batch_size", study.model.global_batch_size)
    full = {**setting, "global_batch_size": batch, "acc_steps": accumulation(study, setting)}
    names = [*COMPARED, *study.refined, *(each.name for each in study.own)]
    return {name: "" if full.get(name) is None else str(full[name]) for name in names}


def as_record(study: Study, row: Row, setting: Setting, number: int, path: str) -> Record:
    """The result of a row as a record of its own."""
    metric = cell(row, study.metric.name)
    oom = row.get("max_mem_usage") == "OOM"
    status = OK if metric is not None and not oom else OOM if oom else ERROR
    return Record(
        number=number,
        job="",
        folder="",
        setting=setting,
        status=status,
        metric=metric if status == OK else None,
        memory_mib=None if oom else cell(row, "max_mem_usage") or None,  # there, 0.0 stands for a figure that could not be read
        peak_mib=cell(row, "max_peak_memory"),
        run_s=cell(row, "exec_time") or 0.0,
        detail=row.get("error_info") or "",
        derived={
            "acc_steps": accumulation(study, setting),
            "global_batch_size": whole(setting, "global_batch_size", study.model.global_batch_size),
        },
        origin=path,
    )


def cell(row: Row, name: str) -> float | None:
    """A number of the table; None where it is empty or none."""
    try:
        return float(row.get(name) or "")
    except ValueError:
        return None
