"""What a worker died of."""

from __future__ import annotations

import signal

import pytest

from slaunch.agent.cause import classify, last_exception

TORCH_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.11 GiB"
KERNEL_OOM = "out of memory: control group limit of 2.0 GiB"
PADDLE_OOM = "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 4.000000GB memory on GPU 0"


@pytest.mark.parametrize(
    ("code", "number", "tail", "oom", "cause", "detail"),
    [
        (1, 0, ("Traceback (most recent call last):", "ValueError: bad"), "", "error", "ValueError: bad"),
        (1, 0, ("Traceback", "torch.cuda.CudaError: boom", "cleanup line"), "", "error", "torch.cuda.CudaError: boom"),
        (3, 0, (), "", "error", ""),
        (1, 0, (TORCH_OOM,), "", "memory", TORCH_OOM),
        (1, 0, ("E0101 12:00:00", *PADDLE_OOM.split("\n")), "", "memory", "ResourceExhaustedError:"),
        (1, 0, ("MemoryError",), "", "memory", "MemoryError"),
        (134, 6, ("terminate called after throwing an instance of 'std::bad_alloc'",), "", "memory", "out of memory"),
        (137, 9, ("step 4",), KERNEL_OOM, "memory", KERNEL_OOM),
        (137, 9, ("step 4",), "", "signal", ""),
        (139, 11, (), "", "signal", ""),
        (1, 0, ("RuntimeError: [gloo/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4242",), "", "peer", None),
        (1, 0, ("ncclRemoteError: A call failed possibly due to a network error.",), "", "peer", None),
        (1, 0, ("BrokenPipeError: [Errno 32] Broken pipe",), "", "peer", None),
        (1, 0, ("old: connection reset by peer", "ValueError: bad"), "", "error", "ValueError: bad"),
        (127, 0, ("slaunch: cannot start x: not found",), "", "start", "cannot start x: not found"),
        (127, 0, ("sh: x: not found",), "", "error", ""),
        (130, 2, ("KeyboardInterrupt",), "", "signal", "KeyboardInterrupt"),
        (143, 15, ("Traceback", "ValueError: bad"), "", "error", "ValueError: bad"),
        (143, 15, ("ValueError: caught", "step 7"), "", "signal", "ValueError: caught"),
    ],
)
def test_p93_p94_classes(code: int, number: int, tail: tuple[str, ...], oom: str, cause: str, detail: str | None) -> None:
    found, line = classify(code, number, tail, oom)
    assert found == cause
    if detail is not None:
        assert line == detail


TORCH_PORT = (
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29593, "
    "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
)


@pytest.mark.parametrize(
    ("line", "told", "cause"),
    [
        (TORCH_PORT, "10.0.0.1 29593", "port"),
        (TORCH_PORT, "10.0.0.1 31000", "peer"),
        ("OSError: [Errno 98] Address already in use", "29593", "port"),
        ("Server listen failed on 10.0.0.1:29593: Address already in use [98]", "10.0.0.1:29593,10.0.0.2:29593", "port"),
        ("Cannot open port 6006: address already in use (TensorBoard)", "29593", "error"),
    ],
)
def test_p30_a_port_that_slaunch_chose_and_another_process_has(line: str, told: str, cause: str) -> None:
    """Of a port that the program chose itself, new ports would be no help."""
    assert classify(1, 0, ("Traceback (most recent call last):", line), "", "", told)[0] == cause


PADDLE_STACK = (
    "1   phi::distributed::TCPStore::TCPStore(std::string, unsigned short, bool, unsigned long, int)",
    "2   phi::distributed::detail::TCPServer::create(unsigned short, int, int, bool)",
    "3   phi::distributed::detail::LibUVMasterDaemon::~LibUVMasterDaemon()",
    "4   phi::distributed::detail::LibUVMasterDaemon::~LibUVMasterDaemon()",
    "5   uv_run",
    "FatalError: `Process abort signal` is detected by the operating system.",
)


def test_p30_paddle_aborts_where_it_cannot_listen() -> None:
    """As paddlepaddle 3.3.1 prints it."""
    assert classify(134, signal.SIGABRT, PADDLE_STACK, "")[0] == "port"
    assert classify(134, signal.SIGABRT, PADDLE_STACK[:2] + PADDLE_STACK[4:], "")[0] != "port"


def test_an_oom_counter_explains_only_a_kill() -> None:
    assert classify(1, 0, (), "out of memory: the whole node")[0] == "error"
    assert classify(139, signal.SIGSEGV, (), "out of memory: the whole node")[0] == "signal"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ValueError: bad", "ValueError: bad"),
        ("  my.pkg.OddError", "my.pkg.OddError"),
        ("subprocess.CalledProcessError: Command", "subprocess.CalledProcessError: Command"),
        ("Error", ""),
        ("this is no Error: really", ""),
        ("loss: 3.2", ""),
        ("UserWarning: careful", ""),
    ],
)
def test_last_exception(line: str, found: str) -> None:
    assert last_exception(("x", line, "y")) == found
