"""The scripts that `slaunch submit` makes of the templates, as golden files: `python tests/tools/render_templates.py` makes them
anew, with `--check` it only tells whether they are up to date."""

from __future__ import annotations

import os
import shlex
import sys

from slaunch import templates
from slaunch.cli.submit import parse
from slaunch.submit.gpus import read_site
from slaunch.submit.script import script_of

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "templates")
SITE = ("SelectType              = select/cons_tres\n", "cpu|(null)\ngpu*|gpu:a100:8(S:0-1)\n")
LINES = {
    "collective": "-N4 --gpus-per-node=8 --time=2:00:00 -A phys --exclusive train.py --lr 0.1 --note 'two words'",
    "elastic": "-N5 --gpus-per-node=a100:8 --time=24:00:00 --spares 1 train.py --lr 0.1",
    "ps": "--template ps -p cpu -N4 --cpus-per-task=32 --trainer-num 4 train.py",
    "ps-heter": "--template ps-heter -p cpu -N2 --cpus-per-task=32 : -p gpu -N1 --gpus-per-node=8 train.py",
    "tune": "-N4 --gpus-per-node=8 --time=4:00:00 tune tuner.json --grace 5 train.py --config model.yaml",
    "array": "--array=0-9%2 -N2 --gpus-per-node=8 --setup 'module load cuda' -m package.train",
    "container": "--template container --set 'image=torch.sif' -N4 --gpus-per-node=8 train.py --lr 0.1",
    "mpi": "--template mpi -N4 --gpu-form gres --gpus-per-node=8 --requeue --signal=USR2@120 train.py",
    "interactive": "--template interactive -N2 --gpus-per-node=8 --time=1:00:00",
}
"""A command line for each template."""


def rendered(name: str) -> str:
    """The script of one template."""
    args = shlex.split(LINES[name])
    request = parse(args, {}).request
    assert request.template == name
    return script_of(request, lambda: read_site(*SITE), ("slaunch", "submit", *args), "/opt/slaunch/bin")


def content(path: str) -> str:
    """What a golden file has now."""
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def main(args: list[str]) -> int:
    stale = []
    os.makedirs(FOLDER, exist_ok=True)
    for name in templates.names():
        path, text = os.path.join(FOLDER, f"{name}.sbatch"), rendered(name)
        if content(path) != text:
            stale.append(path)
            if "--check" not in args:
                with open(path, "w") as file:
                    file.write(text)
    print(*(f"{path}: {'out of date' if '--check' in args else 'written'}" for path in stale), sep="\n")
    return int(bool(stale) and "--check" in args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
