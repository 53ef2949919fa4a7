"""What every layer of tests shares: marks by folder, `--layers`, no skips in CI, guards against leaks, the cluster."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings
from support.cluster import Cluster
from support.examples import VARIABLE, number

LAYERS = ("unit", "edge", "mpi", "cluster", "framework", "pythons")
HERE = os.path.dirname(os.path.abspath(__file__))
CI = bool(os.environ.get("CI"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--layers", help=f"run only these folders of tests: some of {','.join(LAYERS)}")


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("--layers")
    unknown = set(chosen.split(",")) - set(LAYERS) if chosen else set()
    if unknown:
        raise pytest.UsageError(f"--layers: {sorted(unknown)} not among {list(LAYERS)}")
    if "SLAUNCH_STATE_DIR" not in os.environ:  # where runs are remembered: not among the developer's own
        state = tempfile.TemporaryDirectory(prefix="slaunch-state-")
        config.add_cleanup(state.cleanup)
        os.environ["SLAUNCH_STATE_DIR"] = state.name
    if VARIABLE in os.environ:
        settings.register_profile("few", max_examples=number(100), deadline=None)
        settings.load_profile("few")
    signal.signal(signal.SIGTERM, _stop)  # `timeout` ends a run this way: fixtures are still torn down


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def layer_of(item: pytest.Item) -> str:
    return os.path.relpath(item.path, HERE).split(os.sep)[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: -LAYERS.index(layer_of(item)))  # the longest first: side by side, all processes end together
    for item in items:
        item.add_marker(layer_of(item))
    chosen = config.getoption("--layers")
    if chosen:
        out = [item for item in items if layer_of(item) not in chosen.split(",")]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


# -- in CI a skipped test is a failed one -----------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _no_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _no_skip((yield))


def _no_skip(report):  # type: ignore[no-untyped-def]
    if CI and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped, which CI does not allow: {report.longrepr}"
    return report


# -- leaks --------------------------------------------------------------------------------------------------------


def children() -> set[int]:
    """Direct children of this process, also those not yet reaped."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found |= set(map(int, file.read().split()))
        except FileNotFoundError:  # that thread has just ended
            continue
    return found


def descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} -> {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:  # the listing's own
            continue
    return found


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def state() -> dict[str, set[Any]]:
    return {
        "children": children(),
        "threads": set(threading.enumerate()),
        "descriptors": descriptors(),
        "variables": set(variables().items()),
    }


def new_in(before: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """What is there now and was not; of the variables also what is gone."""
    now = state()
    new = {what: now[what] - before[what] for what in now}
    new["variables"] = now["variables"] ^ before["variables"]
    return {what: some for what, some in new.items() if some}


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test of this process's own code leaves no child, thread, descriptor or variable behind."""
    if layer_of(request.node) not in ("unit", "edge"):
        yield
        return
    before = state()
    yield
    left = new_in(before)
    if left:  # collecting after every test would take longer than the tests
        gc.collect()
        left = new_in(before)
    assert not left, f"left behind: {left}"


# -- the cluster --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def cluster(_cluster: Cluster) -> Iterator[Cluster]:
    """Four nodes, eight CPUs and four GPUs each. A job or process that a test leaves behind fails it."""
    yield _cluster
    left = _cluster.clean()
    assert not left, "left on the cluster:\n" + "\n".join(left)
