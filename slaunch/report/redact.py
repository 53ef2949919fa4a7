"""Keeps secrets out of everything that slaunch shows: by the name of a variable or option, and by the look of a value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HIDDEN = "<hidden>"

_NAME = re.compile(
    r"(^|[_\-.])(TOKEN|SECRET|PASS|PASSWD|PASSWORD|PASSPHRASE|PW|KEY|APIKEY|CREDENTIAL|CREDS?|AUTH|COOKIE|PRIVATE|JWT|PAT|SAS)S?"
    r"($|[_\-.\d])"
    r"|TOKEN$|SECRET|PASSWORD|PASSWD|APIKEY|ACCESSKEY",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(
    r"(^|[_\-])(PUBLIC|PUB)[_\-]?KEY|TOKENIZERS?[_\-]|[_\-]TOKENS?[_\-](LEN|LENGTH|COUNT)|MAX[_\-]TOKENS?|KEY_(TYPE|SIZE)$",
    re.IGNORECASE,
)

_SHAPES = (
    re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"),  # user:password in a URL
    re.compile(r"\b(gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|AKIA|ASIA|AIza|wandb_v1_)[A-Za-z0-9_\-]{8,}"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*"),  # JSON web token
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*", re.DOTALL),
    re.compile(r"(?i)\bbearer\s+\S{8,}"),
    re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{40}(?![A-Za-z0-9])"),  # an API key in hexadecimal, as W&B's
)


def is_secret_name(name: str) -> bool:
    """Whether a variable or option of this name usually holds a secret."""
    return bool(_NAME.search(name)) and not _NOT_SECRET.search(name)


def redact_text(text: str) -> str:
    """`text` without the parts that look like secrets."""
    for shape in _SHAPES:
        text = shape.sub(HIDDEN, text)
    return text


def redact_value(name: str, value: str) -> str:
    """The value of a variable, or a sign that it is hidden."""
    return HIDDEN if value and is_secret_name(name) else redact_text(value)


def redact_env(env: Mapping[str, str]) -> dict[str, str]:
    """An environment that may be shown, in order of names."""
    return {name: redact_value(name, env[name]) for name in sorted(env)}


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """A command that may be shown: no secret in `--name=value`, `--name value` or `NAME=value`."""
    shown: list[str] = []
    secret_next = False
    for word in argv:
        name, equals, value = word.partition("=")
        is_option = word.startswith("-")
        if secret_next and not is_option:
            shown.append(HIDDEN)
        elif equals:
            shown.append(f"{name}={redact_value(name.lstrip('-'), value)}")
        else:
            shown.append(redact_text(word))
        secret_next = is_option and not equals and is_secret_name(word.lstrip("-"))
    return tuple(shown)
