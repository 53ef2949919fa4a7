"""`slaunch doctor` on a cluster that has, all at once, what it is to find; on a healthy one; and on one that has lost nodes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from support import nvml
from support.cluster import Cluster, Result
from support.jobs import folder_in
from support.networks import network

ALLOCATE = ("salloc", "--quiet", "--nodes=4", "--exclusive", "--gres=gpu:4", "--time=5")
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
GIB = 1 << 30
GPU = "gpu GPU-{0}f1edf3b-b297-37c1-a2a7-7601c3238fa2 00000000:{0}7:00.0 42949672960 0 0 0 0 NVIDIA A100-SXM4-40GB\n"
Told = Mapping[str, Any]


def doctor(cluster: Cluster, folder: str, *options: str) -> Result:
    done = cluster.run([*ALLOCATE, "slaunch", "doctor", *options], cwd=folder, timeout=90)
    assert done.returncode in (0, 1, 78), done.stderr
    return done


def found(told: Told, check: str, node: str = "") -> list[Told]:
    """Findings of a check, those about a node where one is given."""
    return [each for each in told["findings"] if each["check"] == check and (not node or node in each["nodes"])]


@pytest.fixture(scope="module")
def sick(_cluster: Cluster) -> Iterator[Told]:
    """What the doctor tells when everything is wrong at once."""
    folder = folder_in(_cluster.scratch)
    with contextlib.ExitStack() as faults:
        left = faults.enter_context(leftover(_cluster, "n1", folder))
        faults.enter_context(hidden_munge(_cluster, "n2"))
        faults.enter_context(small_memlock(_cluster, "n2"))
        faults.enter_context(full_tmp(_cluster, "n3"))
        faults.enter_context(other_script(_cluster, "n3", folder))
        faults.enter_context(one_core(_cluster, "n4"))
        faults.enter_context(network(_cluster, "aux0", f"10.199.{50 + int(_cluster._instance)}", dead="n4"))
        prolog = task_prolog(folder, gpus={"n1": 4, "n2": 3, "n3": 4, "n4": 4}, holder=("n1", left), ahead="n3")
        done = doctor(_cluster, folder, "--json", "--step-args", f"--task-prolog={prolog} --propagate=NONE", "train.py")
    assert done.returncode == 78, done.stdout + done.stderr
    yield json.loads(done.stdout)
    assert not _cluster.clean()


@contextlib.contextmanager
def leftover(cluster: Cluster, node: str, folder: str) -> Iterator[int]:
    """A process that left its job's step before that ended."""
    stay = f"echo $$ >{folder}/part && mv {folder}/part {folder}/left && exec sleep 600"
    leave = f"setsid -f sh -c '{stay}' </dev/null >/dev/null 2>&1"
    done = cluster.srun("--nodes=1", f"--nodelist={node}", "sh", "-c", f"{leave}; until [ -e {folder}/left ]; do sleep 0.1; done")
    assert done.returncode == 0, done.stderr
    with open(f"{folder}/left") as file:
        pid = int(file.read())
    try:
        yield pid
    finally:
        cluster.root(node, "kill", "-9", str(pid))


@contextlib.contextmanager
def hidden_munge(cluster: Cluster, node: str) -> Iterator[None]:
    """The folder of munge's socket is closed to all but root: slurmd still works, its users' programs do not."""
    kept = f"{cluster._state()}/{node}/munge"
    socket = "munge.socket.2"
    steps = (
        f"mkdir -p {kept}; mount --bind /run/munge {kept}; mount -t tmpfs -o mode=700 none /run/munge; "
        f"touch /run/munge/{socket}; mount --bind {kept}/{socket} /run/munge/{socket}"
    )
    cluster.root(node, "sh", "-ec", steps)
    try:
        yield
    finally:
        cluster.root(node, "sh", "-ec", f"umount /run/munge/{socket}; umount /run/munge; umount {kept}")


@contextlib.contextmanager
def small_memlock(cluster: Cluster, node: str) -> Iterator[None]:
    """slurmd has a low soft limit, which tasks get that do not take the submitting shell's."""
    limit(cluster, node, "65536")
    try:
        yield
    finally:
        limit(cluster, node, cluster.root(node, "sh", "-c", "ulimit -H -l").stdout.strip())


def limit(cluster: Cluster, node: str, soft: str) -> None:
    soft = soft if soft in ("65536", "unlimited") else str(1024 * int(soft))
    cluster.root(node, "prlimit", f"--memlock={soft}:", "--pid", slurmd(cluster, node))


def slurmd(cluster: Cluster, node: str) -> str:
    with open(f"{cluster._state()}/{node}/slurmd.pid") as file:
        return file.read().strip()


@contextlib.contextmanager
def one_core(cluster: Cluster, node: str) -> Iterator[None]:
    """slurmd may use one CPU, and hands that on."""
    was = cluster.root(node, "taskset", "-p", slurmd(cluster, node)).stdout.split()[-1]
    cluster.root(node, "taskset", "-a", "-p", "1", slurmd(cluster, node))
    try:
        yield
    finally:
        cluster.root(node, "taskset", "-a", "-p", was, slurmd(cluster, node))


@contextlib.contextmanager
def full_tmp(cluster: Cluster, node: str) -> Iterator[None]:
    """A small /tmp without room; what the nodes share below /tmp is still there."""
    again = "; ".join(
        f"mkdir -p {share}; mount --rbind {cluster._state()}/{node}/keep{share} {share}"
        for share in map(os.path.realpath, cluster._shares)
        if share.startswith("/tmp/")
    )
    cluster.root(node, "sh", "-ec", f"mount -t tmpfs -o size=1m,mode=1777 none /tmp; {again}")
    cluster.root(node, "sh", "-c", "head -c 2m /dev/zero >/tmp/full 2>/dev/null; true")
    try:
        yield
    finally:
        cluster.root(node, "umount", "--recursive", "--lazy", "/tmp")


@contextlib.contextmanager
def other_script(cluster: Cluster, node: str, folder: str) -> Iterator[None]:
    """One node sees an older script than the others."""
    for name, text in (("train.py", "print('new')\n"), ("old.py", "print('old')\n")):
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
    cluster.root(node, "mount", "--bind", f"{folder}/old.py", f"{folder}/train.py")
    try:
        yield
    finally:
        cluster.root(node, "umount", f"{folder}/train.py")


def task_prolog(folder: str, gpus: Mapping[str, int], holder: tuple[str, int], ahead: str) -> str:
    """A task prolog (srun(1)) that gives each node a driver's answers, and one of them a clock that is ahead."""
    shutil.copy(f"{nvml.library().name}/libnvidia-ml.so.1", folder)
    for node, count in gpus.items():
        held = f"process {holder[1]} {5 * GIB}\n" if node == holder[0] else ""
        with open(f"{folder}/{node}.nvml", "w") as file:
            file.write("driver 550.54.15\n" + "".join(GPU.format(number) for number in range(count)) + held)
    path = f"{folder}/prolog.sh"
    with open(path, "w") as file:
        file.write(
            f"#!/bin/sh\necho export LD_LIBRARY_PATH={folder}\necho export NVML_RECORDING={folder}/$SLURMD_NODENAME.nvml\n"
            f'if [ "$SLURMD_NODENAME" = {ahead} ]; then echo export LD_PRELOAD={FAKETIME}; echo export FAKETIME=+90s; fi\n'
        )
    os.chmod(path, 0o755)
    return path


SICK = {
    "wrong plug-in": ("mpi", "n1", "mpi4py loads MPICH", "--mpi=pmi2"),
    "no munge": ("munge", "n2", "munge.socket", "systemctl status munge"),
    "memlock": ("limits", "n2", "limit memlock is 65536", "ulimit -l unlimited"),
    "lost GPU": ("gpus", "n2", "3 GPUs, and Slurm gave 4", "nvidia-smi"),
    "clock": ("clock", "n3", "the clock is 90.", "chronyc"),
    "full /tmp": ("tmp", "n3", "/tmp on tmpfs: 0 MiB of 1 MiB free", "TMPDIR"),
    "old script": ("script", "n3", "train.py: ", "copy it again"),
    "one core": ("cpus", "n4", "one core (CPU 0)", "srun"),
    "dead card": ("reach", "n4", "cannot reach", "--network"),
    "leftover": ("leftovers", "n1", "(sleep, ", "kill "),
    "GPU memory": ("gpus", "n1", "(sleep, of job ", "kill "),
}


@pytest.mark.parametrize("fault", SICK)
def test_w62_doctor_finds(sick: Told, fault: str) -> None:
    check, node, seen, todo = SICK[fault]
    told = [each for each in found(sick, check, node) if seen in each["seen"]]
    assert told, json.dumps(found(sick, check), indent=1)
    assert todo in told[0]["todo"] and told[0]["means"], told
    others = [name for each in told for name in each["nodes"] if name != node]
    assert not others or fault == "wrong plug-in", told


def test_doctor_measures_all_pairs_of_few_nodes(sick: Told) -> None:
    pairs = {(rate["from"], rate["to"]) for rate in sick["rates"] if rate["interface"] == "eth0"}
    assert len(pairs) == 12, sick["rates"]
    assert all(rate["bytes_per_s"] > 0 for rate in sick["rates"])


def test_doctor_looks_at_everything_on_every_node(sick: Told) -> None:
    assert list(sick["nodes"]) == ["n1", "n2", "n3", "n4"]
    faults = {f"{node} {name}": each["fault"] for node, checks in sick["nodes"].items() for name, each in checks.items()}
    assert {name: fault for name, fault in faults.items() if fault} == {}
    assert sick["nodes"]["n1"]["gpus"]["facts"]["driver"] == "550.54.15"


def test_doctor_finds_nothing_on_nodes_that_are_well(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    done = doctor(cluster, folder, "--json", "--quick", "--step-args", "--mpi=pmi2")
    told = json.loads(done.stdout)
    assert [each for each in told["findings"] if each["nodes"] and each["severity"] != "note"] == []
    assert [each["check"] for each in found(told, "slurm")] == ["slurm", "slurm"]  # its release, and linuxproc
    assert done.returncode == 1


def test_doctor_tells_of_nodes_that_do_not_start(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    wait = f"touch {folder}/here; until [ -e {folder}/go ]; do sleep 0.1; done; exec slaunch doctor --quick"
    running = cluster.start([*ALLOCATE, "sh", "-c", wait], cwd=folder)
    cluster.wait_until(lambda: os.path.exists(f"{folder}/here"), 30, lambda: "no allocation")
    cluster.root("n2", "mount", "-t", "tmpfs", "none", "/run/munge")
    cluster.cut("n4")
    try:
        with open(f"{folder}/go", "w"):
            pass
        done = cluster.wait(running, 100)
    finally:
        cluster.join("n4")
        cluster.root("n2", "umount", "/run/munge")
    assert done.returncode == 78, done.stderr
    assert "ERROR step on n[2,4]\n  seen:  no answer from n[2,4]; srun said: " in done.stdout
    assert "failed on node n2" in done.stdout and "failed on node n4" in done.stdout
    assert any(line.startswith("n[1,3] ") for line in done.stdout.splitlines()), done.stdout  # those were examined
