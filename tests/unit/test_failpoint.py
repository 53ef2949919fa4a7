"""Failpoints do nothing unless asked for, and what is asked for then; their list is complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import slaunch
from slaunch._failpoint import armed

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(slaunch.__file__)))
PAGE = os.path.join(ROOT, "docs", "contributing", "failpoints.md")


def reach(setting: str, timeout_s: float = 30) -> subprocess.CompletedProcess[str]:
    code = "from slaunch._failpoint import failpoint; failpoint('a.b'); print('went on')"
    env = {**os.environ, "SLAUNCH_FAILPOINTS": setting}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=timeout_s)


@pytest.mark.parametrize(
    ("setting", "code", "output"),
    [
        ("", 0, "went on\n"),
        ("other=kill", 0, "went on\n"),
        ("a.b=exit:7", 7, ""),
        ("x=kill;a.b=exit", 1, ""),
        ("a.b=kill", -9, ""),
        ("a.b=raise", 1, ""),
        ("a.b=sleep:0.01", 0, "went on\n"),
        ("a.b=dance", 1, ""),
        ("a.b", 1, ""),
    ],
)
def test_actions(setting: str, code: int, output: str) -> None:
    done = reach(setting)
    assert (done.returncode, done.stdout) == (code, output)


def test_settings() -> None:
    assert armed("a=kill; b = sleep:2 ;") == {"a": "kill", "b": "sleep:2"}
    assert armed("") == {}
    with pytest.raises(ValueError, match="has no action"):
        armed("a")


def test_the_page_lists_exactly_the_failpoints_of_the_code() -> None:
    found = set()
    for folder, _, names in os.walk(os.path.join(ROOT, "slaunch")):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    for call in re.findall(r"failpoint\((.*)\)", file.read()):
                        found |= set(re.findall(r'"([a-z_]+\.[a-z_]+)"', call))
    with open(PAGE, encoding="utf-8") as file:
        listed = set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)`", file.read(), re.MULTILINE))
    assert found == listed
