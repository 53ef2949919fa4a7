"""The GPT example in a search with faults: what a trial does is decided by its setting.

    searched.py [--real KEY]... [--best KEY] [--hang KEY] [--crash KEY@RANK] [--wait KEY]... [options of the example]

A KEY is tensor-pipeline-shards-micro batch-recompute, as in 2-1-2-4-0. The settings of --real run the example, all of them with
`--real all`; the others print made-up figures, far below the example's. All but the best take three seconds more for each step.
A setting of --wait is stuck when it is run for the first time, so that something can happen to it, and then says so in a file.
"""

import argparse
import json
import os
import runpy
import sys
import time

TRAIN = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "examples", "gpt", "train.py")
SLOW_S = 3.0


def key(trial: dict) -> str:
    degrees = (trial[name] for name in ("mp_degree", "pp_degree", "sharding_degree", "micro_batch_size"))
    return "-".join(map(str, (*degrees, int(trial["use_recompute"]))))


def wait_once(mine: str, rank: str) -> None:
    """Be stuck, unless this has happened before."""
    try:
        with open(f"waits.{mine}.{rank}", "x"):
            time.sleep(600)
    except FileExistsError:
        pass


def slow_down() -> None:
    """Every step but the first takes longer."""
    import torch

    class Slow(torch.optim.Adam):
        begun = False

        def step(self, closure=None):
            time.sleep(SLOW_S if self.begun else 0)
            self.begun = True
            return super().step(closure)

    torch.optim.Adam = Slow


def train(rest: list[str], best: bool) -> None:
    """Run the example."""
    if not best:
        slow_down()
    sys.argv = [TRAIN, *rest]
    runpy.run_path(TRAIN, run_name="__main__")


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("--real", "--wait"):
        options.add_argument(name, action="append", default=[])
    for name in ("--best", "--hang", "--crash"):
        options.add_argument(name, default="")
    chosen, rest = options.parse_known_args()
    trial, rank = json.loads(os.environ["SLAUNCH_TRIAL"]), os.environ["RANK"]
    mine = key(trial)
    print(f"rank {rank}, setting {mine}, stage {trial['stage']}", flush=True)
    if mine in chosen.wait:
        wait_once(mine, rank)
    if mine == chosen.hang:
        time.sleep(600)
    if f"{mine}@{rank}" == chosen.crash:
        raise RuntimeError("made to fail")
    if mine in chosen.real or chosen.real == ["all"]:
        train(rest, mine == chosen.best)
    else:
        for _ in range(2):  # the first is the warm-up
            print(f"tokens_per_sec: {0.1 + trial['micro_batch_size'] / 100:.2f}\nmax_memory_allocated: 1.5", flush=True)


if __name__ == "__main__":
    main()
