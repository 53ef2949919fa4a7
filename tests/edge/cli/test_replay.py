"""`slaunch explain --env FILE` replays an environment that was recorded on another machine."""

import json
import os

import pytest
from support.recorded import DOCUMENTED, ENVIRONMENTS, RECORDED

from slaunch.cli.main import main


def explained(capsys, *args):
    """Exit code and output of `slaunch explain`."""
    code = main(["explain", *args])
    return code, capsys.readouterr()


@pytest.mark.parametrize("name", [*RECORDED, *DOCUMENTED])
def test_f331_every_recorded_environment_can_be_replayed(capsys, name):
    code, said = explained(capsys, "--json", "--env", str(ENVIRONMENTS / f"{name}.json"), "-c", "pass")
    if code:
        # refused for a reason: a bare prterun tells no size, a recording without PATH has no mpirun
        assert code == (72 if name in ("documented/lsf_batch", "documented/pbs_batch") else 65), said.err
        assert "cannot" in said.err
        assert "do:" in said.err
        return
    answer = json.loads(said.out)
    assert answer["plan"]["world"] == len(answer["workers"]) >= 1
    assert answer["launcher"]["chosen"] == answer["allocation"]["launcher"]
    assert answer["launcher"]["seen"][0]["evidence"]


def test_a_file_made_by_env(capsys, tmp_path):
    file = tmp_path / "env.txt"
    file.write_text("SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=rack[0-1]node[00-11]\nSLURM_JOB_NUM_NODES=24\nSLURM_JOB_CPUS_PER_NODE=8(x24)\n")
    code, said = explained(capsys, "--env", str(file), "--nproc-per-node", "2", "-c", "pass")
    assert code == 0, said.err
    assert "48 workers on 24 nodes" in said.out
    code, said = explained(capsys, "--step", "--env", str(file), "-c", "pass")
    assert said.out.startswith("srun ")
    assert "--nodes=24" in said.out


@pytest.mark.parametrize("content", ["{", '{"tasks": []}', '{"env": 3}', None])
def test_a_file_that_is_no_environment_is_named(capsys, tmp_path, content):
    file = os.path.join(tmp_path, "env.json")
    if content is not None:
        with open(file, "w") as out:
            out.write(content)
    code, said = explained(capsys, "--env", file, "-c", "pass")
    assert code == 2
    assert file in said.err
