"""An etcd that does not answer, or whose answers are lost: while nodes meet at it, and while a job's entry is kept there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from support.etcds import Proxy, Server
from support.meetings import ByHand

from slaunch.errors import RendezvousError
from slaunch.options import Options, Program
from slaunch.rendezvous import enrol, etcd, etcd_client, etcd_late
from slaunch.rendezvous.etcd_client import CALL_S, Etcd
from slaunch.rendezvous.etcd_late import KEPT, TAKEN, Entry, remove, renew
from slaunch.rendezvous.meet import Meeting

KEY = "/slaunch/job/server"
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(Path(tmp_path_factory.mktemp("etcd")))
    yield made
    made.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with closing(Proxy(server.port)) as made:
        yield made


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def at(ports: Sequence[int]) -> str:
    return "etcd://" + ",".join(f"127.0.0.1:{port}" for port in ports)


def agree(meeting: Meeting) -> int:
    meeting.agree("x")
    return len(meeting.membership.facts)


def test_f109_w20_who_has_come_hears_the_serving_node_while_that_waits_for_etcd(server: Server) -> None:
    """Four of five members make connections and say nothing, once all but the last node are there. A node that hears nothing for
    six seconds gives the serving one up."""
    members = [Proxy(server.port) for _ in range(5)]
    assert CALL_S * 4 > 6
    try:
        job = ByHand(3, master=at([member.port for member in members]))
        first = job.start(0, agree)
        key = f"/slaunch/by hand/{job.job}/server"
        until(lambda: server.client.get(key))
        second = job.start(1, agree)
        until(lambda: server.client.get(key) and second.ident)
        time.sleep(1.0)  # it joins
        for member in members[:4]:
            member.deaf = True
        last = ByHand(3, job.job, job.env, job.options, master=at([members[4].port])).start(2, agree)
        for node in (first, second, last):
            node.join()
            assert node.error is None, str(node.error)
            assert node.result == 3
    finally:
        for member in members:
            member.close()


def test_a_meeting_goes_on_at_an_etcd_that_is_silent_for_a_while(
    server: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does what it is asked for, but the first answer is lost."""
    monkeypatch.setattr(enrol, "LAST_CALL_S", 0.2)
    monkeypatch.setattr(etcd_client, "CALL_S", 1.0)
    job = ByHand(2, master=at([proxy.port]), nnodes=(2, 3))
    first = job.start(0, agree)
    until(lambda: server.client.get(f"/slaunch/by hand/{job.job}/server"))
    proxy.mute = True
    second = ByHand(2, job.job, job.env, job.options, master=at([server.port]), nnodes=(2, 3)).start(1, agree)
    time.sleep(1.5)
    proxy.mute = False
    for node in (first, second):
        node.join()
        assert (node.error, node.result) == (None, 2)


@pytest.mark.parametrize("closes", [False, True])
def test_a_key_that_was_given_up_by_a_question_whose_answer_was_lost_is_given_up(free: Etcd, closes: bool) -> None:
    lease = free.grant(10)
    free.create(KEY, "ours", lease)
    office = etcd.Office(free, KEY, "ours", lease, closes)
    office.leave()
    office.leave()
    free.replace(KEY, free.get(KEY), "theirs", "0")
    free.create(KEY, "theirs", "0")
    with pytest.raises(RendezvousError, match="the key of this node has ended"):
        office.leave()


def test_w16_a_meeting_at_an_etcd_that_stays_silent_ends_with_an_error_on_all_nodes(
    server: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_client, "CALL_S", 1.0)
    monkeypatch.setattr(etcd, "LEAVE_S", 0.5)
    job = ByHand(2, master=at([proxy.port]))
    first = job.start(0)
    until(lambda: server.client.get(f"/slaunch/by hand/{job.job}/server"))
    proxy.deaf = True
    second = ByHand(2, job.job, job.env, job.options, master=at([server.port])).start(1)
    for node in (first, second):
        node.join()
        assert node.error is not None
        assert node.error.wanted == "make sure that only one node serves this job"
        assert node.error.seen == f"etcd: 127.0.0.1:{proxy.port}: timed out"


def test_f110_a_key_whose_lease_has_ended_while_nodes_are_awaited_is_put_there_again(
    server: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd, "LEASE_S", 1)
    job = ByHand(2, master=at([proxy.port]))
    key = f"/slaunch/by hand/{job.job}/server"
    first = job.start(0)
    until(lambda: server.client.get(key))
    proxy.deaf = True
    until(lambda: not server.client.get(key))
    proxy.deaf = False
    until(lambda: server.client.get(key))
    second = job.start(1)
    for node in (first, second):
        node.join()
        assert node.error is None


# -- the entry of a running job


def entry(port: int, nonce: str = "ours", mark: str = "") -> Entry:
    return Entry(Options(Program("x"), master=at([port])), {}, KEY, nonce, 0, mark)


@pytest.fixture
def free(server: Server) -> Iterator[Etcd]:
    """etcd, without an entry before and after."""
    yield server.client
    server.client.replace(KEY, server.client.get(KEY), "", "0")


def test_f110_w20_an_entry_whose_lease_was_never_heard_of_does_not_end_with_it(
    server: Server, free: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the first renewal is lost: what was put there hangs on a lease that nobody lets begin anew."""
    monkeypatch.setattr(etcd_late, "LEASE_S", 3)
    own = '{"nonce": "ours", "reign": 0}'
    lost = free.grant(3)
    free.create(KEY, own, lost)
    kept = renew(entry(server.port), own, "")
    assert kept[0] == KEPT
    free.revoke(lost)
    assert free.get(KEY) == own


def test_w20_what_the_meeting_of_another_run_has_left_is_not_taken(server: Server, free: Etcd) -> None:
    """This run has stood still for so long that what its own meeting had left there is gone."""
    theirs, own = etcd.closing("theirs"), '{"nonce": "ours", "reign": 0}'
    free.create(KEY, theirs, "0")
    assert renew(entry(server.port, mark=etcd.closing("own")), own, "") == [TAKEN, theirs]
    assert renew(entry(server.port), own, "") == [TAKEN, theirs], "nor by an agent that was not at the meeting"
    assert renew(entry(server.port, mark=theirs), own, "")[0] == KEPT


def test_w20_the_entry_of_a_job_that_has_lost_a_node_stays_until_that_has_ended_its_workers(
    server: Server, free: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_late, "LINGER_S", 1)
    own = '{"nonce": "ours", "reign": 0}'
    kept = renew(entry(server.port), own, "")
    assert remove(entry(server.port), own, kept[1], clear=False)
    assert free.get(KEY) == own
    until(lambda: free.get(KEY) == "")
