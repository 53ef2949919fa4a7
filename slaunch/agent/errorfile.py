"""The file by which a PyTorch program tells its launcher which exception ended it.

`torch.distributed.elastic.multiprocessing.errors.record` writes it to the path in TORCHELASTIC_ERROR_FILE (torch 2.13,
`error_handler.py`): a JSON object whose `message` is a text, or an object with `message` and `extraInfo`.
"""

from __future__ import annotations

import os

VARIABLE = "TORCHELASTIC_ERROR_FILE"
_LIMIT_BYTES = 1 << 20


def clear(path: str) -> None:
    """Remove an earlier run's file."""
    try:
        os.unlink(path)
    except OSError:
        pass


def read(path: str) -> str:
    """The exception in one line; "" if the program left none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LIMIT_BYTES)
    except OSError:
        return ""
    return _message(text)


def _message(text: str) -> str:
    import json

    try:
        message = json.loads(text)["message"]
        if isinstance(message, dict):
            message = message["message"]
    except (ValueError, KeyError, TypeError):
        return ""
    lines = str(message).strip().splitlines()
    return lines[0] if lines else ""
