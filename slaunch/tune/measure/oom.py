"""Texts by which programs tell that memory was lacking: of devices, by framework, and of the host."""

from __future__ import annotations

import re
from collections.abc import Sequence

PATTERNS = {
    "Paddle": r"Out of memory error on|ResourceExhaustedError",
    "PyTorch": r"OutOfMemoryError|(CUDA|HIP|XPU|NPU|MPS) out of memory|CUDA error: out of memory",
    "CUDA": r"CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|Cuda failure 2 'out of memory'",
    "JAX, TensorFlow": r"RESOURCE_EXHAUSTED|OOM when allocating",
    "Python, C++": r"\bMemoryError\b|std::bad_alloc|Cannot allocate memory",
    "Linux, Slurm": r"Detected \d+ oom[-_ ]kill|oom-kill event|Out Of Memory|Memory cgroup out of memory",
}
"""Known texts. Each stands for itself: none is expected in the output of a program that has memory enough."""


def oom_pattern(further: Sequence[str] = ()) -> re.Pattern[str]:
    """One expression for all known texts, and for further ones of the user's."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in (*PATTERNS.values(), *further)))
