"""Options of devices, binding, memory, network cards and the device log."""

import pytest

from slaunch.cli.options import read_options
from slaunch.errors import UsageError

DEFAULTS = {
    "bind": "auto",
    "bind_memory": "auto",
    "nics": "auto",
    "device_log": "auto",
    "workers_per_device": 1,
    "devices_per_worker": 0,
}


def read(*words, env=None):
    return read_options([*words, "a.py"], env or {})


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--bind", "map:0,1"], "bind", "map:0,1"),
        (["--bind-memory", "BIND"], "bind_memory", "bind"),
        (["--nics", "none"], "nics", "none"),
        (["--device-log", "off"], "device_log", "no"),
        (["--device_log=true"], "device_log", "yes"),
        (["--device-log", "Auto"], "device_log", "auto"),
        (["--workers-per-device", "2"], "workers_per_device", 2),
        (["--devices-per-worker", "4"], "devices_per_worker", 4),
        (["--devices-per-worker", "ALL"], "devices_per_worker", -1),
    ],
)
def test_f71_f153_each_option_and_its_default(words, field, value):
    assert getattr(read(*words), field) == value
    assert getattr(read(), field) == DEFAULTS[field]


def test_variables_say_the_same():
    env = {"SLAUNCH_BIND_MEMORY": "none", "SLAUNCH_DEVICE_LOG": "0", "SLAUNCH_WORKERS_PER_DEVICE": "3"}
    options = read(env=env)
    assert (options.bind_memory, options.device_log, options.workers_per_device) == ("none", "no", 3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bind-memory", "near"], "must be one of auto, preferred, bind, none"),
        (["--nics", "mlx5_0"], "must be one of auto, none"),
        (["--device-log", "maybe"], "must be true, false or auto"),
        (["--workers-per-device", "0"], "must be at least 1"),
        (["--devices-per-worker", "some"], "is not a number"),
    ],
)
def test_bad_values_are_named(words, said):
    with pytest.raises(UsageError) as told:
        read(*words)
    assert said in told.value.seen


@pytest.mark.parametrize(("word", "value"), [("true", "auto"), ("False", "no")])
def test_f11_f153_paddle_s_switch(word, value):
    options = read_options(["paddle", "--enable_gpu_log", word, "a.py"], {})
    assert options.device_log == value
    assert not any("gpu" in note for note in options.notes)
    assert read_options(["paddle", "a.py"], {}).device_log == "auto"
