"""Configuration files: where they are found, profiles, and what wins."""

import os

import pytest

from slaunch.cli.options import read_options
from slaunch.errors import UsageError


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory, and a home beside it."""
    (tmp_path / "here").mkdir()
    (tmp_path / "home" / ".config").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def env(here, **more):
    return {"HOME": str(here / "home"), **more}


def test_a_nearer_file_wins_option_by_option(here):
    (here / "here" / "slaunch.toml").write_text('job_id = "near"\n')
    (here / "home" / ".config" / "slaunch.toml").write_text('job-id = "far"\nnproc_per_node = 3\nkeep_env = ["A", "B*"]\n')
    options = read_options(["a.py"], env(here))
    assert (options.job_id, options.nproc_per_node, options.keep_env) == ("near", 3, ("A", "B*"))
    assert options.origins["job_id"] == "slaunch.toml"
    assert options.origins["keep_env"] == str(here / "home/.config/slaunch.toml")
    assert options.origins["grace_s"] == "default"


def test_f321_line_before_variable_before_profile_before_file(here):
    (here / "here" / "slaunch.toml").write_text(
        'log_dir = "f"\njob_id = "f"\nnetwork = "f"\ngrace = 1\n[profile.p]\nlog_dir = "p"\njob_id = "p"\nnetwork = "p"\n'
    )
    options = read_options(["--log-dir", "line", "--profile", "p", "a.py"], env(here, SLAUNCH_LOG_DIR="v", SLAUNCH_JOB_ID="v"))
    assert (options.log_dir, options.job_id, options.network, options.grace_s) == ("line", "v", "p", 1.0)
    assert options.origins["network"] == "slaunch.toml [profile.p]"


def test_a_named_file_is_the_only_one(here):
    (here / "here" / "slaunch.toml").write_text('network = "ib0"\n')
    (here / "other.toml").write_text("log_overwrite = true\ntee = [0, 3]\nstep_args = ['--reservation', 'a b']\n")
    options = read_options(["--config", str(here / "other.toml"), "a.py"], env(here))
    assert (options.network, options.log_overwrite, options.tee) == ("", True, (0, 3))
    assert options.step_args == ("--reservation", "a b")


def test_files_hold_for_other_command_lines_too(here):
    (here / "here" / "slaunch.toml").write_text('network = "ib0"\nlog_dir = "mine"\n')
    for dialect in ("torchrun", "paddle"):
        options = read_options([dialect, "a.py"], env(here))
        assert (options.network, options.log_dir) == ("ib0", "mine")


@pytest.mark.parametrize(
    ("text", "words", "part"),
    [
        ("netwrk = 1", [], "did you mean network"),
        ("grace = 'soon'", [], "grace in slaunch.toml"),
        ("grace = {a = 1}", [], "give a text, a number"),
        ("not toml", [], "must be TOML"),
        ("profile = 3", [], "profile is no table"),
        ("[profile.a]\n", ["--profile", "b"], "profiles a"),
        ("", ["--profile", "b"], "no profile at all"),
        ("", ["--config", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_mistakes_are_named(here, text, words, part):
    (here / "here" / "slaunch.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_options([*words, "a.py"], env(here))
    assert part in str(caught.value)


def test_a_file_that_may_not_be_read_is_an_error_not_silence(here):
    os.mkdir("slaunch.toml")
    with pytest.raises(UsageError, match=r"slaunch\.toml"):
        read_options(["a.py"], env(here))


def test_w65_no_variable_that_workers_get_is_an_option():
    from slaunch.cli.rows import ROWS

    given = {"SLAUNCH_RANK", "SLAUNCH_WORLD_SIZE", "SLAUNCH_LOCAL_RANK", "SLAUNCH_LOCAL_WORLD_SIZE", "SLAUNCH_NODE_RANK"}
    given |= {"SLAUNCH_NNODES", "SLAUNCH_ATTEMPT", "SLAUNCH_JOB", "SLAUNCH_LOCAL_DEVICE", "SLAUNCH_ADDRESS", "SLAUNCH_ENDPOINT"}
    assert not given & {name for row in ROWS for name in row.variables}
