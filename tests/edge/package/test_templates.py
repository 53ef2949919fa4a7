"""The sbatch templates are found from a checkout, from an editable install and from a wheel alike."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from support.cluster import CHECKOUT

from slaunch import templates
from slaunch.errors import MissingToolError

ASK = "from slaunch import templates; print(templates.path('collective'))"
SOURCE = Path(CHECKOUT, "sbatch_templates", "collective.sbatch").read_text()


def ask(python: str, *, cwd: Path, **env: str) -> Path:
    done = subprocess.run(
        [python, "-c", ASK], cwd=cwd, env={"PATH": os.environ["PATH"], **env}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("slaunch", "sbatch_templates"):
        shutil.copytree(Path(CHECKOUT, name), source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "setup.cfg", "README.md", "LICENSE"):
        shutil.copy(Path(CHECKOUT, name), source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "-w", folder, source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_found_from_a_checkout(tmp_path: Path) -> None:
    assert ask(sys.executable, cwd=tmp_path, PYTHONPATH=CHECKOUT).read_text() == SOURCE


def test_found_from_an_editable_install(tmp_path: Path) -> None:
    assert ask(sys.executable, cwd=tmp_path).read_text() == SOURCE


def test_found_from_a_wheel(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (packages,) = tmp_path.glob("venv/lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    found = ask(str(tmp_path / "venv/bin/python"), cwd=tmp_path)
    assert found.read_text() == SOURCE
    assert found.is_relative_to(packages)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        assert {"slaunch/py.typed", "slaunch/sbatch_templates/collective.sbatch"} <= set(archive.namelist())
    assert {top for top in tops if not top.endswith(".dist-info")} == {"slaunch"}


def test_an_unknown_template_is_named_with_the_ones_there_are() -> None:
    with pytest.raises(MissingToolError) as caught:
        templates.path("colective")
    assert "collective" in caught.value.seen


@pytest.mark.parametrize("name", templates.names())
def test_a_template_is_a_valid_script_that_leaves_no_shell_behind(name: str) -> None:
    path = templates.path(name)
    subprocess.run(["bash", "-n", path], check=True, timeout=10)
    lines = Path(path).read_text().replace("\\\n", "").splitlines()
    assert lines[0] == "#!/bin/bash"
    if lines[-1] == "esac":
        choices = [line for line in lines[:-1] if line.endswith(";;")]
        assert all(") exec " in line or "exit 2" in line for line in choices) and choices
    else:
        assert lines[-1].startswith("exec ")


def test_templates_and_what_is_made_of_them_pass_shellcheck() -> None:
    made = sorted(map(str, Path(CHECKOUT, "tests", "data", "templates").glob("*.sbatch")))
    assert sorted(Path(path).stem for path in made) == list(templates.names())
    own = [templates.path(name) for name in templates.names()]
    done = subprocess.run(["shellcheck", *own, *made], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
