"""The written pages agree with the code and with each other."""

import os
import re

import pytest
from support.cluster import CHECKOUT

from slaunch import errors


def page(name: str) -> str:
    with open(os.path.join(CHECKOUT, name)) as file:
        return file.read()


def test_every_error_is_in_the_table_of_exit_codes_with_its_code_and_meaning() -> None:
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.SlaunchError)]
    wanted = {(str(kind.exit_code), kind.__name__) for kind in classes if kind is not errors.SlaunchError}
    told = set(re.findall(r"^\| (\d+) \| (\w+) \| \S.* \|$", page("docs/exit-codes.md"), re.MULTILINE))
    assert told == wanted


PAGES = ["README.md", *(f"docs/{name}" for name in sorted(os.listdir(f"{CHECKOUT}/docs")) if name.endswith(".md"))]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page(name))
    missing = [target for target in targets if not os.path.exists(os.path.join(CHECKOUT, os.path.dirname(name), target))]
    assert missing == []
