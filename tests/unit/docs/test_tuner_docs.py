"""The pages about the tuner that are made from its code are those of the code, and every rule has a test."""

import json
import os

from support.cluster import CHECKOUT
from tools import tuner_docs

from slaunch.tune.config.table import json_schema, rows
from slaunch.tune.search.choose import METHODS


def test_the_pages_are_up_to_date() -> None:
    assert tuner_docs.main(["--check"]) == 0


def test_the_guide_names_every_status_and_algorithm() -> None:
    with open(os.path.join(CHECKOUT, "docs", "tuner.md")) as file:
        guide = file.read()
    for word in ("ok", "oom", "error", "timeout", "infrastructure", "cancelled", "pruned", *METHODS):
        assert f"| `{word}` |" in guide


def test_the_guides_example_is_a_configuration() -> None:
    from slaunch.tune.config.build import build

    with open(os.path.join(CHECKOUT, "docs", "tuner.md")) as file:
        blocks = file.read().split("```json\n")[1:]
    example = json.loads(blocks[0].split("```")[0])
    build(example, "tuner.json")
    build({**example, **json.loads("{" + blocks[1].split("```")[0] + "}")}, "tuner.json")


def test_every_key_has_a_line_of_help() -> None:
    assert all(text for _, _, text in rows())
    assert json.dumps(json_schema()).count('"description": "",') == 0
