"""Trials: names, commands, and the options of the launch inside."""

import re
from typing import Any

import pytest
from support.studies import make, setting

from slaunch.allocation.values import Allocation, Shell, Slot, StepShape, Task
from slaunch.errors import AllocationError, UsageError
from slaunch.frozen import replace
from slaunch.options import Options, Part, Program
from slaunch.selfcall import module_command
from slaunch.slurm.resized import with_nodes
from slaunch.tune.space.make import Space
from slaunch.tune.tell import Progress, current_best, no_best, no_settings, opening, result, schedule
from slaunch.tune.trial import steps
from slaunch.tune.trial.carry import pack, unpack
from slaunch.tune.trial.name import folder_name
from slaunch.tune.trial.place import INSIDE, Place, find_place, part_of, renewed, trial_call
from slaunch.tune.trial.prepare import Run, bypass, inner_options
from slaunch.tune.trial.steps import ask_steps, end_steps, steps_named
from slaunch.tune.trial.values import Record
from slaunch.tune.values import Cluster, Dropped

PROGRAM = Program("train.py", ("--lr", "0.1"))
SHELL = Shell(
    Allocation("slurm", "7", nodes=("n1", "n2", "n3", "n4")), StepShape(4, cpus_per_task=8, gpu_args=("--gpus-per-node=4",))
)
TASK = Task(Allocation("plain"), Slot(0, 1, 0))
ENV = {"PATH": "/bin", "SLURM_JOB_ID": "7", "SLURM_CPU_BIND": "cores", "HOME": "/h"}


def test_f241_f242_names_of_folders() -> None:
    given = setting(dp_degree=2, mp_degree=4, micro_batch_size=2, use_recompute=True, recompute_granularity="full")
    assert folder_name(make(), 3, given) == (
        "Job3_GBS16_DP2_MP4_PP1_VPP1_Sharding1_Stage1_MBS2_Recompute_True_Granularity_full_AccStep4"
    )
    assert folder_name(make(), 1, given, "GBSSearch").startswith("Job1_GBSSearch/GBS16_DP2_MP4_")


def test_f241_overlap_and_own_dimensions_are_in_the_name() -> None:
    study = make(refined_recompute=["flash_attn"], custom_search_dim={"kind": {"value": ["a/b c", "x" * 300], "prune": False}})
    given = setting(flash_attn=2, kind="a/b c", sharding_overlap=True, cp_degree=2)
    assert folder_name(study, 1, given).endswith("_AccStep16_Overlap_True_CpDegree2_FlashAttn2_Kinda-b-c")
    long = folder_name(study, 1, {**given, "kind": "x" * 300})
    assert len(long) < 220
    assert long != folder_name(study, 1, {**given, "kind": "x" * 299 + "y"})


# -- where --------------------------------------------------------------------------------------------------------------


def place(
    standing: Shell | Task = SHELL, env: dict[str, str] | None = None, keys: dict[str, Any] | None = None, **options: Any
) -> Place:
    return find_place(standing, Options(PROGRAM, **options), ENV if env is None else env, make(**(keys or {})))


def test_f193_w55_devices_come_from_the_options_the_request_or_the_machine() -> None:
    assert place().cluster == Cluster(4, 4, "device")
    assert place(nproc_per_node=2).cluster == Cluster(4, 2, "device")
    assert place(keys={"gpus_per_node": 3, "nodes": 2}).cluster == Cluster(2, 3, "device")
    elsewhere = Shell(SHELL.allocation, StepShape(4))
    assert place(elsewhere).cluster == Cluster(4, 1)
    assert place(elsewhere, devices=("0", "1")).cluster == Cluster(4, 2), "this machine has none, but the nodes may"
    assert place(TASK, {}, nproc_per_node=3).cluster.gpus == 3
    assert place(TASK, {"CUDA_VISIBLE_DEVICES": "0,1"}).cluster.gpus == 2
    assert place(TASK, {"CUDA_VISIBLE_DEVICES": "0,1"}, devices=("1",)).cluster.gpus == 1
    assert place(TASK, {}).cluster == Cluster(1, 1)
    two = {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    assert place(TASK, two, workers_per_device=2).cluster.gpus == 8
    assert place(TASK, two, devices_per_worker=2).cluster.gpus == 2
    assert place(TASK, two).cluster.device, "there are devices, though their name is not known"


@pytest.mark.parametrize(
    ("gpu_args", "env", "each"),
    [
        (("--gpus-per-node=a100:2",), {}, 2),
        (("--gpus=8",), {}, 2),
        (("--gres=gpu:h100:3",), {}, 3),
        ((), {"SLURM_GPUS_ON_NODE": "5"}, 5),
    ],
)
def test_f193_devices_that_the_allocation_was_asked_for(gpu_args: tuple[str, ...], env: dict[str, str], each: int) -> None:
    shell = Shell(SHELL.allocation, StepShape(4, gpu_args=gpu_args))
    assert place(shell, {**ENV, **env}).cluster.gpus_per_node == each


def test_f326_w29_one_tuner_decides() -> None:
    with pytest.raises(UsageError, match="start `slaunch tune` once"):
        place(Task(Allocation("slurm", "7", "0"), Slot(1, 4, 0)))


def test_p70_p103_a_trial_is_a_step_that_asks_for_exactly_its_share() -> None:
    call = trial_call(place(), Options(PROGRAM, step_args=("--mpi=none",)), ENV, {"SLAUNCH_TRIAL": "{}"}, "slaunch-tune-x-1")
    words = list(call.argv)
    assert words[0] == "srun"
    for word in (
        *("--nodes=4", "--ntasks=4", "--ntasks-per-node=1", "--cpus-per-task=8", "--gpus-per-node=4", "--mem=0", "--exact"),
        *(
            "--cpu-bind=none",
            "--input=none",
            "--nodelist=n1,n2,n3,n4",
            "--job-name=slaunch-tune-x-1",
            "--mpi=none",
            "--kill-on-bad-exit=0",
        ),
    ):
        assert word in words, word
    inner = module_command(INSIDE)
    assert tuple(words[-len(inner) - 1 : -1]) == inner
    assert words.index("--mpi=none") < len(words) - len(inner) - 1
    options, variables = unpack(words[-1])
    assert (options.program, variables) == (PROGRAM, {"SLAUNCH_TRIAL": "{}"})
    assert "SLURM_CPU_BIND" not in call.env
    assert call.env["HOME"] == "/h"


def test_p103_every_trial_has_a_secret_of_its_own() -> None:
    calls = [trial_call(place(), Options(PROGRAM), ENV, {}, f"s{i}").env for i in range(2)]
    changed = {name for name in calls[0] if calls[0][name] != calls[1].get(name)}
    assert len(changed) == 1
    assert re.match("SLAUNCH_", changed.pop())


def test_exact_is_left_out_where_it_would_mean_one_cpu() -> None:
    shell = Shell(SHELL.allocation, StepShape(4))
    assert "--exact" not in trial_call(Place(shell, "7", Cluster(4, 1)), Options(PROGRAM), ENV, {}, "s").argv


def test_a_trial_on_a_plain_machine_is_a_process() -> None:
    call = trial_call(place(TASK, {}), Options(PROGRAM), {"PATH": "/bin"}, {"X": "1"}, "")
    assert call.argv[:-1] == module_command(INSIDE)
    assert call.env == {"PATH": "/bin"}
    assert unpack(call.argv[-1])[1] == {"X": "1"}


def test_f275_a_trial_on_part_of_the_machine() -> None:
    whole, each = part_of(place(), 16, 4)
    assert (whole, each) == (place(), 4)
    narrow, each = part_of(place(), 4, 2)
    assert each == 2
    assert narrow.shell is not None
    words = trial_call(narrow, Options(PROGRAM), ENV, {}, "s").argv
    assert {"--nodes=2", "--nodelist=n1,n2", "--gpus-per-node=2"} <= set(words)
    total = Shell(SHELL.allocation, StepShape(4, gpu_args=("--gpus=a100:16",)))
    assert part_of(Place(total, "7", Cluster(4, 4)), 4, 2)[0].shell.shape.gpu_args == ("--gpus=a100:4",)  # type: ignore[union-attr]
    alone, each = part_of(place(TASK, {}, nproc_per_node=8), 2, 1)
    assert (alone.shell, each) == (None, 2)


def test_nodes_that_the_search_does_not_count_on_are_spare() -> None:
    total = Shell(SHELL.allocation, StepShape(4, gpu_args=("--gpus=a100:16",)))
    found = place(total, keys={"nodes": 3})
    words = trial_call(found, Options(PROGRAM), ENV, {}, "s").argv
    assert {"--nodes=3", "--nodelist=n1,n2,n3", "--gpus=a100:12"} <= set(words)
    assert found.cluster == Cluster(3, 4, "device")
    with pytest.raises(AllocationError, match="counts on 5 nodes, the allocation has 4"):
        place(keys={"nodes": 5})


def test_a_lost_node_is_replaced_by_a_spare_one() -> None:
    three = place(keys={"nodes": 3})
    assert nodes_of(three, "n1", "n2", "n3", "n4") == ("n1", "n2", "n3")
    assert nodes_of(three, "n1", "n3", "n4") == ("n1", "n3", "n4")
    with pytest.raises(AllocationError, match="counts on 3 nodes, the allocation has 2"):
        nodes_of(three, "n1", "n4")
    alone = place(TASK, {})
    assert renewed(alone) is alone


def nodes_of(found: Place, *left: str) -> tuple[str, ...]:
    """The nodes of a place whose job has these left."""
    now = renewed(found, lambda shell: with_nodes(shell, left)).shell
    assert now is not None
    assert now.shape == replace(found.shell.shape, overlap=len(left) < 4, resized=len(left) < 4)  # type: ignore[union-attr]
    return now.allocation.nodes


# -- what runs inside ---------------------------------------------------------------------------------------------------


def inside(each: int = 8, stage: str = "search", **options: Any) -> Options:
    run = Run(3, "Job3_x", "auto_tuner_3", "/t/Job3_x", stage)
    return inner_options(Options(PROGRAM, **options), run, ("--lr", "0.1", "--mp", "2"), ("SLAUNCH_TRIAL",), each, 8)


def test_f241_p103_the_launch_inside_has_the_users_options_and_the_trials_name() -> None:
    found = inside(nproc_per_node=4, grace_s=3.0, keep_env=("A",), nnodes=(4, 4), master="h:1", node_rank=0)
    assert (found.job_id, found.log_dir) == ("auto_tuner_3", "/t/Job3_x")
    assert found.program.args == ("--lr", "0.1", "--mp", "2")
    assert (found.nproc_per_node, found.grace_s, found.keep_env) == (8, 3.0, ("A", "SLAUNCH_TRIAL"))
    assert (found.nnodes, found.master, found.node_rank) == ((0, 0), "", -1)
    assert (inside(max_restarts=3).max_restarts, inside(stage="best", max_restarts=3).max_restarts) == (0, 3)
    assert (inside(requeue=(-1, -1, 0)).requeue, inside(stage="best", requeue=(-1, -1, 0)).requeue) == ((), (-1, -1, 0))


def test_a_trials_output_is_on_the_console_only_if_asked_for() -> None:
    assert inside().tee == ()
    assert inside(tee=(1,), origins={"tee": "--tee"}).tee == (1,)
    assert inside(stage="best").tee == (0,)


def test_f275_part_of_the_devices() -> None:
    assert inside(2, devices=("3", "4", "5")).devices == ("3", "4")
    assert (inside(2).nproc_per_node, inside(2).devices) == (2, ()), "each worker takes one; the rest stays unused"
    assert (inside(2, nproc_per_node=8).nproc_per_node, inside(2, nproc_per_node=8).devices) == (2, ())


def test_options_are_carried_whole() -> None:
    part = Part("a", ((0, 1), (3, 3)), PROGRAM, (("X", "1"),))
    full = Options(
        PROGRAM,
        nproc_per_node=2,
        devices=("0", "1"),
        contracts=("torch",),
        tee=(),
        nnodes=(1, 2),
        log_dir="/ü\n'\"",
        parts=(part,),
        heters=(("a:1", "b:2"), ()),
        grace_s=2.5,
        origins={"nnodes": "--nnodes", "tee": "default"},
        notes=("gone",),
    )
    found, variables = unpack(pack(full, {"A": "ü\n"}))
    assert variables == {"A": "ü\n"}
    assert found == Options(
        **{**{n: getattr(full, n) for n in Options.__match_args__}, "origins": {"nnodes": "--nnodes"}, "notes": ()}
    )
    assert len(pack(Options(PROGRAM), {})) < 140


@pytest.mark.parametrize(
    ("algorithm", "sharding", "value"),
    [
        ({"name": "grid"}, 1, {}),
        ({"name": "dp_estimation", "estimated_num_gpus": 16}, 1, {"FLAGS_shard_bypass_dygraph_optimizer": "1"}),
        ({"name": "dp_estimation", "estimated_num_gpus": 16}, 2, {"FLAGS_shard_bypass_dygraph_optimizer": "0"}),
        ({"name": "gbs"}, 1, {"FLAGS_shard_bypass_dygraph_optimizer": "0"}),
    ],
)
def test_f281_optimizer_bypass(algorithm: dict[str, Any], sharding: int, value: dict[str, str]) -> None:
    assert bypass(make(search_algo=algorithm), setting(sharding_degree=sharding)) == value


# -- steps of the job ---------------------------------------------------------------------------------------------------


class Slurm:
    """Answers of squeue, one after another, and what scancel was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.cancelled: list[str] = []

    def __call__(self, argv: Any) -> str:
        if argv[0] == "scancel":
            self.cancelled.append(" ".join(argv[1:]))
            return ""
        return self.answers.pop(0)


ANSWER = "7.batch batch\n7.0 other\n7.3 slaunch-tune-ab-1\n7_2.4 slaunch-tune-ab-12\n"


def test_w01_only_the_own_step_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "PAUSE_S", 0.01)
    slurm = Slurm(ANSWER)
    assert steps_named("7", "slaunch-tune-ab-12", slurm) == ("7_2.4",)
    slurm = Slurm(ANSWER, "7.0 other\n")
    assert end_steps("7", "slaunch-tune-ab-12", 30, slurm) == ""
    assert slurm.cancelled == ["7_2.4"]
    slurm = Slurm("7.0 other\n")
    assert end_steps("7", "slaunch-tune-ab-1", 30, slurm) == ""
    assert slurm.cancelled == []


def test_f266_a_step_that_does_not_go_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "PAUSE_S", 0.01)
    slurm = Slurm(*["7.3 s"] * 9)
    assert end_steps("7", "s", 0.05, slurm) == "step 7.3 is still there 0 s after scancel"


def test_steps_are_asked_to_stop_first() -> None:
    slurm = Slurm(ANSWER)
    assert ask_steps("7", "slaunch-tune-ab-12", slurm)
    assert slurm.cancelled == ["--signal=TERM 7_2.4"]
    assert not ask_steps("7", "no", Slurm("")), "no step yet: srun itself is asked"


# -- what is told -------------------------------------------------------------------------------------------------------


def record(number: int, metric: float | None, status: str = "ok", **fields: Any) -> Record:
    return Record(number, "", "/t", setting(), status, metric=metric, start_s=1.0, run_s=19.0, **fields)


def test_f259_the_schedule_line() -> None:
    records = (record(1, 5.0), record(2, None, "oom"), record(3, None, "error"), record(4, None, "oom"))
    line = schedule(Progress(10, 4, 2, records, 600, (20.0, 40.0)))
    start = "6/10 settings done: 4 trials, 2 skipped, 3 failed (2 oom, 1 error); at most "
    assert line == start + "40 min 0 s left, 2 min 0 s at the pace so far"
    ending = schedule(Progress(10, 4, 2, records, 600, (20.0, 40.0), trials_left=1, search_s=90.0))
    assert ending == start + "90.0 s left, 30.0 s at the pace so far"
    assert (
        schedule(Progress(10, 0, 6, records, 600, (20.0,)))
        == start.replace("6/10", "10/10").replace("2 sk", "6 sk") + "0.00 s left"
    )


def test_f225_f260_lines_of_beginning_and_best() -> None:
    space = Space((setting(),), (Dropped(setting(), "tensor", "x"), Dropped(setting(), "tensor", "x")))
    assert opening(make(), Cluster(2, 4), space) == (
        "1 settings for 8 workers on 2 nodes; 2 of 3 dropped by rules (tensor 2); at most 100 trials; search grid"
    )
    assert current_best(make(), record(3, 12.5, error=0.25, memory_mib=512.0)) == (
        "best so far: trial 3: tokens_per_sec 12.5 ± 0.25, 512 MiB: "
        "DP1_MP1_PP1_VPP1_Sharding1_Stage1_MBS1_Recompute_False_Granularity_None"
    )
    assert current_best(make(), None) == "no setting has a result yet"
    assert result(make(), record(2, None, "oom", detail="Out of memory")) == "trial 2: oom: Out of memory, in 20.0 s"
    assert result(make(), record(2, 3.0, origin="journal")) == "trial 2: tokens_per_sec 3, memory unknown, from journal"


def test_f263_the_error_of_no_result_counts_the_ends() -> None:
    error = no_best([record(1, None, "oom"), record(2, None, "error", detail="rank 0: bad")], "h.csv")
    assert error.exit_code == 77
    assert "2 trials, none with a result: 1 oom, 1 error; the last one: rank 0: bad" in error.seen
    nothing = no_settings(make(), Cluster(1, 8), Space((), (Dropped(setting(), "device_count", "the degrees make 1"),)))
    assert "dropped by rules: device_count 1; e.g. the degrees make 1" in nothing.seen
