"""Secrets stay hidden."""

from __future__ import annotations

import pytest

from slaunch.report.redact import HIDDEN, is_secret_name, redact_argv, redact_env, redact_text

SECRET_NAMES = (
    "HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PASSWORD", "DB_PASS", "MY_PASSWD",
    "SSH_AUTH_SOCK", "GITHUB_PAT", "api-key", "OPENAI_API_KEY", "AZURE_STORAGE_SAS", "SESSION_COOKIE", "GPG_KEY",
    "SLAUNCH_SECRET", "token", "COMET_APIKEY", "PRIVATE_KEY", "credentials",
)
OPEN_NAMES = (
    "PATH", "KEYBOARD", "MONKEY", "COMPASS_DIR", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "max-tokens", "NCCL_IB_PKEY",
    "SLURM_JOB_ID", "PYTHONPATH", "PUBLIC_KEY", "MASTER_PORT", "AUTHOR", "PASSAGE",
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_f317_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OPEN_NAMES)
def test_open_names(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:pa55@host/x", f"https://{HIDDEN}@host/x"),
        ("http_proxy=http://proxy:8080", "http_proxy=http://proxy:8080"),
        ("ghp_" + "a" * 36, HIDDEN),
        ("hf_" + "b" * 34 + " rest", f"{HIDDEN} rest"),
        ("AKIA" + "C" * 16, HIDDEN),
        ("eyJhbGciOi.eyJzdWIi.sig_-x", HIDDEN),
        ("Authorization: Bearer abcdefghijk", f"Authorization: {HIDDEN}"),
        ("0123456789abcdef0123456789abcdef01234567", HIDDEN),
        ("GPU-5a1c2f4e-0123-4567-89ab-cdef01234567", "GPU-5a1c2f4e-0123-4567-89ab-cdef01234567"),
        ("10.0.0.1:29500,10.0.0.2:29500", "10.0.0.1:29500,10.0.0.2:29500"),
    ],
)
def test_shapes(text: str, shown: str) -> None:
    assert redact_text(text) == shown


def test_commands() -> None:
    argv = ("t.py", "--api-key", "abc", "--lr", "3", "--token=xyz", "PASSWORD=1", "--password", "--next", "plain")
    shown = ("t.py", "--api-key", HIDDEN, "--lr", "3", f"--token={HIDDEN}", f"PASSWORD={HIDDEN}", "--password", "--next", "plain")
    assert redact_argv(argv) == shown


def test_environments() -> None:
    assert redact_env({"B_TOKEN": "x", "A": "1", "EMPTY_TOKEN": ""}) == {"A": "1", "B_TOKEN": HIDDEN, "EMPTY_TOKEN": ""}
