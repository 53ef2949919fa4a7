"""Lists of CPUs as the kernel writes them: "0-5,64-69"."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str) -> tuple[int, ...]:
    """CPUs of a kernel list, ascending; () for the empty text.

    Raises:
        ValueError: the text is not such a list.
    """
    cpus: set[int] = set()
    for item in text.replace("\n", "").split(","):
        if not item:
            continue
        low, dash, high = item.partition("-")
        first, last = int(low), int(high) if dash else int(low)
        if last < first:
            raise ValueError(f"descending range {item!r}")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def render(cpus: Iterable[int]) -> str:
    """The kernel's list of these CPUs: `render((0, 1, 2, 8)) == "0-2,8"`."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
