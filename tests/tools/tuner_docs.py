"""Write what the tuner's code tells of itself: docs/tuner-schema.json, docs/tuner-keys.md, docs/tuner-rules.md.

python tests/tools/tuner_docs.py            write them
python tests/tools/tuner_docs.py --check    exit 1, naming the file, if one is out of date
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Sequence

from slaunch.tune.config.table import json_schema, rows
from slaunch.tune.rules import config, history

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = os.path.join(ROOT, "tests", "unit", "tune")
MADE = "Made by `python tests/tools/tuner_docs.py`; not to be edited by hand."


def texts() -> dict[str, str]:
    """The files' names and texts."""
    return {
        "tuner-schema.json": json.dumps(json_schema(), indent=1) + "\n",
        "tuner-keys.md": keys(),
        "tuner-rules.md": rules(),
    }


def keys() -> str:
    """The page of keys."""
    lines = ["# Keys of the tuner's configuration", "", MADE, "", "| key | default | meaning |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {default} | {text} |" for name, default, text in rows()]) + "\n"


def rules() -> str:
    """The page of rules: what each says, and its tests."""
    lines = ["# Rules of the tuner", "", MADE, ""]
    lines += [
        "## Over the configuration",
        "",
        "A setting is dropped before any trial if:",
        "",
        *table(config.RULES, "test_config_rules.py"),
    ]
    lines += ["", "## Over the history", "", "A setting is skipped, and counts as expected, if:", ""]
    return "\n".join(lines + table(history.RULES, "test_history_rules.py")) + "\n"


def table(functions: Sequence[Callable[..., object]], file: str) -> list[str]:
    """One row for each rule, in the order in which they are asked."""
    with open(os.path.join(TESTS, file)) as opened:
        names = re.findall(r"^def (test_\w+)", opened.read(), re.MULTILINE)
    lines = ["| rule | what it says | tests |", "|---|---|---|"]
    for function in functions:
        longer = [other.__name__ for other in functions if function.__name__ in other.__name__ and other is not function]
        tests = [name for name in names if function.__name__ in name and not any(other in name for other in longer)]
        assert tests, f"the rule {function.__name__} has no test in {file}"
        says = " ".join((inspect.getdoc(function) or "").split())
        lines.append(f"| `{function.__name__}` | {says} | {'<br>'.join(f'`{name}`' for name in tests)} |")
    return lines


def read(path: str) -> str:
    """The file's text; "" if it is not there."""
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()


def main(args: Sequence[str]) -> int:
    old = []
    for name, text in texts().items():
        path = os.path.join(ROOT, "docs", name)
        if "--check" not in args:
            with open(path, "w") as file:
                file.write(text)
        elif read(path) != text:
            old.append(name)
    print("\n".join(f"docs/{name} is out of date: run `python tests/tools/tuner_docs.py`" for name in old), file=sys.stderr)
    return bool(old)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
