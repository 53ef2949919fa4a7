"""torchrun's command line: every option of its own help is known, and does what it says or says why not."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.cli.options import read_options
from slaunch.cli.torchrun import ROWS, help_text
from slaunch.errors import UsageError
from slaunch.options import Program

HELP = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "data", "torchrun_help.txt")
"""torchrun's own help; its first line tells how it was made."""


def read(*words, env=None):
    return read_options(["torchrun", *words], env or {})


def test_every_option_of_torchrun_is_known_and_no_other():
    with open(HELP) as file:
        theirs = set(re.findall(r"^  (-\w|--[\w-]+)", file.read(), re.MULTILINE)) - {"-h"}
    assert len(theirs) > 25
    assert theirs <= {name for row in ROWS for name in row.names}
    assert {row.names[0] for row in ROWS} - theirs == {"--module", "--redirects", "--tee"}  # these have a short name in front


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["--nnodes", "2"], {"nnodes": (2, 2)}),
        (["--nnodes=1:4"], {"nnodes": (1, 4)}),
        (["--nproc_per_node=8"], {"nproc_per_node": 8}),
        (["--nproc-per-node", "gpu"], {"nproc_per_node": 0, "one_per": "device"}),
        (["--nproc-per-node", "auto"], {"nproc_per_node": 0, "one_per": "auto"}),
        (["--nproc-per-node", "cpu"], {"nproc_per_node": 0, "one_per": "cpu"}),
        ([], {"nproc_per_node": 0, "one_per": "node", "tee": (-1,)}),
        (["--standalone"], {"nnodes": (1, 1)}),
        (["--rdzv-id", "j7"], {"job_id": "j7"}),
        (["--rdzv-endpoint", "n1:29500"], {"master": "n1:29500"}),
        (["--rdzv-endpoint", "n1"], {"master": "n1:29400"}),
        (["--rdzv-endpoint", "[fe80::1]"], {"master": "[fe80::1]:29400"}),
        (["--master-addr", "n1"], {"master": "n1:29500"}),
        (["--master-addr", "n1", "--master-port", "1234"], {"master": "n1:1234"}),
        (["--rdzv-conf", "join_timeout=300,read_timeout=60"], {"rendezvous_timeout_s": 300.0}),
        (["--node-rank", "1"], {"node_rank": 1}),
        (["--role", "actor"], {"role": "actor"}),
        (["--log-dir", "logs"], {"log_dir": "logs"}),
        (["--local-addr", "10.0.0.1"], {"host": "10.0.0.1"}),
        (["--numa-binding", "node"], {"bind": "numa"}),
        (["--numa-binding", "exclusive"], {"bind": "auto"}),
        (["--shutdown-timeout", "5"], {"grace_s": 5.0}),
        (["--virtual-local-rank"], {"visible": "virtual"}),
        (["--network", "ib0", "--grace", "3"], {"network": "ib0", "grace_s": 3.0}),
        (["--nnodes", "2", "--nnodes", "3"], {"nnodes": (3, 3)}),
    ],
)
def test_options_become_slaunchs_own(words, fields):
    options = read(*words, "train.py")
    assert {name: getattr(options, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("words", "tee", "local", "mute"),
    [
        ([], (-1,), (), ()),
        (["-r", "3"], (), (), ()),
        (["-r3"], (), (), ()),
        (["-r", "2"], (-1,), (), ()),
        (["-r", "0:3"], (-1,), (), (0,)),
        (["-r", "3", "-t", "0:3"], (), (0,), ()),
        (["-t", "3"], (-1,), (), ()),
        (["--local-ranks-filter", "0,2"], (), (0, 2), ()),
        (["--local_ranks_filter=0,2", "-r", "0:1"], (), (2,), ()),
    ],
)
def test_whose_output_is_shown(words, tee, local, mute):
    options = read(*words, "train.py")
    assert (options.tee, options.tee_local, options.mute_local) == (tee, local, mute)


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["train", "--x"], Program("train", ("--x",), "python")),
        (["-m", "pkg.train", "--x"], Program("pkg.train", ("--x",), "module")),
        (["--module", "--nnodes", "1", "pkg.train"], Program("pkg.train", (), "module")),
        (["--no-python", "./a.py"], Program("./a.py", (), "executable")),
        (["--run-path", "/x/a.py"], Program("/x/a.py", (), "python")),
        (["--", "-odd.py"], Program("-odd.py", (), "python")),
    ],
)
def test_kinds_of_program(words, program):
    assert read(*words).program == program


def test_options_without_effect_are_explained_in_one_line_each():
    words = ["--rdzv-backend=c10d", "--monitor-interval", "5", "--start-method", "spawn", "--event-log-handler", "console"]
    notes = read(*words, "--logs-specs", "x", "--signals-to-handle", "SIGTERM", "a.py").notes
    assert all("\n" not in note and ": no effect, " in note for note in notes)
    named = {name for note in notes for name in note.split(":")[0].split(", ")}
    assert named == {
        *("--rdzv-backend", "--monitor-interval", "--start-method", "--event-log-handler"),
        *("--logs-specs", "--signals-to-handle"),
    }


def test_keys_of_the_meeting_without_effect_are_named():
    notes = read("--rdzv-backend", "etcd", "--rdzv-conf", "timeout=9,is_host=1,protocol=https", "a.py").notes
    assert notes == ("--rdzv-backend, is_host, protocol in --rdzv-conf: no effect, slaunch has its own ways for nodes to meet",)
    assert read("--rdzv-conf", "join_timeout=9", "a.py").notes == ()


def test_standalone_with_one_node_said_twice():
    assert read("--standalone", "--nnodes", "1", "a.py").nnodes == (1, 1)


def test_restarts():
    assert read("--max-restarts", "3", "a.py").max_restarts == 3
    assert read("a.py").max_restarts == 0
    assert read_options(["torchrun", "a.py"], {"PET_MAX_RESTARTS": "2"}).max_restarts == 2


def test_variables_of_torchrun_set_options_and_the_command_line_wins():
    env = {"PET_NPROC_PER_NODE": "4", "PET_NNODES": "2", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "7", "SLAUNCH_NETWORK": "ib0"}
    options = read("--nnodes", "3", "a.py", env=env)
    assert (options.nproc_per_node, options.nnodes, options.grace_s, options.network) == (4, (3, 3), 7.0, "ib0")
    assert options.origins["nproc_per_node"] == "PET_NPROC_PER_NODE"
    assert options.origins["nnodes"] == "--nnodes"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--nproc", "2", "a.py"], "did you mean --nproc-per-node"),
        (["--nproc-per-node", "many", "a.py"], "must be a number, gpu, xpu, cpu or auto"),
        (["--start-method", "thread", "a.py"], "must be one of spawn, fork, forkserver"),
        (["--standalone=1", "a.py"], "takes no value"),
        (["-r", "7", "a.py"], "must be 0 to 3"),
        (["--nnodes", "4:2", "a.py"], "MIN not above MAX"),
        (["--rdzv-conf", "timeout=soon", "a.py"], "--rdzv-conf"),
        (["--nnodes", "2"], "no program"),
        (["--no-python", "-m", "a"], "-m and --no-python"),
        (["--no-python", "--run-path", "a.py"], "--run-path and --no-python"),
        (["--standalone", "--nnodes", "2:4", "a.py"], "--standalone, and --nnodes of 2"),
    ],
)
def test_w50_w14_bad_command_lines_are_named(words, part):
    with pytest.raises(UsageError) as caught:
        read(*words)
    assert part in str(caught.value)


@given(st.lists(st.text(min_size=1)))
def test_f39_arguments_of_the_program_arrive_unchanged(args):
    assert read("--nnodes", "1", "train.py", *args).program.args == tuple(args)


def test_help_names_every_option():
    assert all(name in help_text() for row in ROWS for name in row.names)
