"""Reading values of a checked configuration."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.tune.config.kinds import mib

Raw = Mapping[str, object]
GB, MB = 1024.0, 1.0
"""What a plain number counts in, in MiB."""


def word(value: object) -> str:
    """A text that may be written in any case; "" if absent."""
    return value.strip().lower() if isinstance(value, str) else ""


def text(raw: Raw, key: str) -> str:
    """A text; "" if absent."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(value) if isinstance(value, list) else ()


def flag(raw: Raw, key: str, default: bool) -> bool:
    """True or false."""
    return bool(raw.get(key, default))


def number(raw: Raw, key: str, default: int = 0) -> int:
    """A whole number."""
    value = raw.get(key, default)
    return value if isinstance(value, int) else default


def real(raw: Raw, key: str, default: float) -> float:
    """A number."""
    value = raw.get(key, default)
    return float(value) if isinstance(value, int | float) else default


def size(raw: Raw, key: str, unit_mib: float) -> float:
    """A size in MiB; 0 if absent."""
    value = raw.get(key, 0)
    return mib(value, unit_mib) if isinstance(value, int | float | str) else 0.0
