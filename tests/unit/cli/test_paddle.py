"""Paddle's command line: every option, alias and variable; precedence; strictness."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.cli.options import read_options
from slaunch.cli.paddle import help_text
from slaunch.cli.paddle_rows import ROWS
from slaunch.errors import UsageError
from slaunch.options import Program


def read(*words, env=None):
    return read_options(["paddle", *words], env or {})


def fields_of(options, wanted):
    return {name: getattr(options, name) for name in wanted}


# -- options, aliases, variables ----------------------------------------------------------------------------------------

CASES = [
    ("f4", ["--master", "10.0.0.1:6170"], {"master": "10.0.0.1:6170"}),
    ("f5", ["--master", "etcd://h:2379"], {"master": "etcd://h:2379"}),
    ("f6", ["--master", "http://10.0.0.1:6170"], {"master": "10.0.0.1:6170"}),
    ("f7", ["--rank", "-1"], {"node_rank": -1}),
    ("f7", ["--rank", "3"], {"node_rank": 3}),
    ("f8", ["--log_level", "debug"], {"log_level": "debug"}),
    ("f8", ["--log_level", "ERROR"], {"log_level": "warning"}),
    ("f9", ["--log_overwrite", "yes"], {"log_overwrite": True}),
    ("f12", ["--nnodes", "4"], {"nnodes": (4, 4)}),
    ("f13", ["--nnodes", "2:4"], {"nnodes": (2, 4)}),
    ("f14", ["--nproc_per_node=2"], {"nproc_per_node": 2}),
    ("f16", ["--log_dir", "out"], {"log_dir": "out"}),
    ("f16", [], {"log_dir": "log", "mode": "collective"}),
    ("f17", ["--run_mode", "collective"], {"mode": "collective"}),
    ("f18", ["--run_mode", "ps"], {"mode": "ps"}),
    ("f19", ["--run_mode", "rpc"], {"mode": "rpc"}),
    ("f20", ["--run_mode=ps-heter", "--heter_devices=gpu", "--heter_worker_num=2"], {"mode": "ps_heter", "heter_num": (2,)}),
    ("f21", ["--job_id", "j"], {"job_id": "j"}),
    ("f22", ["--devices", "4,5"], {"devices": ("4", "5")}),
    ("f22", ["--gpus", "4,5"], {"devices": ("4", "5")}),
    ("f22", ["--npus", "4,5"], {"devices": ("4", "5")}),
    ("f22", ["--xpus", "4,5"], {"devices": ("4", "5")}),
    ("f23", ["--host", "10.0.0.7"], {"host": "10.0.0.7"}),
    ("f55", ["--host", "node7"], {"host": ""}),
    ("f24", ["--ips", "10.0.0.1,10.0.0.2"], {"ips": ("10.0.0.1", "10.0.0.2"), "nnodes": (2, 2), "start_port": 6070}),
    ("f24", ["--ips", "10.0.0.1,10.0.0.2"], {"master": "10.0.0.1:6069"}),
    ("f25", ["--ips", "10.0.0.1", "--start_port", "7000"], {"start_port": 7000, "master": ""}),
    ("f25", ["--ips", "10.0.0.1", "--start_port", "0"], {"ips": (), "start_port": 0}),
    ("f27", ["--auto_cluster_config", "true"], {"auto_cluster": True}),
    ("f30", ["--servers", "a:1,b:1", "--trainers", "a:2,b:2"], {"mode": "ps", "servers": ("a:1", "b:1"), "ips": ("a", "b")}),
    ("f31", ["--server_num", "1", "--trainer_num", "2"], {"mode": "ps", "server_num": 1, "trainer_num": 2}),
    ("f32", ["--server_num=1", "--gloo_port=6767", "--with_gloo=0"], {"gloo_port": 6767, "with_gloo": "0"}),
    ("f35", ["--nnodes", "2:4", "--elastic_timeout", "60"], {"rendezvous_timeout_s": 60.0}),
    ("f113", ["--nnodes", "2", "--elastic_timeout", "60"], {"rendezvous_timeout_s": 600.0}),
    ("f37", ["--server_num=1", "--worker_num=2"], {"mode": "ps", "trainer_num": 2}),
    ("f37", ["--servers=a:1", "--workers=a:2"], {"mode": "ps", "trainers": ("a:2",)}),
    ("f37", ["--server_num=1", "--http_port=99"], {"gloo_port": 99}),
    ("f37", ["--selected_gpus", "1"], {"devices": ("1",)}),
    ("f37", ["--np", "2:4", "--elastic_server", "h:2379"], {"nnodes": (2, 4), "master": "etcd://h:2379"}),
    ("f285", ["--coordinator_num=1", "--server_num=1"], {"mode": "ps", "coordinator_num": 1}),
    ("f286", ["--backend", "nccl"], {"backend": "nccl"}),
    ("f286", ["--backend", "gloo"], {"backend": "gloo", "nproc_per_node": 1, "one_per": "cpu"}),
    ("f286", ["--backend", "auto"], {"backend": ""}),
    ("f287", ["--heter_worker_num=1;2", "--heter_devices=gpu;cpu"], {"mode": "ps_heter", "heter_devices": ("gpu", "cpu")}),
    ("f299", ["--heter_workers=a:1,b:1;a:2", "--heter_devices=gpu;cpu"], {"heters": (("a:1", "b:1"), ("a:2",))}),
    ("w46", ["--network", "ib0"], {"network": "ib0"}),
]


@pytest.mark.parametrize(("number", "words", "fields"), CASES, ids=[f"{case[0]}-{' '.join(case[1])}" for case in CASES])
def test_f4_f5_f6_f7_f8_f12_f13_f16_f17_f18_f19_f20_f21_f23_f24_f25_f27_f30_f31_f32_f35_f37_f55_f113_f285_f286_f287(
    number, words, fields
):
    assert fields_of(read(*words, "train.py"), fields) == fields


VARIABLES = {
    "PADDLE_MASTER": ("10.0.0.1:6170", "master", "10.0.0.1:6170"),
    "PADDLE_RANK": ("1", "node_rank", 1),
    "PADDLE_LOG_LEVEL": ("DEBUG", "log_level", "debug"),
    "PADDLE_LOG_OVERWRITE": ("1", "log_overwrite", True),
    "PADDLE_SORT_IP": ("1", "notes", None),
    "PADDLE_NNODES": ("2", "nnodes", (2, 2)),
    "PADDLE_NPROC_PER_NODE": ("2", "nproc_per_node", 2),
    "PADDLE_LOG_DIR": ("out", "log_dir", "out"),
    "PADDLE_RUN_MODE": ("rpc", "mode", "rpc"),
    "PADDLE_JOB_ID": ("j", "job_id", "j"),
    "PADDLE_DEVICES": ("0,1", "devices", ("0", "1")),
    "POD_IP": ("10.0.0.9", "host", "10.0.0.9"),
    "PADDLE_IPS": ("10.0.0.1,10.0.0.2", "ips", ("10.0.0.1", "10.0.0.2")),
    "PADDLE_START_PORT": ("7000", "start_port", 7000),
    "PADDLE_AUTO_PARALLEL_CONFIG": ("tune.json", "auto_parallel_config", None),
    "PADDLE_AUTO_CLUSTER": ("1", "auto_cluster", True),
    "PADDLE_SERVERS_ENDPOINTS": ("a:1", "servers", ("a:1",)),
    "PADDLE_TRAINERS_ENDPOINTS": ("a:2", "trainers", ("a:2",)),
    "PADDLE_TRAINER_NUM": ("2", "trainer_num", 2),
    "PADDLE_SERVER_NUM": ("2", "server_num", 2),
    "PADDLE_GLOO_PORT": ("6767", "gloo_port", 6767),
    "PADDLE_WITH_GLOO": ("0", "with_gloo", "0"),
    "PADDLE_MAX_RESTART": ("2", "notes", None),
    "PADDLE_ELASTIC_LEVEL": ("1", "max_restarts", 3),
    "PADDLE_ELASTIC_TIMEOUT": ("60", "rendezvous_timeout_s", 600.0),
}
"""The 25 variables, a value, the field that it sets, and what to."""


@pytest.mark.parametrize("variable", VARIABLES)
def test_f40_each_variable_sets_its_option(variable, tmp_path, monkeypatch):
    assert len(VARIABLES) == 25
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tune.json").write_text("{}")
    text, field, value = VARIABLES[variable]
    options = read("train.py", env={variable: text})
    if field == "notes":
        assert any(note.startswith(f"{variable}: no effect") for note in options.notes)
        return
    assert getattr(options, field) == (str(tmp_path / "tune.json") if value is None else value)
    assert options.origins[field] == variable


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.names[0])
def test_help_names_every_option_and_variable(row):
    assert all(name in help_text() for name in (*row.names, row.variable))


# -- precedence ---------------------------------------------------------------------------------------------------------


def test_w49_f41_the_command_line_wins_and_says_so():
    options = read("--nnodes", "2", "train.py", env={"PADDLE_NNODES": "4"})
    assert options.nnodes == (2, 2)
    assert options.notes == ("--nnodes (2,2) wins over PADDLE_NNODES (4,4)",)


@pytest.mark.parametrize("how", [(["--paddle_precedence"], {}), ([], {"SLAUNCH_PADDLE_PRECEDENCE": "1"})])
def test_f41_paddles_own_precedence_on_demand(how):
    words, env = how
    options = read(*words, "--nnodes", "2", "train.py", env={"PADDLE_NNODES": "4", **env})
    assert options.nnodes == (4, 4)
    assert "PADDLE_NNODES (4,4) wins over --nnodes (2,2)" in options.notes


def test_f42_trainer_id_is_the_node_number_unless_paddle_rank_says_otherwise():
    assert read("a.py", env={"PADDLE_TRAINER_ID": "2"}).node_rank == 2
    assert read("a.py", env={"PADDLE_TRAINER_ID": "2", "PADDLE_RANK": "1"}).node_rank == 1
    assert read("a.py", env={"PADDLE_TRAINER_ID": "-1"}).node_rank == -1


def test_f43_lists_of_endpoints_tell_nodes_and_master():
    options = read("a.py", env={"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:1,10.0.0.1:2,10.0.0.2:1"})
    assert (options.nnodes, options.master) == ((2, 2), "10.0.0.1:1")
    assert read("a.py", env={"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1,10.0.0.2"}).master == "10.0.0.1:6768"
    assert read("a.py", env={"DISTRIBUTED_TRAINER_ENDPOINTS": "10.0.0.3:5,10.0.0.4:5"}).master == "10.0.0.3:5"


def test_f44_launch_with_args_leaves_the_master_to_the_options():
    env = {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:1,10.0.0.2:1", "PADDLE_LAUNCH_WITH_ARGS": "1"}
    options = read("--master", "10.0.0.9:7", "a.py", env=env)
    assert (options.nnodes, options.master) == ((2, 2), "10.0.0.9:7")


def test_w65_a_workers_own_variables_are_not_followed():
    env = {"PADDLE_CURRENT_ENDPOINT": "10.0.0.1:1", "PADDLE_NNODES": "4", "PADDLE_TRAINER_ID": "3", "PADDLE_MASTER": "x:1"}
    options = read("a.py", env={**env, "PADDLE_JOB_ID": "j"})
    assert (options.nnodes, options.node_rank, options.master, options.job_id) == ((0, 0), -1, "", "j")
    assert "PADDLE_MASTER, PADDLE_NNODES, PADDLE_TRAINER_ID" in options.notes[0]


def test_f289_paddlecloud():
    env = {"PADDLE_TRAINERS": "10.0.0.1,10.0.0.2", "POD_IP": "10.0.0.2", "PADDLE_TRAINER_ID": "1", "TRAINER_PORTS_NUM": "8"}
    options = read("a.py", env={**env, "PADDLE_TRAINERS_NUM": "2"})
    wanted = {"ips": ("10.0.0.1", "10.0.0.2"), "node_rank": 1, "host": "10.0.0.2", "start_port": 6170, "nnodes": (2, 2)}
    assert fields_of(options, wanted) == wanted
    assert read("a.py", env={**env, "PADDLE_TRAINERS_NUM": "1"}).ips == ()


@pytest.mark.parametrize("variable", ["FLAGS_FIXED_PORT", "FLAGS_START_PORT"])
def test_f46_f288_f297_fixed_ports_by_variable(variable):
    assert read("a.py", env={variable: "7100"}).start_port == 7100


# -- strictness ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--nproc", "2", "a.py"], "did you mean --nproc-per-node"),  # W50
        (["--nproc_per_nod", "2", "a.py"], "did you mean --nproc-per-node"),
        (["--master", "h:1", "--unknown", "a.py"], "no such option"),  # W14
        (["--log_dir", "", "a.py"], "must not be empty"),  # W38
        (["--log_overwrite", "perhaps", "a.py"], "must be true or false"),
        (["--log_level", "LOUD", "a.py"], "must be CRITICAL"),
        (["--run_mode", "collective", "--server_num", "1", "a.py"], "leave out the mode"),  # W13
        (["--run_mode", "rpc", "--servers", "a:1", "a.py"], "leave out the mode"),
        (["--run_mode", "ps", "--heter_devices", "gpu", "a.py"], "leave out the mode"),
        (["--backend", "gloo", "--run_mode", "ps", "a.py"], "--backend"),
        (["--ips", "127.0.0.1,10.0.0.2", "a.py"], "not the loopback"),
        (["--enable_auto_mapping", "1", "a.py"], "leave it out"),
        (["--rank", "-2", "a.py"], "-1 or more"),
        (["--auto_parallel_config", "nowhere.json", "a.py"], "nowhere.json"),
    ],
)
def test_f316_bad_command_lines_are_named(words, part):
    with pytest.raises(UsageError) as caught:
        read(*words)
    assert part in str(caught.value)


def test_f56_the_loopback_is_fine_for_one_node():
    assert read("--ips", "127.0.0.1", "a.py").ips == ("127.0.0.1",)


def test_f10_f53_what_has_no_effect_says_so():
    notes = read("--sort_ip", "1", "--max_restart", "3", "--scale", "1", "--force", "x", "a.py").notes
    assert sorted(note.split(":")[0] for note in notes) == ["--force", "--max-restart", "--scale", "--sort-ip"]
    with pytest.raises(UsageError, match="no such option"):
        read("--of-the-older-launcher", "1", "a.py")


@pytest.mark.parametrize("words", [("--legacy=true",), ("--legacy", "true")])
def test_f29_f290_w37_what_the_older_launcher_did_besides(words):
    """Paddle's takes the word `true` for the program."""
    options = read(*words, "a.py")
    assert (options.legacy, options.devices_per_worker, options.program) == (True, -1, Program("a.py"))
    assert read(*words, "--devices-per-worker", "1", "a.py").devices_per_worker == 1
    assert (read("a.py").legacy, read("a.py").devices_per_worker) == (False, 0)


def test_f308_a_hook_runs_in_a_shell():
    assert read("--elastic_pre_hook", "echo $X; true", "a.py").pre_hook == ("/bin/sh", "-c", "echo $X; true")


@pytest.mark.parametrize(
    ("missing", "restarts"),
    [("", 3), ("PADDLE_ELASTIC_SERVER", 0), ("PADDLE_ELASTIC_JOB_ID", 0), ("PADDLE_ELASTIC_NP", 0)],
)
def test_f304_restarts_where_the_elastic_manager_would_be_on(missing, restarts):
    env = {"PADDLE_ELASTIC_SERVER": "h:2379", "PADDLE_ELASTIC_JOB_ID": "j", "PADDLE_ELASTIC_NP": "2:4"}
    options = read("a.py", env={name: value for name, value in env.items() if name != missing})
    assert options.max_restarts == restarts
    assert read("--elastic_level", "0", "a.py", env=env).max_restarts == 0


def test_f310_the_etcd_of_kubernetes():
    env = {"PADDLE_ELASTIC_ETCD_SERVICE_HOST": "10.96.0.7", "PADDLE_ELASTIC_ETCD_SERVICE_PORT": "2379"}
    assert read("a.py", env=env).master == "etcd://10.96.0.7:2379"
    assert read("a.py", env={**env, "PADDLE_ELASTIC_SERVER": "h:1"}).master == "etcd://h:1"
    assert read("--master", "h:2", "a.py", env=env).master == "h:2"
    assert read("a.py", env={"PADDLE_ELASTIC_ETCD_SERVICE_HOST": "10.96.0.7"}).master == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), 0),
        (("--max_restart", "5"), 0),
        (("--max_restart", "5", "--elastic_level", "0"), 0),
        (("--elastic_level", "1"), 3),
        (("--max_restart", "1", "--elastic_level", "1"), 1),
        (("--max-restarts", "7"), 7),
    ],
)
def test_f33_f34_f120_w22_restarts_at_level_1_and_exactly_so_many(words, expected):
    assert read(*words, "a.py").max_restarts == expected


def test_f33_f34_restarts_by_variables():
    env = {"PADDLE_MAX_RESTART": "2", "PADDLE_ELASTIC_LEVEL": "1"}
    assert read_options(["paddle", "a.py"], env).max_restarts == 2


@given(st.lists(st.text(min_size=1)))
def test_f39_w50_arguments_of_the_program_arrive_unchanged(args):
    assert read("--nnodes", "1", "train.py", *args).program.args == tuple(args)


@pytest.mark.parametrize("word", ["--log", "--m", "--a", "--tr", "--server", "--master", "--nproc_per_node"])
def test_w50_options_of_the_program_that_look_like_ours(word):
    assert read("train.py", word, "x").program == Program("train.py", (word, "x"))


# -- words in the program's place ---------------------------------------------------------------------------------------


def test_f52_run_check_is_a_program_of_slaunchs_own():
    assert read("--nproc_per_node", "2", "run_check").program == Program("slaunch.run_check", (), "module")


@pytest.mark.parametrize(
    ("word", "tuning"), [("tuner_only", "only"), ("run_only", "skip"), ("tuner_and_run", "first"), (None, "first")]
)
def test_f26_f85_the_tuning_steps_file(tmp_path, word, tuning):
    path = tmp_path / "tune.json"
    path.write_text(json.dumps({"tuner_run_mode": word} if word else {}))
    options = read("--auto_parallel_config", str(path), "a.py")
    assert (options.auto_parallel_config, options.tuning) == (str(path), tuning)


@pytest.mark.parametrize("text", ["[", "[1]", '{"tuner_run_mode": "never"}', '{"tuner_run_mode": [1]}'])
def test_f85_a_file_that_asks_for_nonsense(tmp_path, text):
    path = tmp_path / "tune.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"tune\.json"):
        read("--auto_parallel_config", str(path), "a.py")


IPU = ("ipu", "--hosts=h1,h2", "--nproc_per_host=2", "--ipus_per_replica=1", "--ipu_partition=pod", "--vipu_server=10.0.0.5")


def test_f36_f92_w42_popruns_argument_vector():
    options = read("--devices", "4", *IPU, "train.py", "--name", "two words", "it's", env={"POPART_LOG_LEVEL": "INFO"})
    program = options.program
    assert (options.mode, options.devices, program.target, program.kind) == ("ipu", (), "poprun", "executable")
    assert program.args[:11] == (
        "--num-instances=4",
        "--num-replicas=4",
        "--ipus-per-replica=1",
        "--host=h1,h2",
        "--vipu-partition=pod",
        "--vipu-server-host=10.0.0.5",
        "--update-partition=no",
        "--vipu-server-timeout=120",
        "--print-topology=yes",
        "--numa-aware=yes",
        "--mpi-local-args=-x POPART_LOG_LEVEL=INFO -x PADDLE_TRAINERS_NUM=4 -x PADDLE_TRAINER_ENDPOINTS=h1:8090,h2:8090",
    )
    assert program.args[13] == (
        "--instance-mpi-local-args=2:-x PADDLE_TRAINER_ID=2 -x PADDLE_CURRENT_ENDPOINT=h2:8090 -x PADDLE_RANK_IN_NODE=0"
    )
    assert program.args[-4:] == ("train.py", "--name", "two words", "it's")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--devices", "4", "ipu", "train.py"], "--hosts, --nproc-per-host"),
        ([*IPU, "train.py"], "not given"),
        (["--devices", "0,1", *IPU, "train.py"], "total number"),
        (["--devices", "5", *IPU, "train.py"], "do not divide by 4"),
        (["--devices", "4", *IPU], "no program"),
    ],
)
def test_f36_mistakes_are_named(words, part):
    with pytest.raises(UsageError) as caught:
        read(*words)
    assert part in str(caught.value)
