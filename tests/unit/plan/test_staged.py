"""Where staged copies go."""

import os

import pytest

from slaunch.options import Options, Program
from slaunch.plan.staged import Item, items

UID = os.getuid()


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("/d/data", Item("/d/data", f"/fast/slaunch-stage-{UID}-12.0/data", False)),
        ("/d/data/", Item("/d/data", f"/fast/slaunch-stage-{UID}-12.0/data", False)),
        ("/d/env.tar.gz", Item("/d/env.tar.gz", f"/fast/slaunch-stage-{UID}-12.0/env", True)),
        ("/d/env.tar.zst:/tmp/env", Item("/d/env.tar.zst", "/tmp/env", True)),
        ("/d/x.bin:a/b", Item("/d/x.bin", f"/fast/slaunch-stage-{UID}-12.0/a/b", False)),
    ],
)
def test_a_copy_has_its_place(text: str, item: Item) -> None:
    assert items(Options(Program("a.py"), stage=(text,), stage_to="/fast"), "12.0") == (item,)


def test_a_jobs_name_is_no_path() -> None:
    (item,) = items(Options(Program("a.py"), stage=("/d",)), "../my job")
    assert item.target == f"/tmp/slaunch-stage-{UID}-.._my_job/d"
