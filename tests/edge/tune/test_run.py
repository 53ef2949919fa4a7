"""One trial's processes: deadlines, the end of all of them, and nobody else's."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.jobs import EXAMPLES
from support.studies import make, setting

from slaunch.allocation.values import StepCall
from slaunch.errors import MissingToolError, UsageError
from slaunch.frozen import replace
from slaunch.options import Options, Program
from slaunch.selfcall import module_command
from slaunch.tune.search.estimator import estimate, sift
from slaunch.tune.space.make import Space
from slaunch.tune.trial.carry import pack
from slaunch.tune.trial.devices import wait_until_free
from slaunch.tune.trial.leftovers import clear
from slaunch.tune.trial.place import INSIDE
from slaunch.tune.trial.run import last_line, run_order
from slaunch.tune.trial.values import Order

PATIENCE_S = 30.0


def order(folder: Path, program: str, **fields: float) -> Order:
    """Two workers of this Python text, run by slaunch inside a trial."""
    script = folder / "program.py"
    script.write_text(program)
    options = Options(Program(str(script)), nproc_per_node=2, job_id="t", log_dir=str(folder), tee=(), grace_s=1.0)
    argv = (*module_command(INSIDE), pack(options, {}))
    made = Order(1, "t", "t", str(folder), StepCall(argv, dict(os.environ)), grace_s=1.0)
    return replace(made, **fields)  # type: ignore[arg-type]


def never() -> bool:
    return False


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(folder: Path) -> list[int]:
    """The workers, by the files in which they wrote their numbers."""
    return [int(path.read_text()) for path in folder.glob("pid.*") if path.read_text()]


def wait_until(true: object, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


WRITE = "import os, time\nopen(os.environ['SLAUNCH_HERE'] + '/pid.' + os.environ['RANK'], 'w').write(str(os.getpid()))\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERE", str(tmp_path))
    return tmp_path


HANG = WRITE.replace("SLAUNCH_HERE", "HERE") + "time.sleep(600)\n"


def test_f253_a_trial_that_ends_by_itself(here: Path) -> None:
    ended = run_order(order(here, "print('x', flush=True)\n"), never)
    assert (ended.why, ended.code, ended.started, ended.left) == ("exit", 0, True, "")
    assert (here / "workerlog.1").read_text() == "x\n"
    assert (here / "report.json").exists()
    assert "2 workers ended well" in (here / "slaunch.out").read_text()


def test_p101_slurm_is_not_asked_about_a_trial_that_ends_by_itself(here: Path) -> None:
    # no such job: a question would be answered by an error
    step = replace(order(here, ""), step="slaunch-tune-x-1", slurm_job="1")
    assert run_order(step, never).left == ""


def test_a_failing_trial_has_its_programs_exit_code(here: Path) -> None:
    assert run_order(order(here, "raise SystemExit(9)\n"), never).code == 9


def test_f134_f178_f243_f312_w01_w30_a_time_limit_in_fractions_of_seconds_ends_the_own_processes(here: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        ended = run_order(order(here, HANG, limit_s=1.5), never)
        assert (ended.why, ended.left) == ("limit", "")
        assert ended.run_s >= 1.5
        assert len(pids(here)) == 2
        assert not any(alive(pid) for pid in pids(here))
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_w30_the_start_has_a_limit_of_its_own(here: Path) -> None:
    slow = replace(
        order(here, ""), call=StepCall((sys.executable, "-c", "import time; time.sleep(600)"), dict(os.environ)), start_s=0.5
    )
    ended = run_order(slow, never)
    assert (ended.why, ended.started) == ("start", False)


def test_a_search_that_is_asked_to_stop_ends_its_trial(here: Path) -> None:
    began = time.monotonic()
    ended = run_order(order(here, HANG), lambda: bool(pids(here)) and time.monotonic() > began + 1)
    assert ended.why == "asked"
    assert not any(alive(pid) for pid in pids(here))


def test_workers_that_ignore_the_request_are_killed(here: Path) -> None:
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + HANG
    ended = run_order(order(here, stubborn, limit_s=1.5), never)
    assert ended.why == "limit"
    assert not any(alive(pid) for pid in pids(here))


def test_a_program_that_is_not_there(here: Path) -> None:
    gone = replace(order(here, ""), call=StepCall(("no-such-srun",), {"PATH": "/nowhere"}))
    with pytest.raises(MissingToolError, match="no-such-srun"):
        run_order(gone, never)


def test_what_the_launcher_said_last(tmp_path: Path) -> None:
    assert last_line(str(tmp_path)) == ""
    (tmp_path / "slaunch.out").write_text("slaunch: note: x\nslaunch: cannot find it\n  seen: this\n  do:   that\n")
    assert last_line(str(tmp_path)) == "slaunch: cannot find it; seen: this"
    (tmp_path / "slaunch.out").write_text("hello\nlast\n\n")
    assert last_line(str(tmp_path)) == "last"


def test_a_trial_waits_until_the_one_before_has_left_its_devices() -> None:
    before = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    asked = []

    def look(env: object) -> tuple[tuple[str, int], ...]:
        asked.append(env)
        if len(asked) == 2:
            before.communicate(b"\n")  # it ends, and the driver still counts its memory for one more look
        return (("GPU-1", before.pid),) if len(asked) < 4 else ()

    wait_until_free({}, look)
    assert len(asked) == 4
    stays = (("GPU-1", os.getpid()),)
    wait_until_free({}, lambda env: stays, patience_s=0.1)


# -- a tuner that is killed ---------------------------------------------------------------------------------------------

TUNER = """
import sys
from slaunch.selfcall import module_command
from slaunch.tune.trial.place import INSIDE
from slaunch.tune.trial.run import run_order
from slaunch.tune.trial.values import Order
from slaunch.allocation.values import StepCall
import os
call = StepCall((*module_command(INSIDE), sys.argv[2]), dict(os.environ))
run_order(Order(1, "t", "t", sys.argv[1], call), lambda: False)
"""


def test_f323_a_killed_tuner_leaves_no_workers(here: Path) -> None:
    made = order(here, HANG)
    tuner = subprocess.Popen([sys.executable, "-c", TUNER, str(here), made.call.argv[-1]])
    try:
        wait_until(lambda: len(pids(here)) == 2)
    finally:
        tuner.send_signal(signal.SIGKILL)
        tuner.wait()
    wait_until(lambda: not any(alive(pid) for pid in pids(here)))


def test_what_a_killed_tuner_left_is_ended_by_the_next_one(here: Path) -> None:
    made = order(here, HANG)
    left = subprocess.Popen(made.call.argv, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(pids(here)) == 2)
        event = {"event": "start", "folder": str(here), "pid": left.pid, "host": os.uname().nodename, "step": ""}
        assert clear([{**event, "folder": "/other"}], "", 1.0) == ""
        assert left.poll() is None, "another folder: not this trial"
        assert clear([event, {"event": "trial"}], "", 1.0) == ""
        assert left.poll() is None, "the trial has ended"
        assert clear([event], "", 1.0) == ""
        wait_until(lambda: not any(alive(pid) for pid in pids(here)))
    finally:
        left.kill()
        left.wait()


# -- the memory estimation tool -----------------------------------------------------------------------------------------

TOOL = """
import argparse
options = argparse.ArgumentParser()
for name in ("dp_degree", "mp_degree", "pp_degree", "vpp_degree", "sharding_degree", "sharding_stage", "use_recompute",
             "micro_batch_size", "recompute_granularity", "num_layers"):
    options.add_argument(f"--{name}", required=True)
given = options.parse_args()
print(20000.4 * int(given.micro_batch_size))
"""


def test_f209_w56_the_estimator_drops_what_needs_too_much(tmp_path: Path) -> None:
    tool = tmp_path / "tool.py"
    tool.write_text(TOOL)
    study = make(memory_estimation_tool=str(tool), max_mem_usage=80)
    settings = tuple(setting(micro_batch_size=size) for size in (1, 4, 8))
    space, found = sift(study, Space(settings))
    assert space.settings == settings[:2]
    assert [(each.rule, each.reason) for each in space.dropped] == [
        ("memory_estimation", "it is estimated to need 160003 MiB of 81920"),
    ]
    assert found == {0: 20000, 1: 80001}


@pytest.mark.parametrize(
    ("program", "said"), [("raise SystemExit('no model')", "no model"), ("print('much')", "'much'"), ("print('inf')", "'inf'")]
)
def test_f209_an_estimator_that_fails(tmp_path: Path, program: str, said: str) -> None:
    tool = tmp_path / "tool.py"
    tool.write_text(program)
    study = make(memory_estimation_tool=str(tool), max_mem_usage="80GiB")
    with pytest.raises(UsageError) as caught:
        sift(study, Space((setting(),)))
    assert said in caught.value.seen
    with pytest.raises(UsageError, match="is not there"):
        sift(make(memory_estimation_tool=str(tmp_path / "none.py"), max_mem_usage=1), Space((setting(),)))


def test_f284_the_template_of_a_memory_tool() -> None:
    """A model of 22 billion parameters on 8 devices: 16 bytes each, and 34 bytes of activations an element without a split."""
    model = {"num_layers": 48, "hidden_size": 6144, "vocab_size": 51200, "max_sequence_length": 2048}
    study = make(memory_estimation_tool=os.path.join(EXAMPLES, "gpt", "memory.py"), max_mem_usage="80GiB", model=model)
    eight = {"mp_degree": 8, "micro_batch_size": 4}
    settings = [setting(**eight), setting(**eight, use_recompute=True), setting(**{**eight, "micro_batch_size": 16})]
    settings += [setting(sharding_degree=8, sharding_stage=stage) for stage in (1, 2, 3)]
    space, found = sift(study, Space(tuple(settings)))
    states, element = (48 * 12 * 6144**2 + 51200 * 6144) / 2**20, 48 * 2048 * 6144 / 2**20
    assert found[0] == round(states * 16 / 8 + 4 * element * (10 + 24 / 8))
    assert found[1] == round(states * 16 / 8 + 4 * element * 2 + 4 * element / 48 * 13)
    assert found[2] == round(states * 16 / 8 + element * 34)
    assert space.settings == (*settings[:2], settings[5])
    assert [each.rule for each in space.dropped] == ["memory_estimation"] * 3


def test_w56_equal_estimates_are_made_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    command = ("/bin/sh", "-c", f"echo x >>{count}; echo 5")
    assert estimate([command] * 5) == [5] * 5
    assert count.read_text() == "x\n"
