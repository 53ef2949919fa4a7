"""What Slurm's tools answer."""

import pytest

from slaunch.errors import AllocationError
from slaunch.slurm.client import duration_s, field, parse_version

NODE = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=4 CPUAlloc=0 CPUTot=8 CPULoad=0.50 AvailableFeatures=(null) ActiveFeatures=(null) "
    "Gres=gpu:4 NodeAddr=10.79.0.1 NodeHostName=n1 Version=22.05.8 OS=Linux RealMemory=4000 State=IDLE Comment=MyNodeAddr=x"
)


def test_fields_of_a_line():
    assert field(NODE, "NodeAddr") == "10.79.0.1"
    assert field(NODE, "NodeName") == "n1"
    assert field(NODE, "Addr") == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:00", 0),
        ("4:58", 298),
        ("1:02:03", 3723),
        ("2-00:00:01", 172801),
        ("UNLIMITED", float("inf")),
        ("NOT_SET", float("inf")),
    ],
)
def test_durations(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "INVALID", "5", "1-2", "a:b"])
def test_no_duration(text):
    with pytest.raises(AllocationError, match="squeue answered"):
        duration_s(text)


@pytest.mark.parametrize(
    ("text", "version"),
    [("slurm-wlm 22.05.8\n", (22, 5, 8)), ("slurm 20.11.1", (20, 11, 1)), ("slurm 24.11.0-0rc1", (24, 11, 0))],
)
def test_versions(text, version):
    assert parse_version(text) == version


def test_no_version():
    with pytest.raises(AllocationError, match="bash: srun"):
        parse_version("bash: srun: not here")
