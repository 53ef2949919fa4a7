"""A trial's private copies of JSON and YAML files, with its values in them. The user's own files are never written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

from slaunch.errors import MissingToolError, OutputError, UsageError
from slaunch.tune.config.kinds import meant
from slaunch.tune.inject.apply import Change

WANTED = "put the trial's values into a copy of"


def write_copies(changes: Sequence[Change], copies: Mapping[str, str]) -> None:
    """Write the copy of every file, with its changes.

    Raises:
        UsageError: a file cannot be read, or a path leads nowhere in it.
        MissingToolError: it is YAML, and ruamel.yaml is not installed.
        OutputError: the copy cannot be written.
    """
    for file, copy in copies.items():
        text = edit(file, read(file), [change for change in changes if os.path.normpath(change.file) == file])
        try:
            with open(copy, "w", encoding="utf-8") as made:
                made.write(text)
        except OSError as error:
            raise OutputError(f"{WANTED} {file}", f"{copy}: {error.strerror}", "make this folder writable") from None


def read(file: str) -> str:
    """The text of the user's file."""
    try:
        with open(file, encoding="utf-8") as given:
            return given.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{WANTED} {file}", f"{error}", "name a readable file in run_cmd") from None


def edit(file: str, text: str, changes: Sequence[Change]) -> str:
    """The text with the changes; order, and in YAML comments and quotes, stay."""
    return edit_json(file, text, changes) if file.endswith(".json") else edit_yaml(file, text, changes)


def edit_json(file: str, text: str, changes: Sequence[Change]) -> str:
    """The same for JSON."""
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{WANTED} {file}", f"it is no JSON: {error}", "mend it") from None
    for change in changes:
        place(tree, change)
    indent = re.search(r"^( +)\S", text, re.MULTILINE)
    return json.dumps(tree, indent=len(indent[1]) if indent else None, ensure_ascii=False) + "\n"


def edit_yaml(file: str, text: str, changes: Sequence[Change]) -> str:
    """The same for YAML."""
    try:
        from ruamel.yaml import YAML
    except ImportError:
        seen = "ruamel.yaml, which keeps comments and order, is not installed"
        raise MissingToolError(f"{WANTED} {file}", seen, "install slaunch[tune]") from None
    import io

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20  # long lines stay as they are
    try:
        tree = yaml.load(text)
    except Exception as error:
        raise UsageError(f"{WANTED} {file}", f"it is no YAML: {error}", "mend it") from None
    for change in changes:
        place(tree, change)
    out = io.StringIO()
    yaml.dump(tree, out)
    return out.getvalue()


def place(tree: object, change: Change) -> None:
    """Set the value at the dotted path. An empty section becomes one; a section that is not there is an error.

    Raises:
        UsageError: the path leads nowhere.
    """
    *sections, last = change.key.split(".")
    here = tree
    for depth, name in enumerate(sections):
        here = enter(here, name, change, ".".join(sections[: depth + 1]))
    if isinstance(here, MutableMapping):
        here[last] = change.value
    elif isinstance(here, MutableSequence) and last.isdecimal() and int(last) < len(here):
        here[int(last)] = change.value
    else:
        raise nowhere(change, ".".join(sections), "it is no section")


def enter(here: object, name: str, change: Change, path: str) -> object:
    """The section of this name."""
    if isinstance(here, MutableSequence) and name.isdecimal() and int(name) < len(here):
        return here[int(name)]
    if not isinstance(here, MutableMapping):
        raise nowhere(change, path, "what is above it is no section")
    if name not in here:
        raise nowhere(change, path, f"there is no such section{meant(name, [str(each) for each in here])}")
    if here[name] is None:
        here[name] = {}
    return here[name]


def nowhere(change: Change, path: str, why: str) -> UsageError:
    """A path that leads nowhere."""
    return UsageError(f"{WANTED} {change.file}", f"{change.key}: {path or 'the file'}: {why}", "mend the path in run_cmd")
