"""Meetings on real nodes: names and addresses that lead astray, absent and dying tasks, MUNGE."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256

import pytest
from support.cluster import CHECKOUT, Cluster, Result
from support.jobs import MPICH, OPENMPI4, OPENMPI5, folder_in, interpreter, library

from slaunch.channel import munge
from slaunch.channel.secret import VARIABLE, fresh_text, given

TASK = os.path.join(CHECKOUT, "tests", "programs", "meet.py")
ALL = ("-N4", "--ntasks-per-node=1")


Found = dict[int, dict]


def meet(cluster: Cluster, *args: str, step: tuple[str, ...] = ALL, venv: str = MPICH, **env: str) -> tuple[Result, Found]:
    """A step whose tasks meet; what each of them told, by rank."""
    folder = folder_in(cluster.scratch)
    done = cluster.srun("--mpi=none", *step, interpreter(venv), TASK, "--out", folder, *args, timeout=90, env=env)
    return done, {each["rank"]: each for each in told(folder)}


def told(folder: str) -> list[dict]:
    found = []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as file:
            found.append(json.load(file))
    return found


def assert_met(done: Result, found: dict[int, dict], size: int = 4) -> None:
    assert done.returncode == 0, done.stderr
    assert sorted(found) == list(range(size)), done.stderr
    assert {each["star"] for each in found.values()} == {"ok"}
    assert {each["facts"] for each in found.values()} == {size}
    assert len({each["secret"] for each in found.values()}) == 1


@contextlib.contextmanager
def hosts_file(cluster: Cluster, content: dict[str, str]) -> Iterator[None]:
    """Another /etc/hosts on some nodes, for all that starts meanwhile."""
    paths = {}
    try:
        for node, text in content.items():
            paths[node] = path = os.path.join(folder_in(cluster.scratch), "hosts")
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o644)
            cluster._vcluster("root", node, "mount", "--bind", path, "/etc/hosts")
        yield
    finally:
        for node in paths:
            cluster._vcluster("root", node, "umount", "/etc/hosts")


def addresses(cluster: Cluster) -> dict[str, str]:
    text = cluster.run(["cat", "/etc/hosts"]).stdout
    rows = [line.split() for line in text.splitlines()]
    return {row[1]: row[0] for row in rows if len(row) > 1 and row[1] in (*cluster.nodes, "ctl")}


def lines(table: dict[str, str]) -> str:
    return "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in table.items())


# -- names and addresses


def test_p18_p20_p22_all_meet_on_the_first_node(cluster: Cluster) -> None:
    """Whatever the launching host's address (SLURM_LAUNCH_NODE_IPADDR: the login node's here)."""
    done, found = meet(cluster)
    assert_met(done, found)
    assert found[0]["hosts"] == list(cluster.nodes)


def test_p19_a_name_that_leads_to_loopback_on_its_own_node(cluster: Cluster) -> None:
    """As Debian's installer writes it: 127.0.1.1 for the own name."""
    table = addresses(cluster)
    content = {node: lines({**table, node: "127.0.1.1"}) for node in cluster.nodes}
    with hosts_file(cluster, content):
        done, found = meet(cluster)
    assert_met(done, found)


def test_p19_p21_a_name_that_leads_to_loopback_everywhere_is_an_error_not_a_world_of_one(cluster: Cluster) -> None:
    table = addresses(cluster)
    content = {node: lines({**table, "n1": "127.0.1.1"}) for node in ("n2", "n3")}
    with hosts_file(cluster, content):
        done, found = meet(cluster, "--timeout", "4", step=("-N3", "-w", "n1,n2,n3", "--ntasks-per-node=1"))
    assert done.returncode != 0
    assert "find the address of node n1" in f"cannot {found[1]['error']} find the address of node n1"
    assert found[1]["seen"] == "neither the system's resolver nor Slurm's NodeAddr knows one that is not loopback"
    assert found[0]["seen"].startswith("1 of 3 tasks are here, but not n2 (task 1), n3 (task 2)")


def test_p26_a_cluster_whose_names_lead_to_ipv6(cluster: Cluster) -> None:
    """IPv4 stays for Slurm itself; the tasks know each other by IPv6 only."""
    sixes = {node: f"fd00:77::{index + 1}" for index, node in enumerate(cluster.nodes)}
    table = addresses(cluster)
    hosts = {node: lines({**sixes, "ctl": table["ctl"], node: table[node]}) for node in sixes}
    try:
        for node, address in sixes.items():
            cluster._vcluster("root", node, "ip", "addr", "add", f"{address}/64", "dev", "eth0", "nodad")
        with hosts_file(cluster, hosts):
            done, found = meet(cluster)
            assert_met(done, found)
            chosen, found = meet(cluster, "--network", "fd00:77::/64")
            assert_met(chosen, found)
    finally:
        for node, address in sixes.items():
            cluster._vcluster("root", node, "ip", "addr", "del", f"{address}/64", "dev", "eth0")


def test_tasks_placed_one_by_one(cluster: Cluster) -> None:
    """With `-m arbitrary` task 0 need not be on the first node of the list."""
    path = os.path.join(folder_in(cluster.scratch), "placement")
    with open(path, "w") as file:
        file.write("n3\nn1\nn2\nn1\n")
    done, found = meet(cluster, step=("-N3", "-n4", "-m", "arbitrary"), SLURM_HOSTFILE=path)
    assert_met(done, found)
    assert found[0]["hosts"] == ["n3", "n1", "n2", "n1"]


def test_p10_a_step_over_two_parts_of_a_heterogeneous_job(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    part = (sys.executable, TASK, "--out", folder)
    done = cluster.srun("--mpi=none", "-N1", "-n1", *part, ":", "-N2", "-n4", *part, timeout=90)
    assert_met(done, {each["rank"]: each for each in told(folder)}, 5)


@pytest.mark.parametrize("step", [("-N4", "-n9"), ("-N2", "-n16", "-m", "cyclic"), ("-N1", "-n3")])
def test_several_tasks_on_a_node(cluster: Cluster, step: tuple[str, ...]) -> None:
    size = int(step[1].removeprefix("-n"))
    done, found = meet(cluster, step=(*step, "--overcommit"))
    assert_met(done, found, size)


def test_p28_p30_p31_steps_of_one_job_at_the_same_time(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    step = f"srun --overlap --mpi=none -N4 -n4 {sys.executable} {TASK} --out {folder}"
    job = cluster.sbatch(f"#!/bin/sh\nfor i in 1 2 3 4; do {step} & done\nwait\n", "-N4", "--ntasks-per-node=1")
    met = told(folder)
    assert len(met) == 16, job.output
    secrets = [each["secret"] for each in met]
    assert {secrets.count(secret) for secret in secrets} == {4}


# -- absence and death


def test_w16_f315_a_task_that_does_not_come_is_named_by_its_node(cluster: Cluster) -> None:
    done, found = meet(cluster, "--asleep", "2", "--timeout", "7")
    assert {each["seen"] for each in found.values() if "seen" in each} == {"3 of 4 tasks are here, but not n3 (task 2)"}
    assert "slaunch: waiting for n3 (task 2)" in done.stderr
    assert [each["code"] for each in found.values() if "code" in each] == [69] * 3


def test_a_task_that_dies_in_the_meeting_is_named_at_once(cluster: Cluster) -> None:
    done, found = meet(cluster, "--die", "2:agree", "--timeout", "60")
    assert done.returncode != 0
    assert found[0]["seen"].startswith("task 2 on n3 left: ")
    assert {found[rank]["seen"] for rank in (1, 3)} <= {found[0]["seen"]}


def test_p97_the_first_task_dies_in_the_meeting(cluster: Cluster) -> None:
    done, found = meet(cluster, "--die", "0:agree", "--timeout", "60", step=(*ALL, "--kill-on-bad-exit=0"))
    assert done.returncode != 0
    assert sorted(found) == [1, 2, 3]
    assert all(each["seen"].startswith("the hub is gone: ") and each["local"] for each in found.values())


def test_a_script_that_differs_is_told_by_node(cluster: Cluster) -> None:
    _, found = meet(cluster, "--differ", "3")
    assert {each["error"] for each in found.values()} == {"AgreementError"}
    assert "differs on n4 (task 3) from the other 3" in found[0]["seen"]


# -- MPI


MISFITS = [(OPENMPI4, "pmi2"), (OPENMPI5, "pmi2"), (OPENMPI4, "none"), (OPENMPI5, "none"), (MPICH, "pmix"), (MPICH, "none")]


@pytest.mark.parametrize(("venv", "plugin"), MISFITS)
def test_p53_p54_p64_a_library_that_does_not_fit_ends_in_three_parts(cluster: Cluster, venv: str, plugin: str) -> None:
    """Singletons, an abort in MPI_Init, or its death: the task lives on and says what it saw and what to do."""
    step = (f"--mpi={plugin}", f"--export=ALL,MPI4PY_LIBMPI={library(venv)}", "-N2", "-n2")
    done, found = meet(cluster, "--way", "mpi", "--timeout", "40", step=step, venv=venv)
    assert {each["code"] for each in found.values()} == {69}, done.stderr
    assert re.search("its world has 1 process, but 2 tasks|the process that called MPI_Init ended", found[0]["seen"])
    assert "this Slurm offers " in found[0]["todo"]
    assert "pmi2, pmix" in found[0]["todo"]
    assert {each["children"] for each in found.values()} == {0}


@pytest.mark.parametrize(("venv", "plugin"), [(OPENMPI4, "pmix"), (OPENMPI5, "pmix"), (MPICH, "pmi2")])
def test_p69_a_task_that_comes_after_the_others_gave_mpi_up(cluster: Cluster, venv: str, plugin: str) -> None:
    """The step lives on, all meet in the other way, and nobody takes half of MPI's world for the whole."""
    args = ("--timeout", "18", "--late", "1:8")
    done, found = meet(cluster, *args, step=(f"--mpi={plugin}", "-N3", "--ntasks-per-node=1"), venv=venv)
    assert_met(done, found, 3)
    assert {each["way"] for each in found.values()} == {"slurm"}
    assert "mpi does not work: MPI did not answer in time" in found[0]["reason"]


# -- started by hand


@pytest.mark.parametrize("master", ["n2:16070", "http://n2:16070", "etcd://ctl:2379"])
def test_f4_f5_f6_f97_f98_nodes_that_are_started_one_by_one(cluster: Cluster, master: str) -> None:
    """As by ssh or pdsh: no variable of a scheduler, the same command everywhere."""
    folder, name = folder_in(cluster.scratch), f"by-hand-{os.urandom(4).hex()}"
    argv = [cluster.python, TASK, "--out", folder, "--master", master, "--nnodes", "4", "--job", name]
    started = [cluster.start(argv, node) for node in cluster.nodes]
    results = [cluster.wait(process, 60) for process in started]
    found = {each["rank"]: each for each in told(folder)}
    assert [each.returncode for each in results] == [0] * 4, results
    assert_met(results[0], found)
    first = "n2" if "etcd" not in master else found[0]["host"]
    assert found[0]["hosts"] == [first, *(node for node in cluster.nodes if node != first)]


# -- MUNGE


def test_a_credential_is_for_one_user_only(cluster: Cluster) -> None:
    """The tests run as root here, the cluster's user is another."""
    script = "from slaunch.channel import munge; print(munge.encode(b'the secret'))"
    credential = cluster.run([cluster.python, "-c", script]).stdout.strip()
    read = f"import sys; from slaunch.channel import munge; print(munge.decode({credential!r}))"
    assert cluster.run([cluster.python, "-c", read], node="n3").stdout == "b'the secret'\n"
    assert cluster.run([cluster.python, "-c", read], node="n3").stdout == "b'the secret'\n"  # by a second task of that node
    with pytest.raises(munge.MungeError, match=r"(?i)unauthorized"):
        munge.decode(credential)


def test_a_credential_of_another_user_is_not_taken(cluster: Cluster) -> None:
    """Even if that user lets everybody read it."""
    theirs = cluster.run(["munge", "-s", "x" * 40]).stdout.strip()
    with pytest.raises(munge.MungeError, match="the credential was made by user"):
        munge.decode(theirs)


def test_an_old_credential_is_still_read(cluster: Cluster) -> None:
    """Its freshness is proved by the handshake, so clocks that differ do no harm."""
    old = subprocess.run(["munge", "-s", "secret", "-t", "1"], capture_output=True, text=True, timeout=10).stdout.strip()
    cluster.run(["sleep", "2"])
    assert munge.decode(old) == b"secret"


def test_munge_gives_the_secret_where_slaunch_did_not_start_the_step(cluster: Cluster) -> None:
    done, found = meet(cluster, SLAUNCH_SECRET_DIR="/nowhere/at/all")
    assert_met(done, found)


def test_the_environments_secret_is_used_where_it_is_there(cluster: Cluster) -> None:
    secret = fresh_text()
    done, found = meet(cluster, SLAUNCH_SECRET=secret)
    assert_met(done, found)
    assert {each["secret"] for each in found.values()} == {sha256(given({VARIABLE: secret})).hexdigest()}
