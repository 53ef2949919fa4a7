"""The command line of `slaunch submit`."""

import time
from pathlib import Path

import pytest

from slaunch.badnodes import Fault, add
from slaunch.cli.sbatch_rows import rows
from slaunch.cli.submit import TABLE, help_text, parse
from slaunch.errors import UsageError
from slaunch.submit.values import Request

NOWHERE = {"HOME": "/nonexistent"}


def request(*args: str, **env: str) -> Request:
    return parse(args, {**NOWHERE, **env}).request


def test_options_of_sbatch_and_of_slaunch_in_any_order() -> None:
    made = request(
        *("-N4", "--max-restarts", "3", "--gpus-per-node=a100:8", "-t", "2:00:00", "-A", "phys", "--exclusive", "-c8"),
        *("--hang-timeout=600", "-d", "afterok:12", "--requeue", "train.py", "-N", "9", "--lr", "0.1"),
    )
    assert made.components == (
        {
            **{"job-name": "train", "nodes": "4", "gpus-per-node": "a100:8", "time": "2:00:00", "account": "phys"},
            **{"exclusive": "", "cpus-per-task": "8", "dependency": "afterok:12", "requeue": ""},
        },
    )
    assert made.arguments == ("--max-restarts=3", "--hang-timeout=600", "train.py", "-N", "9", "--lr", "0.1")
    assert made.template == "collective"


@pytest.mark.parametrize(
    ("args", "template", "arguments"),
    [
        (("--array=0-3", "train.py"), "array", ("train.py",)),
        (("--server-num", "1", "train.py"), "ps", ("--server-num=1", "train.py")),
        (("--mode", "ps", "train.py"), "ps", ("--mode=ps", "train.py")),
        (("--nnodes", "2:4", "train.py"), "elastic", ("--nnodes=2:4", "train.py")),
        (("--spares", "1", "train.py"), "elastic", ("--spares=1", "train.py")),
        (("--nnodes", "4", "train.py"), "collective", ("--nnodes=4", "train.py")),
        (("--grace", "5", "tune", "t.json", "train.py"), "tune", ("t.json", "--grace=5", "train.py")),
        (("-m", "pkg.train", "x"), "collective", ("-m", "pkg.train", "x")),
        (("torchrun", "--nproc-per-node", "2", "train.py"), "collective", ("torchrun", "--nproc-per-node", "2", "train.py")),
        (("--template", "interactive"), "interactive", ()),
        (("-T", "./mine.sbatch", "train.py"), "./mine.sbatch", ("train.py",)),
    ],
)
def test_the_template_follows_from_what_is_asked_for(
    args: tuple[str, ...], template: str, arguments: tuple[str, ...]
) -> None:
    made = request(*args)
    assert (made.template, made.arguments) == (template, arguments)


def test_slurm_may_put_the_job_back_and_slaunch_does_so_if_told_when() -> None:
    assert request("--requeue", "a.py").components == ({"job-name": "a", "requeue": ""},)
    made = request("--requeue=preempt=any,failure=2", "a.py")
    assert made.components == ({"job-name": "a", "open-mode": "append", "requeue": ""},)
    assert made.arguments == ("--requeue=preempt=any,failure=2", "a.py")
    assert request("--requeue=yes", "--open-mode", "truncate", "a.py").components[0]["open-mode"] == "truncate"
    with pytest.raises(UsageError):
        request("--requeue=sometimes", "a.py")


def test_nodes_that_have_shown_faults_are_left_out(tmp_path: Path) -> None:
    path = str(tmp_path / "bad")
    assert request("--exclude-bad", path, "a.py").components == ({"job-name": "a"},)
    add(path, [Fault("n7", time.time(), "lost"), Fault("n2", time.time(), "lost"), Fault("n5", 0.0, "long ago")], time.time())
    made = request("--exclude-bad", path, "-x", "n1", "a.py")
    assert made.components == ({"job-name": "a", "exclude": "n1,n2,n7"},)
    assert made.arguments == (f"--exclude-bad={path}", "a.py")


def test_p10_a_colon_parts_components() -> None:
    made = request("-N2", "-p", "cpu", ":", "-N1", "-p", "gpu", "--gpus-per-node=4", "--grace", "9", "train.py")
    assert made.components == (
        {"job-name": "train", "nodes": "2", "partition": "cpu"},
        {"nodes": "1", "partition": "gpu", "gpus-per-node": "4"},
    )
    assert made.arguments == ("--grace=9", "train.py")


def test_variables_of_sbatch_are_options_and_weaker_than_the_command_line() -> None:
    env = {"SBATCH_PARTITION": "cpu", "SBATCH_ACCOUNT": "phys", "SBATCH_EXCLUSIVE": "", "SBATCH_ARRAY_INX": "0-1"}
    made = request("-p", "gpu", "a.py", **env)
    assert made.components == (
        {"job-name": "a", "partition": "gpu", "account": "phys", "exclusive": "", "array": "0-1"},
    )


def test_files_of_user_and_site(tmp_path: Path) -> None:
    (tmp_path / "slaunch.toml").write_text(
        'grace = 3\n[submit]\npartition = "gpu"\nexclusive = true\nrequeue = false\ngpu_type = "a100"\n'
        'setup = ["module load cuda", "module load mpi"]\ntemplates = "/sw/templates"\n'
        '[profile.debug.submit]\npartition = "debug"\n'
    )
    made = request("train.py", XDG_CONFIG_HOME=str(tmp_path))
    assert made.components == ({"job-name": "train", "partition": "gpu", "exclusive": ""},)
    assert made.setup == ("module load cuda", "module load mpi")
    assert made.gpu_type == "a100"
    assert made.folders == ("/sw/templates", f"{tmp_path}/slaunch/templates", "/etc/slaunch/templates")
    debug = request("--profile", "debug", "train.py", XDG_CONFIG_HOME=str(tmp_path))
    assert debug.components[0]["partition"] == "debug"
    assert debug.arguments == ("--profile=debug", "train.py")


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (("--grace", "never", "train.py"), "read --grace"),
        (("--no-such", "train.py"), "read option --no-such"),
        (("-N2", "--nodes=4", "train.py"), "read option --nodes"),
        (("--max-restarts", "1", ":", "--max-restarts", "2", "train.py"), "read option --max-restarts"),
        (("--set", "image", "train.py"), "read option --set"),
    ],
)
def test_mistakes_are_found_before_the_job_waits_in_the_queue(args: tuple[str, ...], wanted: str) -> None:
    with pytest.raises(UsageError) as caught:
        request(*args)
    assert wanted in caught.value.wanted


def test_a_mistake_in_the_table_submit_is_named(tmp_path: Path) -> None:
    (tmp_path / "slaunch.toml").write_text('[submit]\npartitoin = "gpu"\n')
    with pytest.raises(UsageError) as caught:
        request("train.py", XDG_CONFIG_HOME=str(tmp_path))
    assert "did you mean partition?" in caught.value.todo


def test_every_option_has_one_meaning_of_its_own_table() -> None:
    names = [name for row in rows() for name in row.names]
    assert len(names) == len(set(names))
    assert TABLE.by_name()["--gpus"].field == "sbatch:gpus"
    assert TABLE.by_name()["--profile"].field == "profile"
    assert all(name in help_text() for name in names)
