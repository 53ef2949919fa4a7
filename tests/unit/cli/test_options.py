"""The command line and the environment become `Options`."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.cli.options import help_text, read_options
from slaunch.cli.rows import ROWS
from slaunch.errors import UsageError
from slaunch.options import Program
from slaunch.report.configuration import configuration


def test_everything_after_the_program_is_the_programs():
    options = read_options(["--nproc-per-node", "2", "train.py", "--log", "--nproc_per_node", "8"], {})
    assert options.nproc_per_node == 2
    assert options.program == Program("train.py", ("--log", "--nproc_per_node", "8"))


@pytest.mark.parametrize("name", ["--nproc-per-node", "--nproc_per_node"])
def test_f14_dashes_and_underscores_are_the_same(name):
    assert read_options([name, "3", "a.py"], {}).nproc_per_node == 3
    assert read_options([f"{name}=3", "a.py"], {}).nproc_per_node == 3


@pytest.mark.parametrize("alias", ["--devices", "--gpus", "--npus", "--xpus"])
def test_f22_devices_and_aliases(alias):
    assert read_options([alias, "4,5", "a.py"], {}).devices == ("4", "5")


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (["-m", "pkg.train", "-x"], Program("pkg.train", ("-x",), "module")),
        (["-c", "print(1)"], Program("print(1)", (), "code")),
        (["--", "-odd.py", "a"], Program("-odd.py", ("a",))),
    ],
)
def test_kinds_of_program(argv, program):
    assert read_options(argv, {}).program == program


@pytest.mark.parametrize("word", ["true", "YES", "on", "1", "t", "Y"])
def test_f38_truth_words(word):
    assert read_options(["--log_overwrite", word, "a.py"], {}).log_overwrite is True


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ([], "no program"),
        (["-m"], "nothing follows -m"),
        (["--nproc_per_nod", "2", "a.py"], "did you mean --nproc-per-node"),
        (["--nproc_per_node"], "value is missing"),
        (["--nproc_per_node", "0", "a.py"], "must be at least 1"),
        (["--nproc_per_node", "two", "a.py"], "is not a number"),
        (["--nproc_per_node", "2", "--nproc-per-node", "2", "a.py"], "given twice"),
        (["--gpus", "1", "--devices", "1", "a.py"], "given twice"),
        (["--log_overwrite", "perhaps", "a.py"], "must be true or false"),
        (["--grace", "inf", "a.py"], "positive number of seconds"),
        (["--tee", "-1", "a.py"], "must not be negative"),
    ],
)
def test_f315_bad_command_lines_are_named(argv, part):
    with pytest.raises(UsageError) as caught:
        read_options(argv, {})
    assert part in str(caught.value)
    assert caught.value.exit_code == 2


def test_f321_w49_command_line_before_environment_before_default():
    env = {"SLAUNCH_LOG_DIR": "from-env", "SLAUNCH_JOB_ID": "mine"}
    options = read_options(["--log-dir", "from-line", "a.py"], env)
    assert (options.log_dir, options.job_id, options.grace_s) == ("from-line", "mine", 15.0)
    assert options.origins["log_dir"] == "--log-dir"
    assert options.origins["job_id"] == "SLAUNCH_JOB_ID"
    assert options.origins["grace_s"] == "default"


SAMPLES = ("2", "1:2", "true", "false", "none", "workerlog.{rank}", "12M", "USR1", "/x")
"""Texts of which every option understands one, or a word of its help."""
FILES = ("config", "profile", "parts")
"""Options that name a file, which have tests of their own."""


def sample(row):
    """A text that an option takes, and that is not its default."""
    for text in (*SAMPLES, *re.findall(r"[\w-]+", row.help)):
        try:
            value = row.read(text)
        except ValueError:
            continue
        if value != getattr(read_options(["a.py"], {}), row.field):
            return text
    raise AssertionError(f"no sample for {row.names[0]}")


@pytest.mark.parametrize("row", [row for row in ROWS if row.field not in FILES], ids=lambda row: row.field)
def test_f40_each_option_has_a_name_a_variable_and_a_key(row, tmp_path):
    text = sample(row)
    line = read_options([f"{row.names[0]}={text}", "a.py"], {})
    by_variable = read_options(["a.py"], {row.variable: text})
    (tmp_path / "s.toml").write_text(f'{row.names[0].removeprefix("--").replace("-", "_")} = "{text}"\n')
    by_key = read_options(["--config", str(tmp_path / "s.toml"), "a.py"], {})
    values = [getattr(options, row.field) for options in (line, by_variable, by_key)]
    assert values[0] == values[1] == values[2] != getattr(read_options(["a.py"], {}), row.field)
    origins = [options.origins[row.field] for options in (line, by_variable, by_key)]
    assert origins == [row.names[0], row.variable, str(tmp_path / "s.toml")]


@pytest.mark.parametrize("dialect", ["torchrun", "paddle", "fleetrun"])
def test_own_options_may_stand_before_another_launchers_word(dialect):
    options = read_options(["--network", "ib0", "--master", "n1:7", dialect, "--nnodes", "2", "a.py", "x"], {})
    assert (options.network, options.master, options.nnodes, options.program.args) == ("ib0", "n1:7", (2, 2), ("x",))


def test_a_program_of_such_a_name_is_named_after_two_dashes():
    assert read_options(["--network", "ib0", "--", "torchrun", "--nnodes", "2"], {}).program == Program(
        "torchrun", ("--nnodes", "2")
    )
    assert read_options(["-m", "torchrun"], {}).program == Program("torchrun", (), "module")


def test_bad_variable_is_named():
    with pytest.raises(UsageError, match="SLAUNCH_NPROC_PER_NODE"):
        read_options(["a.py"], {"SLAUNCH_NPROC_PER_NODE": "-3"})


def test_help_names_every_option():
    text = help_text()
    assert all(name in text for row in ROWS for name in row.names)


@given(st.lists(st.text(min_size=1)))
def test_f39_arguments_of_the_program_arrive_unchanged(args):
    assert read_options(["train.py", *args], {}).program.args == tuple(args)


def test_f5_access_to_etcd_comes_from_options_or_the_variables_of_etcdctl():
    env = {"ETCDCTL_USER": "train", "ETCDCTL_CACERT": "/ca.pem", "ETCDCTL_CERT": "/own.pem", "ETCDCTL_KEY": "/own.key"}
    found = read_options(["--etcd-user", "other:word", "train.py"], env)
    assert (found.etcd_user, found.etcd_cacert, found.etcd_cert, found.etcd_key) == ("other:word", *list(env.values())[1:])
    assert (found.origins["etcd_user"], found.origins["etcd_cacert"]) == ("--etcd-user", "ETCDCTL_CACERT")


def test_etcds_password_is_not_shown():
    found = read_options(["--etcd-user", "train:mellon", "train.py"], {})
    lines = configuration(found)
    assert "mellon" not in "\n".join(lines)
    assert any(line.startswith("etcd_user = train:<hidden>") for line in lines)
