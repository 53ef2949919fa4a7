"""How thoroughly properties are tried: in the other versions of Python with a tenth of the examples.

There the unit tests look for what a version lacks or does otherwise, and not a second time for what is wrong with slaunch.
"""

from __future__ import annotations

import os

from hypothesis import settings

VARIABLE = "SLAUNCH_FEW_EXAMPLES"


def number(count: int) -> int:
    """How many of `count`."""
    return max(1, count // 10) if VARIABLE in os.environ else count


def examples(count: int) -> settings:
    """Settings of a property that is tried with so many examples."""
    return settings(max_examples=number(count), deadline=None)
