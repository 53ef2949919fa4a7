"""Nodes that are started one by one, at an address or at an etcd. All on this machine, with real sockets and a real etcd."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest
from support.cluster import CHECKOUT
from support.etcds import Server
from support.meetings import ByHand
from support.stars import wait_for_one

from slaunch.channel import secret
from slaunch.channel.listen import close_all, listen
from slaunch.channel.star import Message
from slaunch.errors import RendezvousError, UsageError
from slaunch.frozen import replace
from slaunch.rendezvous import enrol, etcd, join
from slaunch.rendezvous.etcd_client import Etcd, EtcdError


@pytest.fixture
def master():
    """An address at which nobody listens yet."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"127.0.0.1:{probe.getsockname()[1]}"


def seats(tasks):
    return [task.result.rank for task in tasks]


def membership(meeting):
    meeting.agree("x")
    return meeting.membership


def wait_until_served(master):
    """Until somebody listens there; looking by a connection would be noticed."""
    port, end = int(master.rpartition(":")[2]), time.monotonic() + 20
    while True:
        with open("/proc/net/tcp") as table:
            if any(f":{port:04X} 00000000:0000 0A" in line for line in table):
                return
        assert time.monotonic() < end
        time.sleep(0.02)


def quick(job, seconds):
    job.options = replace(job.options, rendezvous_timeout_s=seconds)
    return job


# -- at an address


@pytest.mark.parametrize("prefix", ["", "http://"])
def test_f4_f6_f97_f98_one_of_them_serves_and_the_others_join(master, prefix):
    tasks = ByHand(4, master=prefix + master).run(membership)
    assert [task.error for task in tasks] == [None] * 4
    assert sorted(seats(tasks)) == [0, 1, 2, 3]
    assert len({task.result.facts for task in tasks}) == 1
    assert {task.result.way for task in tasks} == {"tcp"}
    machines = {each.machine for each in tasks[0].result.facts}
    assert len(machines) == 4  # each counts as a node of its own, as with Paddle's launcher


def test_f98_a_name_serves_as_well_as_an_address(master):
    """Paddle's launcher compares the text with addresses, and hangs with names."""
    tasks = ByHand(2, master=master.replace("127.0.0.1", "localhost")).run(membership)
    assert [task.error for task in tasks] == [None] * 2


def test_f7_f104_numbers_that_are_asked_for_are_given(master):
    tasks = ByHand(3, master=master, ranks={0: 2, 1: 0, 2: 1}).run(membership)
    assert seats(tasks) == [2, 0, 1]


def test_f105_f107_a_node_that_serves_without_being_the_first_leaves_the_agents_channel_to_the_first(master):
    """The star's hub is rank 0, wherever the nodes met."""
    job = ByHand(3, master=master, ranks={0: 1, 1: 0})
    stars = []

    def use(meeting):
        meeting.agree("x")
        star = meeting.star()
        stars.append((meeting.membership.rank, star.is_hub))
        if star.is_hub:
            star.broadcast({"go": 1})
            star.flush(5.0)
        else:
            assert wait_for_one(star) == Message(0, {"go": 1})
        star.close()

    first = job.start(0, use)
    wait_until_served(master)
    tasks = [first, job.start(1, use), job.start(2, use)]
    for task in tasks:
        task.join()
    assert [task.error for task in tasks] == [None] * 3
    assert sorted(stars) == [(0, True), (1, False), (2, False)]


def test_w18_one_number_for_two_nodes_is_told_to_all(master):
    tasks = ByHand(3, master=master, ranks={0: 1, 1: 1}).run(membership)
    (seen,) = {task.error.seen for task in tasks}
    assert re.fullmatch("node0000[01] and node0000[01] both ask for --node-rank 1", seen)


def test_w16_f103_too_few_nodes_end_at_the_deadline(master):
    tasks = quick(ByHand(3, master=master), 2.0).run(ranks=(0, 1))
    assert all(re.match(r"2 of 3 nodes are here \(node0000[01], node0000[01]\)$", task.error.seen) for task in tasks)


def test_w16_nobody_serves(monkeypatch):
    """The address is another machine's (RFC 5737: of nobody)."""
    monkeypatch.setattr("slaunch.rendezvous.assemble.HUB_LEAD_S", 0.5)
    (task,) = quick(ByHand(2, master="192.0.2.1:6070"), 0.5).run(ranks=(0,))
    assert task.error.seen.startswith("no node that serves at 192.0.2.1:6070: ")
    assert task.error.local


def test_w17_another_number_of_nodes_is_refused_with_both_numbers(master, monkeypatch):
    monkeypatch.setattr(join, "REFUSED_S", 0.5)
    job = ByHand(2, master=master)
    first = job.start(0)
    wait_until_served(master)
    other = ByHand(3, job.job, job.env, job.options, master=master).start(1)
    other.join()
    second = job.start(1)
    for task in (first, second):
        task.join()
        assert task.error is None
    assert "wants a meeting of 3 nodes, but this is one of 2" in other.error.seen


def test_p31_w46_another_job_at_the_same_address_does_not_meet(master, monkeypatch):
    monkeypatch.setattr(join, "REFUSED_S", 0.5)
    job = quick(ByHand(2, master=master), 2.5)
    first = job.start(0)
    wait_until_served(master)
    other = quick(ByHand(2, master=master), 2.5).start(1)
    for task in (first, other):
        task.join()
    assert "the meeting of another job" in other.error.seen
    assert "turned away 127.0.0.1:" in first.error.seen


def test_f12_f112_at_least_and_at_most(master, monkeypatch):
    """Two of two to four: after the last call they go without the others."""
    monkeypatch.setattr(enrol, "LAST_CALL_S", 1.0)
    tasks = ByHand(2, master=master, nnodes=(2, 4)).run(membership)
    assert sorted(seats(tasks)) == [0, 1]
    assert {len(task.result.facts) for task in tasks} == {2}


def test_nobody_else_can_listen_where_more_may_come(master, monkeypatch):
    """A late node on the serving machine would else be a job of its own."""
    monkeypatch.setattr(enrol, "LAST_CALL_S", 0.1)
    host, _, port = master.partition(":")

    def look(meeting):
        star = meeting.star()
        taken = not listen([host], int(port))
        star.close()
        return taken, len(meeting.held)

    task = ByHand(1, master=master, nnodes=(1, 2)).run(look)[0]
    assert task.error is None
    taken, held = task.result
    assert taken
    assert held > 0
    close_all(listen([host], int(port)))


def test_a_node_that_leaves_before_all_are_there_is_replaced(master):
    job = ByHand(3, master=master)
    first = job.start(0, membership)
    wait_until_served(master)
    quitter = subprocess.Popen(
        [sys.executable, f"{CHECKOUT}/tests/programs/meet.py", "--master", master, "--nnodes", "3"],
        env={**os.environ, **job.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(1.0)
    quitter.kill()
    quitter.wait()
    tasks = [first, job.start(1, membership), job.start(2, membership)]
    for task in tasks:
        task.join()
    assert [task.error for task in tasks] == [None] * 3


def test_f99_f100_without_an_address_the_first_prints_how_the_others_join(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["slaunch", "--nnodes", "2", "my script.py", "--text", "it's"])
    job = ByHand(2)
    first = job.start(0, membership)
    end = time.monotonic() + 10
    while not first.said and time.monotonic() < end:
        time.sleep(0.05)
    (line,) = [line for line in first.said if "start on each other node" in line]
    assert line.endswith("--nnodes 2 'my script.py' --text 'it'\"'\"'s'")
    assert f"cd {os.getcwd()} && {sys.executable} -m slaunch --master 127.0.0.1:" in line
    assert job.env[secret.VARIABLE] not in line
    second = replace_master(job, re.search(r"--master (\S+)", line)[1]).start(1, membership)
    for task in (first, second):
        task.join()
    assert [first.result.rank, second.result.rank] == [0, 1]


def replace_master(job, master):
    return ByHand(job.size, job.job, job.env, job.options, master=master)


def test_a_malformed_address_is_the_users_error():
    (task,) = ByHand(2, master="nonsense").run(ranks=(0,))
    assert isinstance(task.error, UsageError)


def test_an_unknown_name_is_named():
    (task,) = quick(ByHand(2, master="no-such-host.invalid:6070"), 1.0).run(ranks=(0,))
    assert task.error.wanted == "find the address of no-such-host.invalid"


# -- at an etcd


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A real etcd, and its address."""
    made = Server(tmp_path_factory.mktemp("etcd"))
    yield f"etcd://127.0.0.1:{made.port}"
    made.close()


def client_of(master):
    host, port = master.removeprefix("etcd://").split(":")
    return Etcd([(host, int(port))])


def test_f5_f109_nodes_meet_at_an_etcd_and_leave_nothing_there(server):
    job = ByHand(4, master=server)
    tasks = job.run(membership)
    assert [task.error for task in tasks] == [None] * 4
    assert sorted(seats(tasks)) == [0, 1, 2, 3]
    assert {task.result.way for task in tasks} == {"etcd"}
    assert client_of(server).get(f"/slaunch/by hand/{job.job}/server") == ""


def test_w23_jobs_whose_names_begin_alike_do_not_touch_each_other(server):
    jobs = [ByHand(2, job="train", master=server), ByHand(2, job="train2", master=server), ByHand(2, job="tra", master=server)]
    tasks = [job.start(rank, membership) for rank in (0, 1) for job in jobs]
    for task in tasks:
        task.join()
        assert task.error is None


def test_w20_many_that_come_at_once_elect_one_server(server):
    """Each registration of Paddle's launcher wipes out the others'."""
    tasks = ByHand(12, master=server).run(membership)
    assert [task.error for task in tasks] == [None] * 12
    assert len({task.result.secret for task in tasks}) == 1


def test_several_servers_may_be_named_and_the_first_may_be_down(server, master):
    tasks = ByHand(2, master=server.replace("etcd://", f"etcd://{master},")).run(membership)
    assert [task.error for task in tasks] == [None] * 2


def test_f110_f305_a_server_that_dies_is_followed_by_another(server, monkeypatch):
    """Its lease ends; a node that looks for it takes its place."""
    monkeypatch.setattr(etcd, "LEASE_S", 2)
    job = ByHand(2, master=server)
    client = client_of(server)
    lease = client.grant(2)
    dead = json.dumps({"ips": ["127.0.0.1"], "port": 1, "nonce": "dead"})
    client.create(f"/slaunch/by hand/{job.job}/server", dead, lease)
    tasks = job.run(membership)
    assert [task.error for task in tasks] == [None] * 2


def test_f110_f305_a_lease_is_kept_while_others_are_awaited(server, monkeypatch):
    monkeypatch.setattr(etcd, "LEASE_S", 2)
    job = ByHand(2, master=server)
    first = job.start(0, membership)
    time.sleep(4)
    assert client_of(server).get(f"/slaunch/by hand/{job.job}/server")
    second = job.start(1, membership)
    for task in (first, second):
        task.join()
        assert task.error is None


def test_a_server_that_lost_its_key_does_not_go_on(server):
    """It stood still, and another one may serve by now: no two worlds of one job."""
    client, key = client_of(server), f"/slaunch/{os.urandom(4).hex()}/server"
    lease = client.grant(10)
    assert client.create(key, "ours", lease) == ""
    office = etcd.Office(client, key, "ours", lease, closes=False)
    client.replace(key, "ours", "somebody else's", lease)
    with pytest.raises(RendezvousError, match="the key of this node has ended"):
        office.leave()
    assert client.get(key) == "somebody else's"
    client.revoke(lease)


def test_f112_late_nodes_make_no_second_world(server, monkeypatch):
    monkeypatch.setattr(enrol, "LAST_CALL_S", 0.5)
    monkeypatch.setattr(etcd, "CLOSED_S", 3)
    job = quick(ByHand(2, master=server, nnodes=(1, 4)), 20.0)
    first = job.start(0, membership)
    first.join()
    assert len(first.result.facts) == 1
    late = quick(ByHand(2, job.job, job.env, job.options, master=server, nnodes=(1, 4)), 1.5).start(1, membership)
    late.join()
    assert late.error.seen == "the job has begun without this node"


def test_w16_an_etcd_that_is_not_there_is_named(master):
    (task,) = quick(ByHand(2, master=f"etcd://{master}"), 1.0).run(ranks=(0,))
    assert f"etcd: {master}: " in task.error.seen
    assert task.error.local


def test_a_web_server_in_etcds_place_is_no_etcd():
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_error(404)

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        with pytest.raises(EtcdError, match="status 404"):
            Etcd([("127.0.0.1", web.server_address[1])]).get("x")
        web.shutdown()
        thread.join()
