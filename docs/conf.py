"""Settings of the documentation's builder, Sphinx."""

import os
import subprocess
import sys

project = "slaunch"
extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "slaunch"
exclude_patterns = ["_build", "examples"]

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(HERE, "_build")


def setup(app: object) -> None:
    """Make the pages' parts that the code itself tells."""
    os.makedirs(BUILT, exist_ok=True)
    write("help.txt", options())
    write("hygiene.md", hygiene())
    write("torchrun.md", dialect("slaunch.cli.torchrun"))
    write("paddle.md", dialect("slaunch.cli.paddle_rows"))


def write(name: str, text: str) -> None:
    with open(os.path.join(BUILT, name), "w") as file:
        file.write(text)


def options() -> str:
    """The option list, as the program prints it."""
    command = [sys.executable, "-m", "slaunch", "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def dialect(module: str) -> str:
    """The option table of another launcher's command line."""
    from importlib import import_module

    rows = [f"| {code(row.names)} | {code(row.variables)} | {row.help} |" for row in import_module(module).ROWS]
    return "\n".join(["| option | variable | what becomes of it |", "|---|---|---|", *rows]) + "\n"


def code(names: tuple[str, ...]) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names if name)


def hygiene() -> str:
    """The table of variables that workers do not inherit."""
    from slaunch.plan.hygiene import TABLE

    layouts = {(): "never", ("agent",): "by agents", ("agent", "task"): "always"}
    rows = [
        f"| {rule.group} | {' '.join(f'`{pattern}`' for pattern in rule.patterns)} | {layouts[rule.layouts]} | {rule.why} |"
        for rule in TABLE
    ]
    return "\n".join(["| what | names | removed | why |", "|---|---|---|---|", *rows]) + "\n"
