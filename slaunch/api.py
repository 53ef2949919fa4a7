"""Start a job from Python. The same as the command line, in a process of its own: nothing happens to the calling one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

Text: TypeAlias = str | Sequence[str]


def launch(
    program: str,
    *args: str,
    kind: Literal["script", "module", "code"] = "script",
    env: Mapping[str, str] | None = None,
    nproc_per_node: int | None = None,
    devices: Text | None = None,
    visible: Literal["all", "own", "virtual"] | None = None,
    mode: str | None = None,
    contract: Text | None = None,
    nnodes: int | str | None = None,
    node_rank: int | None = None,
    master: str | None = None,
    host: str | None = None,
    rendezvous: str | None = None,
    rendezvous_timeout: float | None = None,
    scheduler: str | None = None,
    job_id: str | None = None,
    log_dir: str | None = None,
    log_overwrite: bool | None = None,
    log_level: Literal["debug", "info", "warning"] | None = None,
    tee: str | Sequence[int] | None = None,
    grace: float | None = None,
    bind: str | None = None,
    network: str | None = None,
    keep_env: Text | None = None,
    drop_env: Text | None = None,
    step_args: Text | None = None,
    start_port: int | None = None,
    python: str | None = None,
    container: Text | None = None,
    server_num: int | None = None,
    trainer_num: int | None = None,
    servers: Text | None = None,
    trainers: Text | None = None,
    gloo_port: int | None = None,
    with_gloo: str | None = None,
    config: str | None = None,
    profile: str | None = None,
) -> int:
    """Run a job to its end and return its exit code, as `slaunch [options] PROGRAM [args]` does.

    Args:
        program: script, executable, module or code, as `kind` says.
        args: the program's arguments.
        kind: what `program` is: "script" (or any executable), "module" or "code".
        env: environment of slaunch and so of the workers; None = this process's.

    The others are the options of the command line, by their long names; None = not given.
    """
    given = {name: value for name, value in locals().items() if name not in ("program", "args", "kind", "env")}
    call = [sys.executable, "-m", "slaunch", *option_words(given), *program_words(kind, program), *args]
    with subprocess.Popen(call, env=None if env is None else dict(env)) as process:
        try:
            return shell_code(process.wait())
        except BaseException:  # Ctrl-C reaches the launcher, too: let it end its workers
            process.terminate()
            process.wait()
            raise


def option_words(given: Mapping[str, object]) -> list[str]:
    """The options as words of a command line."""
    return [f"--{name.replace('_', '-')}={text(name, value)}" for name, value in given.items() if value is not None]


def text(name: str, value: object) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    if name in ("step_args", "container"):
        import shlex

        return shlex.join(map(str, value))
    return ",".join(map(str, value)) or "none"


def program_words(kind: str, program: str) -> list[str]:
    """The program as words of a command line."""
    return {"script": ["--", program], "module": ["-m", program], "code": ["-c", program]}[kind]


def shell_code(code: int) -> int:
    """A process's return code as a shell gives it: 128 + n if signal n ended it."""
    return 128 - code if code < 0 else code
