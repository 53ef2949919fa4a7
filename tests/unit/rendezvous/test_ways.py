"""Ways of meeting by name: the built-in ones and those of other packages."""

import configparser
import os
import sys

import pytest

from slaunch.errors import UsageError
from slaunch.rendezvous.ways import BUILT_IN, GROUP, find

SETUP = os.path.join(os.path.dirname(__file__), "..", "..", "..", "setup.cfg")


def test_all_built_in_ways_are_there_and_registered():
    assert all(callable(find(name)) for name in BUILT_IN)
    config = configparser.ConfigParser()
    config.read(SETUP)
    registered = dict(line.split(" = ") for line in config["options.entry_points"][GROUP].strip().splitlines())
    assert registered == BUILT_IN


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Another package that is installed, with two ways of meeting."""
    (tmp_path / "carrier.py").write_text("def meet_by_pigeon(ground, deadline): return 'coo'\nnothing = 1\n")
    folder = tmp_path / "carrier-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\npigeon = carrier:meet_by_pigeon\nbroken = carrier:nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("carrier", None)


def test_another_package_may_bring_a_way(package):
    assert find("pigeon")(None, 0.0) == "coo"
    with pytest.raises(UsageError, match="what is registered under this name is 1"):
        find("broken")


def test_an_unknown_way_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match="choose from auto, mpi, slurm, tcp, etcd"):
        find("telepathy")
