"""Writes the maps in tests/data/maps anew: `python tests/tools/draw_maps.py`, after a change of the drawing; read the diff."""

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

from support import maps  # noqa: E402

from slaunch.report.bindmap import map_text  # noqa: E402

for name in maps.CASES:
    with open(f"{TESTS}/data/maps/{name}.txt", "w") as file:
        file.write(map_text(*maps.planned(name)) + "\n")
