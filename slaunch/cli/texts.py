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


def absolute(text: str) -> str:
    """An absolute path."""
    if not text.startswith("/"):
        raise ValueError("must be an absolute path")
    return text


def filled(text: str) -> str:
    """Any text but none."""
    if not text:
        raise ValueError("must not be empty")
    return text


def size(text: str) -> int:
    """A number of bytes, with K, M, G or T for powers of 1024; at least 1 KiB."""
    number = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = {"K": 10, "M": 20, "G": 30, "T": 40}.get(number[-1:], 0)
    found = float(number[:-1] if unit else number) * (1 << unit)
    if not 1024 <= found < float("inf"):
        raise ValueError("must be a size such as 500K, 100M or 2G, at least 1K")
    return int(found)


def lines_a_second(text: str) -> float:
    """A number of lines a second; 0 for "none", which is no limit."""
    return 0.0 if text.lower() == "none" else seconds_or_none(text)


def pattern(text: str) -> str:
    """A regular expression."""
    import re

    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"must be a regular expression ({error})") from None
    return text


def log_name(text: str) -> str:
    """A template for the names of log files, in which every worker gets a name of its own."""
    numbers = dict.fromkeys(("rank", "local_rank", "node", "number", "attempt"), 0)
    fields = {**numbers, **dict.fromkeys(("host", "role", "job", "stream"), "x")}
    try:
        made = text.format_map(fields)
    except (KeyError, ValueError, IndexError, AttributeError):
        raise ValueError(f"must have no other fields in braces than {', '.join(fields)}") from None
    if not made.strip("/") or made.startswith("/") or ".." in made.split("/"):
        raise ValueError("must be the name of a file inside the directory of the logs")
    if "{rank" not in text and not ("{local_rank" in text and ("{node" in text or "{host" in text)):
        raise ValueError("must have {rank}, or {node} and {local_rank}, so that no two workers write one file")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader for one of these words, in any case."""

    def read(text: str) -> str:
        word = text.lower()
        if word not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return word

    return read


def signal_number(text: str) -> int:
    """A signal by name, with or without SIG, or by number; 0 for "none"."""
    import signal

    if text.lower() == "none":
        return 0
    known = {**{str(int(each)): int(each) for each in signal.Signals}, **{each.name: int(each) for each in signal.Signals}}
    number = known.get(text.upper()) or known.get(f"SIG{text.upper()}")
    if not number or number in (signal.SIGKILL, signal.SIGSTOP):
        raise ValueError("must be a signal's name or number (not KILL or STOP), or none")
    return number


REQUEUES = {"preempt": -1, "timeout": -1, "failure": 0}
"""How often, where the user says no more than yes; -1 = however often."""


def requeues(text: str) -> tuple[int, ...]:
    """A truth word, or `preempt=N,timeout=N,failure=N` with some of them, N a number or "any"; as numbers, () = never."""
    if text.lower() in TRUTH:
        return tuple(REQUEUES.values()) if truth(text) else ()
    found = dict(REQUEUES)
    for word in words(text):
        name, _, count = word.partition("=")
        if name not in found or not (count == "any" or count.isdecimal()):
            raise ValueError("must be yes, no, or some of preempt=N,timeout=N,failure=N with a number or any")
        found[name] = -1 if count == "any" else int(count)
    return tuple(found.values())
