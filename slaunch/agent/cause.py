"""What a failed worker died of, from its exit, its last words and the memory counters.

Classes: "memory" (the kernel or the device had none left), "port" (another process has a port that slaunch chose for it), "peer"
(it lost another worker: a victim), "signal" (a signal ended it), "start" (it could not be executed), "fence" (the guardian ended
it, as its agent had no word of the others), "error" (anything else; also an exception of which it spoke before a signal came).
"""

from __future__ import annotations

import re
import signal

from slaunch.agent.process import CANNOT_EXECUTE, NOT_FOUND

# Patterns are compiled when a worker has failed, not at each start.
_PEER = (
    r"(?i)connection (reset|closed) by peer|broken pipe|connection refused|remote process exited|ncclRemoteError|ncclSystemError"
    r"|socket (closed|timeout)|peer closed|lost connection|DistBackendError|DistNetworkError|communicator was aborted"
    r"|collective operation timeout|Watchdog caught|Timed out waiting|recvValue failed"
)
_MEMORY = (
    r"out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED|ResourceExhaustedError|cudaErrorMemoryAllocation"
    r"|MemoryError|std::bad_alloc|Cannot allocate memory"
)
_PORT = r"(?i)address already in use|EADDRINUSE"  # the system's words; libuv's, in torch's store
_PADDLE_PORT = r"TCPServer::create[^~]*LibUVMasterDaemon::~LibUVMasterDaemon"  # Paddle 3.3's store aborts as it cannot listen
_NUMBER = r"(?i)\bport:? ?(\d{2,5})\b|[\w\]]:(\d{2,5})\b|', (\d{2,5})\)"
_EXCEPTION = r"^([A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Failure)\b.*)$"
_STOP = r"KeyboardInterrupt|SystemExit|SignalException|CancelledError|killed by signal|got signal|Terminated"
_LAST_WORDS = 8

FENCED = "fence", "ended by slaunch-guard: its agent had no word of the others for so long that they may go on without this node"


def classify(  # noqa: PLR0917 - all that is known
    code: int, number: int, tail: tuple[str, ...], oom: str, said: str = "", told: str = ""
) -> tuple[str, str]:
    """Class of the cause and one line on it.

    Args:
        code: exit code, 128 + n for a signal.
        number: the signal that ended it, or 0.
        tail: last lines of its output.
        oom: what `oom.explain` says of the time it ran.
        said: the exception that it wrote to its error file; "" if it wrote none.
        told: what its variables say; the ports that were chosen for it are in there.
    """
    if number == signal.SIGKILL and oom:
        return "memory", oom
    if code in (CANNOT_EXECUTE, NOT_FOUND) and tail and tail[-1].startswith("slaunch: cannot start"):
        return "start", tail[-1].removeprefix("slaunch: ")
    exception = said or last_exception(tail)
    words = exception or "\n".join(tail[-_LAST_WORDS:])
    if re.search(_MEMORY, words):
        return "memory", exception or "out of memory"
    if re.search(_PADDLE_PORT, "\n".join(tail)) or (re.search(_PORT, words) and is_ours(words, told)):
        return "port", exception or "address already in use"
    if re.search(_PEER, words):
        return "peer", exception
    died_speaking = bool(exception) and exception in (said, *(line.strip() for line in tail[-1:])) and not is_stop(exception)
    return "signal" if number and not died_speaking else "error", exception


def is_ours(words: str, told: str) -> bool:
    """Whether the port that is in use is one that slaunch chose, as far as the program says which it is."""
    said = {"".join(found) for line in words.splitlines() if re.search(_PORT, line) for found in re.findall(_NUMBER, line)}
    return not said or any(re.search(rf"\b{port}\b", told) for port in said)


def is_stop(detail: str) -> bool:
    """Whether the last words are about the request to stop."""
    return bool(re.search(_STOP, detail))


def last_exception(tail: tuple[str, ...]) -> str:
    """The last line that names an exception, as Python prints it at the end of a traceback; "" if there is none."""
    for line in reversed(tail):
        match = re.match(_EXCEPTION, line.strip())
        if match:
            return match.group(1)
    return ""
