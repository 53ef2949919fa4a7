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


BORROWED = """
[[role]]
name = "server"
component = 1
args = ["--serve"]
device = "cpu"
cores = 2
"""


def test_a_role_without_a_program_runs_the_command_lines_with_its_own_arguments(tmp_path):
    path = tmp_path / "roles"
    path.write_text(BORROWED)
    options = read_options(["--roles", str(path), "--mode", "ps", "train.py", "--lr", "1"], {})
    server = Part("server", (), Program("train.py", ("--lr", "1", "--serve")), component=1, kind="cpu", cores=2)
    assert options.parts == (server, Part("", (), Program("train.py", ("--lr", "1"))))  # trainers have no role in the file
    alike = read_options(["--roles", str(path), "train.py"], {})
    assert [part.name for part in alike.parts] == ["server"]  # all workers are told by number


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--nproc-per-node", "3"), ""),
        (("--nproc-per-node", "4"), "has 3, and --nproc-per-node is 4"),
        (("--mode", "ps", "--server-num", "1"), ""),
        (("--mode", "ps", "--server-num", "2"), "has 1, and --server-num is 2"),
    ],
)
def test_numbers_of_workers_agree_with_those_beside_the_file(tmp_path, words, error):
    path = tmp_path / "roles"
    path.write_text('[[role]]\nname = "server"\nworkers = 1\n[[role]]\nname = "trainer"\nworkers = 2\n')
    call = ["--roles", str(path), *words, "a.py"]
    if not error:
        assert len(read_options(call, {}).parts) >= 2
        return
    with pytest.raises(UsageError, match=error):
        read_options(call, {})


@pytest.mark.parametrize(
    ("text", "words", "part"),
    [
        ("", [], "no list of roles"),
        ("[[role]]\nprogram = 'a'\nranks = '3-1'", [], "3-1"),
        ("[[role]]\nprogram = 'a'\nmodule = 'b'", [], "program and module"),
        ("[[role]]\nname = 'x'", [], "no program for x"),
        ("[[role]]\nprogram = 3", [], "write texts"),
        ("[[role]]\ncommand = []", [], "write texts"),
        ("[[role]]\nprogram = 'a'\nrank = '0'", [], "has rank"),
        ("[[role]]\nprogram = 'a'\nenv = 3", [], "write variables"),
        ("[[role]]\nprogram = 'a'\n[[role]]\nprogram = 'b'", [], "more than one role"),
        ("{", [], "JSON"),
        (TOML, ["train.py"], "leave one of them out"),
        ("[[role]]\nprogram = 'a'\nworkers = 1", ["train.py"], "leave one of them out"),
        ("[[role]]\nprogram = 'a'\nworkers = -1", [], "0 or more"),
        ("[[role]]\nprogram = 'a'\ncores = true", [], "0 or more"),
        ("[[role]]\nprogram = 'a'\ndevice = 1", [], "a kind of device"),
        ("[[role]]\nname = 'a'\nprogram = 'a'\n[[role]]\nname = 'a'\nranks = '1'\nprogram = 'b'", [], "called a"),
        ("[[role]]\nprogram = 'a'\nranks = '1'\n[[role]]\nworkers = 1\nprogram = 'b'", [], "in one way"),
    ],
)
def test_mistakes_are_named(tmp_path, text, words, part):
    path = tmp_path / "roles"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_options(["--roles", str(path), *words], {})
    assert part in str(caught.value)
