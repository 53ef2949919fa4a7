"""Workers of which one, once all run, does something bad; the others wait for it, or do what its kind of fault makes them do.

faulty.py FOLDER KIND RANK
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

folder, kind, culprit = sys.argv[1], sys.argv[2], int(sys.argv[3])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SIGNALS = {f"SIG{name}": getattr(signal, f"SIG{name}") for name in ("SEGV", "KILL", "ABRT", "BUS", "FPE", "ILL")}


def touch(name: str, text: str = "") -> None:
    with open(f"{folder}/{name}.part.{rank}", "w") as file:
        file.write(text)
    os.rename(f"{folder}/{name}.part.{rank}", f"{folder}/{name}")


def stay() -> None:
    time.sleep(60)
    sys.exit(99)


def wait_for(name: str) -> None:
    while not os.path.exists(f"{folder}/{name}"):
        time.sleep(0.02)


def bad() -> None:  # noqa: C901 - one case per kind
    if kind in SIGNALS:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), SIGNALS[kind])
        stay()
    match kind:
        case "exit" | "ignored stop":
            sys.exit(9)
        case "exit 255":
            sys.exit(255)
        case "exit 0":
            sys.exit(0)
        case "exception":
            raise ValueError("a bad value")
        case "error file":
            with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
                said = {"message": "KeyError: 'layer'", "extraInfo": {"py_callstack": "", "timestamp": "0"}}
                json.dump({"message": said}, file)
            os._exit(1)
        case "memory":
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            bytearray(1 << 32)
        case "device memory":
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
        case "import":
            import nothing_of_this_name  # noqa: F401
        case "port":
            taken = socket.create_server(("", 0))
            socket.create_server(("", taken.getsockname()[1]))
        case "silent, others lose it":
            touch("lost")
            os._exit(5)
        case "slow to end, others lose it":
            print("Traceback (most recent call last):\nValueError: the real reason", flush=True)
            touch("lost")
            time.sleep(1)
            sys.exit(1)
        case "leak":
            subprocess.Popen(["setsid", "sh", "-c", "trap '' TERM HUP INT; sleep 600"])
            sys.exit(6)
        case "hang":
            print("computing", flush=True)
            while True:
                sum(range(100_000))
    stay()


if kind == "ignored stop":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
touch(f"up.{rank}", str(os.getpid()))
for other in range(world):
    wait_for(f"up.{other}")
if rank == culprit:
    time.sleep(0.3)
    touch("fault", repr(time.time()))
    bad()
if "others lose it" in kind:
    wait_for("lost")
    raise ConnectionResetError("Connection closed by peer")
if kind == "exit 0":
    wait_for("fault")
    time.sleep(1)
    sys.exit(0)
stay()
