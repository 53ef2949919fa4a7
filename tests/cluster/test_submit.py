"""`slaunch submit` and its kin on a real Slurm: templates, arrays, dependencies, requeues, preemption, copies on the nodes."""

from __future__ import annotations

import glob
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.cluster import CHECKOUT, Cluster, Result
from support.jobs import PROGRAMS, WORLD, assert_world, folder_in, logs

from slaunch import templates

RESUMED = os.path.join(PROGRAMS, "resumed.py")
DONE_S = 100
"""How long a job may take on a loaded machine."""


class Submitter:
    """Submits from a folder of its own, in which all is found again."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.folder = folder_in(cluster.scratch)
        self.env = {"SLAUNCH_STATE_DIR": f"{self.folder}/state", "XDG_CONFIG_HOME": f"{self.folder}/config"}

    def run(self, *args: str) -> Result:
        return self.cluster.run(["slaunch", *args], env=self.env, cwd=self.folder, timeout=DONE_S)

    def follow(self, *args: str) -> subprocess.Popen[str]:
        command = ["slaunch", "submit", "--follow", "--poll", "1", "--time=5", *args]
        return self.cluster.start(command, env=self.env, cwd=self.folder)

    def submit(self, *args: str) -> str:
        done = self.run("submit", "--time=5", *args)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def printed(self, job: str, text: str) -> None:
        """Wait until a job has printed something."""

        def there() -> bool:
            return any(text in Path(path).read_text() for path in glob.glob(f"{self.folder}/*{job}*.out"))

        self.cluster.wait_until(there, DONE_S, lambda: f"{text!r} not in {self.folder} of job {job}: {self.cluster.job(job)}")

    def done(self, process: subprocess.Popen[str], code: int) -> Result:
        ended = self.cluster.wait(process, DONE_S)
        assert ended.returncode == code, f"{ended.args}\n{ended.stdout}\n{ended.stderr}"
        return ended


@pytest.fixture
def submitter(cluster: Cluster) -> Submitter:
    return Submitter(cluster)


def job_of(process: subprocess.Popen[str]) -> str:
    """The id that a job was given, which is the first line told."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line.isdecimal(), (line, process.stderr.read() if process.stderr and not line else "")
    return line


RAW: dict[str, Sequence[str]] = {name: ("-N2", "--gpus-per-node=2") for name in templates.names()}
RAW["ps-heter"] = ("-N2", ":", "-N1", "--gpus-per-node=2")


def test_templates_as_they_are_and_filled_in_are_jobs_for_sbatch(submitter: Submitter) -> None:
    """One shell for all: each question is an RPC, and each start of a command on the cluster costs more than that."""
    lines = []
    for name in templates.names():
        program = [] if name == "interactive" else ["tuner.json", WORLD] if name == "tune" else [WORLD]
        field = ["--set", "image=x.sif"] if name == "container" else []
        lines.append(" ".join(["sbatch --test-only", *RAW[name], templates.path(name), *program]))
        lines.append(" ".join(["slaunch submit --dry-run --template", name, *field, *RAW[name], *program, ">/dev/null"]))
    script = "set -e\n" + "\n".join(lines)
    done = submitter.cluster.run(["bash", "-c", script], env=submitter.env, cwd=submitter.folder, timeout=DONE_S)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Job ") >= len(lines), done.stderr
    refused = submitter.run("submit", "-N1", "--gpus-per-node=9", WORLD)
    assert refused.returncode == 66
    assert "nodes of the default partition have 4 GPUs" in refused.stderr
    refused = submitter.run("submit", "-N99", WORLD)
    assert refused.returncode == 65
    assert "cannot have sbatch check the script" in refused.stderr


def make_image(folder: str) -> str:
    """A folder as image: a root of its own, in which the host's programs are bound."""
    for name in ("bin", "lib", "lib64", "usr", "etc", "proc", "sys", "dev", "tmp", "home", "run", "mnt/0"):
        os.makedirs(f"{folder}/image/{name}")
    for name in ("etc/passwd", "etc/group", "etc/hosts", "etc/resolv.conf", "inside"):
        Path(folder, "image", name).touch()
    show = "print('inside', os.path.exists('/inside'), os.getcwd(), os.environ['RANK'])"
    Path(folder, "inside.py").write_text(f"import os\n{show}\n")
    return f"{folder}/image"


STAND_IN = """\
#!/bin/bash
# apptainer exec --nv --bind DIR OPTIONS IMAGE COMMAND, by another runtime
[ "$1 $2 $3" = "exec --nv --bind" ] || exit 99
shift 4
exec ch-run --cd "$PWD" "${@:1:9}" -- "${@:10}"
"""
BINDS = "-b /usr:/usr -b /lib:/lib -b /bin:/bin -b /lib64:/lib64"


def test_every_template_runs(submitter: Submitter) -> None:
    folder = submitter.folder
    image = make_image(folder)
    Path(folder, "apptainer").write_text(STAND_IN)
    os.chmod(f"{folder}/apptainer", 0o755)
    Path(folder, "role.py").write_text(
        "import os, time\nprint('role', os.environ['PADDLE_ROLE'], os.environ.get('STAGE_ID'), os.uname().nodename, flush=True)\n"
        "time.sleep(60 if os.environ['PADDLE_ROLE'] == 'PSERVER' else 3)\n"  # servers are ended when trainers are done
    )
    started = {
        "collective": submitter.follow("-N2", "--gpus-per-node=2", "--log-dir", "collective", WORLD),
        "elastic": submitter.follow("-N3", "--spares", "1", "--log-dir", "elastic", WORLD),
        "ps": submitter.follow("--template", "ps", "-N2", "--log-dir", "ps", "role.py"),
        "ps-heter": submitter.follow("--template", "ps-heter", "-N2", ":", "-N1", "role.py"),
        "array": submitter.follow("--array=0-1", "-N2", WORLD),
        "mpi": submitter.follow("--template", "mpi", "-N2", "--log-dir", "mpi", WORLD),
    }
    held = submitter.submit("--template", "interactive", "-N2")
    for kind, name in (("charliecloud", "ch"), ("apptainer", "ap")):
        fields = f"runtime={kind} image='{image}' 'options={BINDS}'"
        args = ("--template", "container", "--set", fields, "--setup", f"PATH={folder}:$PATH", "-N2", "--log-dir", name)
        started[kind] = submitter.follow(*args, "inside.py")
    ended = {name: submitter.done(process, 0) for name, process in started.items()}

    for name, nodes, local in (("collective", 2, 2), ("elastic", 2, 1), ("mpi", 2, 1)):
        assert_world(logs(f"{folder}/{name}"), nodes * local, [local] * nodes)
    roles = sorted(re.findall("role (.*?) n", logs(f"{folder}/ps") + logs(f"{folder}/ps", "serverlog")))
    assert roles == ["PSERVER None"] * 2 + ["TRAINER None"] * 4
    texts = [Path(path).read_text() for path in glob.glob(f"{folder}/log/*log.*")]
    stages = sorted(re.findall("role (.*?) n", "".join(texts)))
    assert stages == ["HETER_TRAINER 2", "PSERVER None", "PSERVER None", "TRAINER 1", "TRAINER 1"]
    for task in "01":
        assert f'\n[{task}] world {{"RANK": "0", "WORLD_SIZE": "2"' in ended["array"].stdout
    assert "met 2 tasks by mpi" in ended["mpi"].stderr + ended["mpi"].stdout
    assert sorted(filter(None, logs(f"{folder}/ch").splitlines())) == ["inside True /mnt/0 0", "inside True /mnt/0 1"]
    assert sorted(filter(None, logs(f"{folder}/ap").splitlines())) == [f"inside True {folder} 0", f"inside True {folder} 1"]

    submitter.cluster.wait_until(lambda: submitter.cluster.job(held)["JobState"] == "RUNNING", DONE_S, lambda: str(held))
    inner = ("--overlap", "-N2", "--ntasks-per-node=1", "slaunch", "--log-dir", "held", WORLD)
    done = submitter.cluster.srun(f"--jobid={held}", *inner, env=submitter.env, cwd=folder, timeout=DONE_S)
    assert done.returncode == 0, done.stderr
    assert_world(logs(f"{folder}/held"), 2, [1, 1])
    done = submitter.run("cancel", held)
    assert (done.returncode, done.stderr) == (0, f"slaunch: job {held}: cancelled\n")  # nothing runs in it that could be asked


def test_p84_arrays_dependencies_requeues_and_preemption_are_followed_to_the_end(submitter: Submitter) -> None:
    cluster = submitter.cluster
    array = submitter.follow("--array=0-2", "-N2", "-x", "n3,n4", RESUMED)
    first = submitter.submit("-N1", "-x", "n3,n4", RESUMED)
    chain = submitter.follow("-N1", "-x", "n3,n4", f"--dependency=afterok:{first}", RESUMED)
    never = submitter.follow("-N1", "-x", "n3,n4", f"--dependency=afternotok:{first}", RESUMED)
    requeued = submitter.follow("-w", "n3", "--requeue", "--open-mode=append", RESUMED, "5")
    preempted = submitter.follow("-w", "n4", "--exclusive", "--requeue", RESUMED, "6")
    jobs = [job_of(process) for process in (requeued, preempted)]
    for job in jobs:
        submitter.printed(job, "start 0")
    urgent = submitter.follow("-p", "urgent", "-w", "n4", "--exclusive", RESUMED)
    assert cluster.run(["scontrol", "requeue", jobs[0]]).returncode == 0
    for job in jobs:  # Slurm lets a job wait two minutes before it starts again
        cluster.wait_until(
            lambda job=job: cluster.job(job).get("Restarts") == "1" and cluster.job(job)["JobState"] == "PENDING",
            *(DONE_S, lambda job=job: str(cluster.job(job))),
        )
    time.sleep(4)  # a node's late word on the end of the first run would be taken for that of the second
    for job in jobs:
        cluster.run(["scontrol", "update", f"jobid={job}", "StartTime=now"])

    done = submitter.done(array, 2)
    assert sorted(re.findall(r"^\[(\d)\] start 0 of task \1, rank 0", done.stdout, re.MULTILINE)) == ["0", "1", "2"], done.stdout
    assert "_1 has ended: FAILED, exit code 1" in done.stderr
    assert "(Dependency)" in submitter.done(chain, 0).stderr
    stuck = submitter.done(never, 65)
    assert "DependencyNeverSatisfied" in stuck.stderr
    waiting = stuck.stdout.split()[0]
    assert submitter.run("cancel", waiting).returncode == 0
    assert cluster.job(waiting)["JobState"] == "CANCELLED"
    submitter.done(urgent, 0)
    done = submitter.done(requeued, 5)
    assert re.findall(r"^start \d", done.stdout, re.MULTILINE) == ["start 0", "start 1"]
    assert f"job {jobs[0]} has ended: FAILED, exit code 5, start 2" in done.stderr
    done = submitter.done(preempted, 6)
    assert "start 1 of task None" in done.stdout
    assert f"job {jobs[1]} has ended: FAILED, exit code 6, start 2" in done.stderr


def test_logs_report_and_an_orderly_end(submitter: Submitter) -> None:
    """A heterogeneous job, and an array of which one task runs and the others wait."""
    cluster, folder = submitter.cluster, submitter.folder
    job = submitter.submit("-N2", ":", "-N1", RESUMED, "5")
    script = Path(folder, "slaunch-logs", f"{job}.sbatch").read_text()
    assert f"set -- {RESUMED} 5\nexec slaunch" in script
    options = ("--template", "collective", "--requeue=yes", "--output", "a-%a.out")
    array = submitter.submit("--array=0-9%1", "-N1", *options, WORLD, "60")
    submitter.printed(job, "start 0")
    following = cluster.start(["slaunch", "logs", "-f", "--poll", "1", "--rank", "all", job], env=submitter.env, cwd=folder)
    cluster.wait_until(lambda: "rank 2" in logs(f"{folder}/slaunch-logs/{job}.0"), DONE_S, lambda: os.listdir(folder).__repr__())
    cluster.wait_until(lambda: logs(f"{folder}/slaunch-logs/{array}_0.0"), DONE_S, lambda: os.listdir(folder).__repr__())

    done = submitter.run("cancel", job, array)
    assert done.returncode == 0, done.stderr
    assert f"job {job} has stopped" in done.stderr
    assert cluster.run(["squeue", "--noheader"]).stdout == ""
    assert not os.path.exists(f"{folder}/slaunch-logs/{array}_1.0")
    shown = submitter.done(following, 143).stdout
    assert sorted(re.findall(r"^\[(\d)\] saved", shown, re.MULTILINE)) == ["0", "1", "2"]
    assert submitter.run("report", job).stdout.startswith("slaunch: stopped by SIGTERM (exit code 143)\n")
    assert json.loads(submitter.run("report", "--json", f"{array}_0").stdout)["code"] == 143
    assert "start 0 of task None, rank 0" in submitter.run("logs", job).stdout


GROW = """
options="--nnodes 2:3 --max-restarts 2 --stage words.txt --stage-to /dev/shm --tee all"
cat >grow.py <<'END'
import os, time
have = "one" if os.path.exists(os.environ["SLAUNCH_STAGE_DIR"] + "/words.txt") else "none"
world = os.environ["WORLD_SIZE"]
print("attempt", os.environ["SLAUNCH_ATTEMPT"], "has", have, "of", world, "on", os.uname().nodename, flush=True)
while world == "2": time.sleep(0.1)
END
srun -N2 -r0 --ntasks-per-node=1 --kill-on-bad-exit=0 slaunch $options grow.py >grown 2>&1 &
until [ "$(grep -c 'attempt 0 has one' grown)" = 2 ]; do sleep 0.2; done
srun -N1 -r2 --overlap slaunch --join yes $options grow.py || exit 1
wait
"""
"""Two nodes begin, and a third comes: it makes its copies before it looks for the job."""


def test_copies_are_on_every_node_while_workers_run_and_never_after(submitter: Submitter) -> None:
    cluster, folder = submitter.cluster, Path(submitter.folder)
    (folder / "data" / "sub").mkdir(parents=True)
    (folder / "data" / "sub" / "one").write_text("1")
    (folder / "words.txt").write_text("some words")
    subprocess.run(["tar", "-czf", folder / "env.tar.gz", "-C", folder / "data", "."], check=True, timeout=20)
    (folder / "staged.py").write_text(
        "import os, sys, time\nplace, env = os.environ['SLAUNCH_STAGE_DIR'], '/tmp/env-of-test/sub'\n"
        "print('has', open(f'{place}/words.txt').read(), os.listdir(f'{place}/data/sub'), os.listdir(env), flush=True)\n"
        "time.sleep(float(sys.argv[1]))\n"
    )
    growing = cluster.start(["salloc", "-Q", "-N3", "bash", "-c", GROW], cwd=str(folder))
    stage = "data,words.txt,env.tar.gz:/tmp/env-of-test"
    step = ("-N3", "--ntasks-per-node=1", "slaunch", "--stage", stage, "--tee", "all", "staged.py")
    done = cluster.srun(*step, "0", cwd=str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("has some words ['one'] ['one']") == 3
    assert len(re.findall(r"staged \S+ to \S+ on 3 nodes in [\d.]+ s, .* by sbcast in", done.stderr)) == 3, done.stderr
    assert left(cluster) == []

    killed = cluster.start(["srun", *step, "60"], cwd=str(folder))
    cluster.wait_until(lambda: len(left(cluster)) == 6, DONE_S, lambda: str(left(cluster)))
    agents = [each.pid for each in cluster.processes() if stage in each.argv and "srun" not in each.argv[0]]
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    cluster.wait(killed, DONE_S)
    again = cluster.srun(*step, "0", cwd=str(folder), timeout=DONE_S)
    assert again.returncode == 0, again.stderr
    assert left(cluster) == []

    for options, code, seen in (
        (("-N2", "--ntasks-per-node=1", "slaunch", "--stage", "nothing"), 73, "no such file or folder, seen from n"),
        (("-N2", "--ntasks-per-node=2", "slaunch", "--stage", "data"), 71, "nobody is left to remove copies"),
        (("-N2", "--ntasks-per-node=1", "slaunch", "--stage", "words.txt:/usr/no"), 73, "/usr/no"),
    ):
        done = cluster.srun(*options, "staged.py", "0", cwd=str(folder))
        assert done.returncode == code, done.stderr
        assert seen in done.stderr
        assert len(re.findall("^slaunch: cannot ", done.stderr, re.MULTILINE)) == 1, done.stderr
    assert left(cluster) == []
    done = cluster.wait(growing, DONE_S)
    assert done.returncode == 0, done.stderr
    grown = sorted(set(re.findall(r"attempt 1 has .*", (folder / "grown").read_text())))
    assert grown == [f"attempt 1 has one of 3 on n{node}" for node in (1, 2, 3)]


def left(cluster: Cluster) -> list[str]:
    """Copies on the nodes' disks."""
    script = "ls -d /tmp/slaunch-stage-* /tmp/env-of-test 2>/dev/null; true"
    return [line for node in cluster.nodes[:3] for line in cluster.run(["bash", "-c", script], node=node).stdout.split()]


def test_defaults_of_the_site_hold_for_every_job(submitter: Submitter) -> None:
    os.makedirs(f"{submitter.folder}/config")
    Path(submitter.folder, "config", "slaunch.toml").write_text(
        '[submit]\npartition = "urgent"\ngpu_form = "gres"\nsetup = ["export MARK=of-the-site"]\ntime = "7"\n'
    )
    done = submitter.run("submit", "--follow", "--poll", "1", "-N1", "--gpus-per-node=3", "--log-dir", "logs", WORLD)
    assert done.returncode == 0, done.stderr
    facts = submitter.cluster.job(done.stdout.split()[0])
    assert (facts["Partition"], facts["TimeLimit"]) == ("urgent", "00:07:00")
    assert facts["TresPerNode"] in ("gres:gpu:3", "gres/gpu:3")
    assert '"MARK": "of-the-site"' in done.stdout
    assert CHECKOUT not in facts["WorkDir"]
