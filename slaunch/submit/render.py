"""From a template and a request to a script. The only module that imports Jinja2.

A template is a plain script, for people who copy or submit it by hand. Lines that begin with `#:` are only read here: they lose
this mark, and what stands in braces is filled in, so that to bash and sbatch an unfilled template is one with comments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from slaunch.errors import MissingToolError, UsageError

MARK = re.compile(r"^#: ?", re.MULTILINE)
DIRECTIVE = re.compile(r"#SBATCH\s+--([\w-]+)(?:[= ]\S+)?\s*$")
HETJOB = "#SBATCH hetjob"
NOTE = "# (Only `slaunch submit`"


def render(text: str, name: str, fields: Mapping[str, object]) -> str:
    """The script that a template gives.

    Args:
        text: the template.
        name: its name or path, for errors.
        fields: what stands for each name in braces.

    Raises:
        MissingToolError: Jinja2 is not there.
        UsageError: the template is wrong, or names a field that is not given.
    """
    try:
        from jinja2 import Environment, StrictUndefined, TemplateSyntaxError, UndefinedError
    except ImportError:
        todo = "pip install 'slaunch[submit]', or copy the template and fill it in by hand"
        raise MissingToolError("fill in a template", "no module jinja2", todo) from None
    # a script is no HTML: nothing is to be escaped
    site = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)  # noqa: S701
    site.filters["quote"] = shlex.quote
    try:
        filled = site.from_string(MARK.sub("", text)).render(fields)
    except UndefinedError as error:
        raise UsageError(f"fill in the template {name}", str(error), "give the field: --set NAME=VALUE") from None
    except TemplateSyntaxError as error:
        raise UsageError(f"read the template {name}", f"line {error.lineno}: {error.message}", "mend the template") from None
    return "".join(f"{line}\n" for line in tidy(filled.splitlines()))


def uses(text: str, field: str) -> bool:
    """Whether a template has a place for this field."""
    return bool(re.search(rf"\{{[{{%][^}}]*\b{field}\b", text))


def directives(options: Mapping[str, str]) -> str:
    """Lines for sbatch."""
    return "\n".join(f"#SBATCH --{name}{'=' + value if value else ''}" for name, value in options.items())


def arguments(words: Sequence[str]) -> str:
    """Words as a shell reads them."""
    return shlex.join(words)


def tidy(lines: Sequence[str]) -> Iterable[str]:
    """The lines without those directives that a later one overrides, without those notes that only templates need, and without
    empty lines in a row."""
    before = "#"
    for number, line in enumerate(lines):
        rest = lines[number + 1 :]
        note = NOTE in (line[: len(NOTE)], line == "#" and rest and rest[0][: len(NOTE)])
        if note or overridden(line, rest) or not (line or before):
            continue
        yield line
        before = line


def overridden(line: str, rest: Sequence[str]) -> bool:
    """Whether one of the following lines, of the same component of the job, gives the same option to sbatch."""
    option = DIRECTIVE.match(line)
    if not option:
        return False
    end = rest.index(HETJOB) if HETJOB in rest else len(rest)
    return any((found := DIRECTIVE.match(other)) and found[1] == option[1] for other in rest[:end])
