"""Numbers in lines of logs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.tune.measure.line import clean, reader
from slaunch.tune.measure.oom import PATTERNS, oom_pattern


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ips: 60.0", (60.0,)),
        ("step 10 ips: 60.0", (60.0,)),  # Paddle's tuner takes the 10
        ("ips=60", (60.0,)),
        ("ips = -1.5e3", (-1500.0,)),
        ("ips 1,234.5 tokens", (1234.5,)),
        ("ips::  .5", (0.5,)),
        ("loss: 2.1, ips: 60.0 tok/s", (60.0,)),
        ("60.0 ips", (60.0,)),
        ("60.0ips", (60.0,)),
        ("step 3, 60.0 ips", (60.0,)),
        ("{'loss': 1.0, 'ips': 60.5}", (60.5,)),
        ('{"loss": 1.0, "ips": 60.5}', (60.5,)),
        ('{"ips": {"mean": 3}}', ()),
        ("[2026-01-01 10:00:00] ips: 3", (3.0,)),
        ("ips: +7", (7.0,)),
        ("ips: inf", (math.inf,)),
        ("avg_ips: 3", ()),
        ("ips2: 3", ()),
        ("ipsum 3", ()),
        ("ips: none", ()),
        ("nothing here", ()),
        ("ips: 3, ips: 3", (3.0,)),
    ],
)
def test_f245_f313_w02_metric_lines(line: str, found: tuple[float, ...]) -> None:
    assert reader("ips")(line) == found


def test_w02_a_line_with_two_values_is_ambiguous() -> None:
    assert reader("ips")("ips: 3 of ips: 4") == (3.0, 4.0)


def test_w02_nan_is_a_value() -> None:
    assert [math.isnan(value) for value in reader("ips")("ips: nan")] == [True]


def test_w02_the_name_is_no_pattern() -> None:
    assert reader("step/s (avg)")("step/s (avg): 3") == (3.0,)
    assert reader("a.c")("abc: 3") == ()


def test_json_by_path() -> None:
    assert reader("speed.tokens")('{"speed": {"tokens": 5}}') == (5.0,)
    assert reader("ips")('{"ips": true}') == ()


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        (r"throughput \(tokens\): ([\d.]+)", "throughput (tokens): 12.5", (12.5,)),
        (r"(\w+) speed (?P<value>\S+)", "my speed 1,000", (1000.0,)),
        (r"speed (\S+)", "speed fast", ()),
        (r"speed (\d+)", "speed 1 speed 2", (1.0, 2.0)),
    ],
)
def test_f245_own_patterns(pattern: str, line: str, found: tuple[float, ...]) -> None:
    assert reader("unused", pattern)(line) == found


@given(st.floats(allow_nan=False), st.sampled_from([": ", "=", " = ", " ", "::"]), st.sampled_from(["", "step 7 ", "7 "]))
def test_w02_what_python_prints_is_read_back(value: float, between: str, before: str) -> None:
    assert reader("tokens/s")(f"{before}tokens/s{between}{value!r}") == (value,)


@given(st.text())
def test_any_line_can_be_read(line: str) -> None:
    assert all(isinstance(value, float) for value in reader("ips")(line))


def test_what_a_terminal_shows() -> None:
    assert clean("a\rb\x1b[31mc\x1b[0m\r\n") == ["a", "bc"]


OOM_LINES = [
    "ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 2.0GB",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
    "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 MiB.",
    "RuntimeError: CUDA error: out of memory",
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123 bytes.",
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[1]",
    "MemoryError",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "OSError: [Errno 12] Cannot allocate memory",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0. Some of your processes may have been killed",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0.",
]
NO_OOM_LINES = [
    "step 1 ips: 3",
    "on_oom: skip",
    "memory: 3 GB of 80 GB",
    "max_memory_allocated: 3",
    "loss ran out of bounds",
    "zoom: 3",
]


@pytest.mark.parametrize("line", OOM_LINES)
def test_f246_w61_lines_of_lacking_memory(line: str) -> None:
    assert oom_pattern().search(line)


@pytest.mark.parametrize("line", NO_OOM_LINES)
def test_f246_w61_other_lines(line: str) -> None:
    assert not oom_pattern().search(line)


def test_w61_the_users_own_patterns() -> None:
    assert oom_pattern(["no room left"]).search("there is no room left")
    assert all(any(oom_pattern([pattern]).search(line) for line in OOM_LINES) for pattern in PATTERNS.values())
