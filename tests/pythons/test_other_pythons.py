"""The unit tests in the other supported versions of Python, those for which `tests/run` has made an environment."""

import glob
import os
import subprocess

import pytest
from support.examples import VARIABLE

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENTS = sorted(glob.glob(f"{CHECKOUT}/.venv-py3*"))
LIMIT_S = 900
SIZE = "tests/unit/plan/test_size.py"
"""Plans of 131,072 workers: once is enough."""


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("folder", ENVIRONMENTS, ids=os.path.basename)
def test_unit_tests_pass(folder: str) -> None:
    command = [f"{folder}/bin/python", "-m", "pytest", "--layers", "unit", "-q", "-p", "no:cacheprovider", "tests/unit"]
    done = subprocess.run(
        [*command, f"--ignore={SIZE}"],
        env={**os.environ, VARIABLE: "1"},
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout.splitlines()[-1]


if not ENVIRONMENTS:  # a machine with one Python: nothing to test, rather than something skipped
    del test_unit_tests_pass
