"""The file of `--roles`."""

import json

import pytest

from slaunch.cli.options import read_options
from slaunch.errors import UsageError
from slaunch.options import Part, Program

PARTS = (
    Part("learner", ((0, 0), (4, 7)), Program("learner.py", ("--lr", "0.1")), (("A", "1"),)),
    Part("1", (), Program("./sim", ("--fast",), "executable")),
)
TOML = """
[[role]]
name = "learner"
ranks = "0,4-7"
program = "learner.py"
args = ["--lr", "0.1"]
env = {A = "1"}
[[role]]
command = ["./sim", "--fast"]
"""
JSON = {
    "role": [
        {"name": "learner", "ranks": "0,4-7", "program": "learner.py", "args": ["--lr", "0.1"], "env": {"A": "1"}},
        {"command": ["./sim", "--fast"]},
    ]
}


@pytest.mark.parametrize("text", [TOML, json.dumps(JSON)], ids=["toml", "json"])
def test_both_forms(tmp_path, text):
    path = tmp_path / "roles"
    path.write_text(text)
    options = read_options(["--roles", str(path)], {})
    assert options.parts == PARTS
    assert options.program == PARTS[0].program


@pytest.mark.parametrize(
    ("text", "words", "part"),
    [
        ("", [], "no list of roles"),
        ("[[role]]\nprogram = 'a'\nranks = '3-1'", [], "3-1"),
        ("[[role]]\nprogram = 'a'\nmodule = 'b'", [], "program and module"),
        ("[[role]]\nname = 'x'", [], "no program"),
        ("[[role]]\nprogram = 3", [], "write texts"),
        ("[[role]]\ncommand = []", [], "write texts"),
        ("[[role]]\nprogram = 'a'\nrank = '0'", [], "has rank"),
        ("[[role]]\nprogram = 'a'\nenv = 3", [], "write variables"),
        ("[[role]]\nprogram = 'a'\n[[role]]\nprogram = 'b'", [], "more than one role"),
        ("{", [], "JSON"),
        (TOML, ["train.py"], "leave one of them out"),
    ],
)
def test_mistakes_are_named(tmp_path, text, words, part):
    path = tmp_path / "roles"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_options(["--roles", str(path), *words], {})
    assert part in str(caught.value)
