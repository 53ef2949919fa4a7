"""A stand-in for training: prints a made-up throughput for the trial's settings, which it reads from SLAUNCH_TRIAL.

    tuned.py [--steps N] [--seconds S] [--when NAME=VALUE:ACTION[@RANK]]...     other arguments are printed and ignored

ACTION is what happens instead where the setting has that value: oom, hang, once (hang, but only the first time), crash, nan,
silent, die (by SIGKILL).
"""

import argparse
import json
import os
import signal
import sys
import time


def speed(trial: dict) -> float:
    """Best at a micro batch of 4, and at tensor parallelism 2."""
    return 1000 / (1 + abs(trial["micro_batch_size"] - 4) / 10 + abs(trial["mp_degree"] - 2) / 5)


def act(action: str, rank: int) -> None:
    if action == "oom":
        raise SystemExit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    if action == "hang":
        time.sleep(1000)
    if action == "once" and not os.path.exists(f"once.{rank}"):
        open(f"once.{rank}", "x").close()
        time.sleep(1000)
    if action == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "crash":
        raise RuntimeError("made to fail")
    if action == "silent":
        sys.exit(0)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--seconds", type=float, default=0.0)
    options.add_argument("--when", action="append", default=[])
    chosen, rest = options.parse_known_args()
    trial = json.loads(os.environ["SLAUNCH_TRIAL"])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    print(f"rank {rank} of {world}, stage {trial['stage']}, arguments {rest}", flush=True)
    bad = False
    for rule in chosen.when:
        condition, _, action = rule.partition(":")
        action, _, only = action.partition("@")
        name, _, value = condition.partition("=")
        if str(trial.get(name)) == value and (not only or int(only) == rank):
            bad = bad or action == "nan"
            act(action, rank)
    for step in range(chosen.steps):
        time.sleep(chosen.seconds / chosen.steps)
        if rank == 0:
            print(f"step {step} tokens_per_sec: {float('nan') if bad else speed(trial) + step * 0.001:.3f}", flush=True)
    print(f"max_memory_allocated: {500 * trial['micro_batch_size']}", flush=True)


if __name__ == "__main__":
    main()
