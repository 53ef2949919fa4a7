"""How the text of an option becomes its value. Each function raises ValueError with what the text must be."""

from __future__ import annotations

from collections.abc import Callable

TRUTH = {
    **dict.fromkeys(("y", "yes", "t", "true", "on", "1"), True),
    **dict.fromkeys(("n", "no", "f", "false", "off", "0"), False),
}


def words(text: str) -> tuple[str, ...]:
    """A comma-separated list, blanks dropped."""
    return tuple(part for part in (piece.strip() for piece in text.split(",")) if part)


def ranks(text: str) -> tuple[int, ...]:
    """A comma-separated list of rank numbers; "none" for none, "all" for all (-1)."""
    if text in ("none", "all"):
        return () if text == "none" else (-1,)
    return tuple(natural(part) for part in words(text))


def natural(text: str) -> int:
    """An integer of at least 0."""
    number = int(text)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def positive(text: str) -> int:
    """An integer of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def number_or_all(text: str) -> int:
    """An integer of at least 1; -1 for "all"."""
    return -1 if text.lower() == "all" else positive(text)


def seconds(text: str) -> float:
    """A positive, finite number of seconds."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError("must be a positive number of seconds")
    return number


def seconds_or_none(text: str) -> float:
    """A finite number of seconds, at least 0."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError("must be a number of seconds, 0 or more")
    return number


def truth(text: str) -> bool:
    """A truth word in any case: y yes t true on 1, n no f false off 0."""
    value = TRUTH.get(text.lower())
    if value is None:
        raise ValueError("must be true or false")
    return value


def yes_no_auto(text: str) -> str:
    """A truth word as "yes" or "no", or "auto"."""
    if text.lower() == "auto":
        return "auto"
    if text.lower() not in TRUTH:
        raise ValueError("must be true, false or auto")
    return "yes" if truth(text) else "no"


def shell_words(text: str) -> tuple[str, ...]:
    """Words as a shell splits them, quotes respected."""
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"must be words as a shell reads them ({error})") from None


def bounds(text: str) -> tuple[int, int]:
    """`N` or `MIN:MAX`, as (least, most)."""
    low, colon, high = text.partition(":")
    least, most = positive(low), positive(high if colon else low)
    if most < least:
        raise ValueError("must be N or MIN:MAX with MIN not above MAX")
    return least, most


def port(text: str) -> int:
    """A TCP port, 1 to 65535."""
    number = int(text)
    if not 0 < number < 65536:
        raise ValueError("must be a port from 1 to 65535")
    return number


def filled(text: str) -> str:
    """Any text but none."""
    if not text:
        raise ValueError("must not be empty")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader for one of these words, in any case."""

    def read(text: str) -> str:
        word = text.lower()
        if word not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return word

    return read
