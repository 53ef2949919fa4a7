"""Options of the Python interface: their types, and as words of a command line."""

import importlib.util
import os
import typing

import pytest

from slaunch import api_options
from slaunch.api import option_words, program_words, shell_code
from slaunch.cli.options import read_options
from slaunch.cli.rows import TABLE


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"nproc_per_node": 2}, "--nproc-per-node=2"),
        ({"grace": 1.5}, "--grace=1.5"),
        ({"log_overwrite": True}, "--log-overwrite=true"),
        ({"keep_env": ["A", "B*"]}, "--keep-env=A,B*"),
        ({"tee": [0, 3]}, "--tee=0,3"),
        ({"tee": []}, "--tee=none"),
        ({"step_args": ["-p", "a b"]}, "--step-args=-p 'a b'"),
    ],
)
def test_f3_values_become_words_that_are_read_back(given, word):
    assert option_words(given) == [word]
    read_options([word, "a.py"], {})


def test_f3_none_is_not_given():
    assert option_words({"network": None}) == []


def test_f3_every_long_name_is_a_keyword():
    for row in TABLE.rows:
        for name in row.names:
            assert option_words({name.removeprefix("--").replace("-", "_"): "x"}) == [f"{name}=x"]


def test_f3_an_unknown_keyword_is_an_error_with_a_suggestion():
    with pytest.raises(TypeError, match="did you mean nproc_per_node"):
        option_words({"nproc_per_nod": 2})


def test_f3_programs_and_exit_codes():
    assert program_words("script", "-odd.py") == ["--", "-odd.py"]
    assert program_words("module", "pkg") == ["-m", "pkg"]
    assert (shell_code(3), shell_code(-9)) == (3, 137)


TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "api_options.py")


def test_f3_the_types_of_keywords_are_those_of_the_options():
    spec = importlib.util.spec_from_file_location("api_options_tool", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with open(api_options.__file__) as file:
        assert file.read() == tool.made(), "an option is new or has changed: run `python tests/tools/api_options.py`"


def test_f3_typed_keywords():
    hints = typing.get_type_hints(api_options.LaunchOptions)
    assert set(hints) == {name.removeprefix("--").replace("-", "_") for row in TABLE.rows for name in row.names}
    assert hints["nproc_per_node"] == int | None
    assert hints["grace"] == float | None
    assert hints["visible"] == typing.Literal["all", "own", "virtual"] | None
