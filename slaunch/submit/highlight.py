"""A script on a terminal, in colours."""

from __future__ import annotations

import sys


def show(script: str) -> None:
    """Print a script to stdout; with colours where that is a terminal and rich is there."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.syntax import Syntax
        except ImportError:
            pass
        else:
            Console().print(Syntax(script, "bash", theme="ansi_dark", background_color="default", word_wrap=True))
            return
    sys.stdout.write(script)
