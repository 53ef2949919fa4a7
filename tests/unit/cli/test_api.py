"""Options of the Python interface as words of a command line."""

import pytest

from slaunch.api import option_words, program_words, shell_code
from slaunch.cli.options import TABLE, read_options


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
