"""Nodes that meet at an etcd which asks for certificates and a password. A real etcd, with authorities made for the test."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time

import pytest
from support.meetings import ByHand

from slaunch.errors import UsageError
from slaunch.frozen import replace
from slaunch.rendezvous.etcd_access import PASSWORD, access_of
from slaunch.rendezvous.etcd_client import DeniedError, Etcd

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Guarded:
    """An etcd, and what its users need: `address`, and by name the paths of files."""

    def __init__(self, folder, address):
        self.folder, self.address = folder, address
        self.master = f"etcd://{address}"

    def path(self, name):
        return str(self.folder / name)

    def options(self, **changes):
        files = {"etcd_cacert": self.path("ca.pem"), "etcd_cert": self.path("node.pem"), "etcd_key": self.path("node.key")}
        return {"etcd_user": "train", **files, **changes}

    def etcdctl(self, *args, **env):
        files = {"CACERT": self.path("ca.pem"), "CERT": self.path("node.pem"), "KEY": self.path("node.key")}
        ours = {f"ETCDCTL_{name}": value for name, value in files.items()}
        argv = ["etcdctl", "--endpoints", f"https://{self.address}", *args]
        return subprocess.run(
            argv, env={**os.environ, "ETCDCTL_API": "3", **ours, **env}, capture_output=True, text=True, timeout=20, check=False
        )


def authority(folder, name):
    run(folder, "req", "-x509", *KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")


def certificate(folder, name, subject):
    (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    run(folder, "req", *KEY, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extensions")
    run(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-days", "2", "-out", f"{name}.pem")


def run(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True, timeout=20)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    if not all(map(shutil.which, ("etcd", "etcdctl", "openssl"))):
        pytest.skip("etcd or openssl is not installed")
    folder = tmp_path_factory.mktemp("etcd")
    authority(folder, "ca")
    authority(folder, "other")
    certificate(folder, "server", "/CN=server")
    certificate(folder, "node", "/O=nodes")
    certificate(folder, "named", "/CN=train")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        client, peer = (f"127.0.0.1:{sock.getsockname()[1]}" for sock in (one, two))
    argv = ["etcd", "--data-dir", "data", "--listen-client-urls", f"https://{client}", "--advertise-client-urls"]
    argv += [f"https://{client}", "--listen-peer-urls", f"http://{peer}", "--initial-advertise-peer-urls", f"http://{peer}"]
    argv += ["--initial-cluster", f"default=http://{peer}", "--cert-file", "server.pem", "--key-file", "server.key"]
    argv += ["--client-cert-auth", "--trusted-ca-file", "ca.pem"]
    with open(folder / "log", "w") as log:
        environment = {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"}
        process = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log, env=environment)
    try:
        yield with_users(Guarded(folder, client))
    finally:
        process.kill()
        process.wait()


def with_users(etcd):
    """Two users: root, whom etcd asks for, and one who may touch nothing but what slaunch needs."""
    end = time.monotonic() + 30
    while etcd.etcdctl("endpoint", "health").returncode:
        assert time.monotonic() < end, (etcd.folder / "log").read_text()
        time.sleep(0.2)
    for words in (
        ("user", "add", "root:super"),
        ("user", "grant-role", "root", "root"),
        ("role", "add", "jobs"),
        ("role", "grant-permission", "jobs", "--prefix=true", "readwrite", "/slaunch/"),
        ("user", "add", "train:pass:word"),
        ("user", "grant-role", "train", "jobs"),
        ("user", "add", "nobody:nothing"),
        ("auth", "enable"),
    ):
        done = etcd.etcdctl(*words)
        assert done.returncode == 0, done.stderr
    return etcd


def job_at(etcd, size=2, password="pass:word", **changes):
    job = ByHand(size, master=etcd.master)
    job.options = replace(job.options, rendezvous_timeout_s=30.0, **etcd.options(**changes))
    job.env = {**job.env, **({PASSWORD: password} if password else {})}
    return job


@pytest.mark.parametrize(("user", "password"), [("train", "pass:word"), ("train:pass:word", "")])
def test_f5_nodes_meet_at_an_etcd_with_certificates_and_a_password(guarded, user, password):
    tasks = job_at(guarded, 3, password, etcd_user=user).run(lambda meeting: meeting.membership)
    assert [task.error for task in tasks] == [None] * 3
    assert {task.result.way for task in tasks} == {"etcd"}


@pytest.mark.parametrize(
    ("changes", "password", "seen"),
    [
        ({}, "wrong", "authentication failed, invalid user id or password"),
        ({"etcd_user": ""}, "", "permission denied|user name is empty"),
        ({"etcd_user": "nobody"}, "nothing", "permission denied"),
        ({"etcd_cacert": "other.pem"}, "pass:word", "certificate verify failed"),
        ({"etcd_cert": "", "etcd_key": ""}, "pass:word", "bad certificate|certificate required"),
        ({"etcd_cert": "named.pem", "etcd_key": "named.key"}, "pass:word", "commonname of client"),
    ],
)
def test_who_is_not_let_in_hears_at_once(guarded, changes, password, seen):
    files = {name: guarded.path(value) if value.endswith((".pem", ".key")) else value for name, value in changes.items()}
    job = job_at(guarded, 2, password, **files)
    began = time.monotonic()
    (task,) = job.run(ranks=(0,))
    assert time.monotonic() - began < 20  # of a deadline of 30
    assert re.search(seen, task.error.seen.lower())
    assert task.error.local
    assert "--etcd-user, --etcd-cacert, --etcd-cert and --etcd-key" in task.error.todo
    assert password not in str(task.error) or not password


def test_without_encryption_the_hint_names_it(guarded):
    job = job_at(guarded, 2, "pass:word", etcd_cacert="", etcd_cert="", etcd_key="")
    job.options = replace(job.options, rendezvous_timeout_s=1.0)
    (task,) = job.run(ranks=(0,))
    assert task.error.todo.endswith("one that wants encryption needs --etcd-cacert")


def test_a_login_that_has_ended_is_made_anew(guarded):
    options = replace(ByHand(1).options, **guarded.options())
    host, port = guarded.address.split(":")
    etcd = Etcd([(host, int(port))], access_of(options, {PASSWORD: "pass:word"}))
    assert etcd.get("/slaunch/nothing") == ""
    etcd._token = "ended.1"
    assert etcd.get("/slaunch/nothing") == ""
    with pytest.raises(DeniedError, match="permission denied"):
        etcd.get("/another's")


def test_a_user_without_a_password_is_asked_for_it():
    with pytest.raises(UsageError, match=f"set {PASSWORD}"):
        access_of(replace(ByHand(1).options, etcd_user="train"), {})


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"etcd_cacert": "/nowhere/ca.pem"}, r"--etcd-cacert \(/nowhere/ca.pem\): No such file"),
        ({"etcd_cert": "/nowhere/node.pem"}, r"--etcd-cert and --etcd-key \(/nowhere/node.pem, no key\): No such file"),
    ],
)
def test_files_that_are_not_there_are_named(changes, seen):
    with pytest.raises(UsageError, match=seen):
        access_of(replace(ByHand(1).options, **changes), {})
