"""See the package."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from .life import draw
from .play import play, play_seed


def main(args: list[str]) -> int:
    if args[:1] == ["--seed"]:
        return tell(int(args[1]))
    lives, first = int(args[0]) if args else 20_000, int(args[1]) if len(args) > 1 else 0
    begun = time.monotonic()
    with ProcessPoolExecutor() as pool:
        found = pool.map(play_seed, range(first, first + lives), chunksize=50)
        broken = [(first + at, why) for at, why in enumerate(found) if why]
    took = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = f"{os.cpu_count()} CPUs, {used.ru_utime + used.ru_stime:.0f} s of CPU time"
    print(f"{lives} lives in {took:.1f} s on {cpu}; {len(broken)} broke a law")
    for why, count in Counter(why.partition(" s: ")[2] or why for _, why in broken).most_common(12):
        print(f"{count:6} {why[:150]}")
    for seed, why in broken[:20]:
        print(f"seed {seed}: {why}")
    return 1 if broken else 0


def tell(seed: int) -> int:
    """One life, event by event."""
    life = draw(seed)
    print(life)
    play(life, lambda now, agent, what: print(f"{now:10.4f} n{agent} {what}"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
