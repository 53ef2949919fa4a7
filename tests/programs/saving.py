"""A training in miniature that saves when it is asked to, and not before: all steps count exactly once, however often it is cut.

saving.py FOLDER [STEPS [CRASH]]

Its first run goes on until it is asked to save (or FOLDER/finish is there); later runs do STEPS more steps and are done. Rank 0
decides for all after each step. With CRASH a run ends with that exit code after three steps, each time.
"""

import os
import signal
import socket
import sys
import time

from slaunch import worker

folder, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
crash = int(sys.argv[3]) if len(sys.argv) > 3 else 0
rank, world, run = worker.rank(), worker.world_size(), int(os.environ.get("SLURM_RESTART_COUNT", "0"))
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):  # this Slurm signals all processes of a step by itself
    signal.signal(number, signal.SIG_IGN)  # a handler would be gone before the interpreter is


def note(name: str, text: str) -> None:
    with open(f"{folder}/{name}.{rank}", "a") as file:
        file.write(f"{text}\n")


address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
peers: list[socket.socket] = []
if rank == 0:
    with socket.create_server(address) as server:
        peers = [server.accept()[0] for _ in range(world - 1)]
else:
    for _ in range(1200):
        try:
            peers = [socket.create_connection(address, timeout=120)]
            break
        except OSError:
            time.sleep(0.05)


def agreed(stop: bool) -> bool:
    """Rank 0's answer."""
    if rank:
        peers[0].sendall(b"?")
        return peers[0].recv(1) == b"s"
    for peer in peers:
        peer.recv(1)
    for peer in peers:
        peer.sendall(b"s" if stop else b"g")
    return stop


checkpoint = f"{folder}/checkpoint.{rank}"
step = 0
if os.path.exists(checkpoint):
    with open(checkpoint) as file:
        step = int(file.read())
first, last = step, step + steps if run else 10**9
note("runs", f"{run} {first}")
while step < last and not os.path.exists(f"{folder}/finish"):
    step += 1
    time.sleep(0.05)
    note("steps", str(step))
    worker.progress(step)
    if crash and step - first == 3:
        sys.exit(crash)
    if agreed(worker.should_stop()):
        with open(f"{checkpoint}.part", "w") as file:
            file.write(str(step))
        os.replace(f"{checkpoint}.part", checkpoint)
        note("saved", f"{run} {step} {worker.stop_reason()} {worker.seconds_left():.0f}")
        sys.exit(0)
worker.complete()
note("done", f"{run} {step}")
