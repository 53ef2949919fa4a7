"""The star over real sockets: messages, heartbeats, losses, clocks."""

import os
import resource
import selectors
import socket
import time

import pytest
from support.stars import IDENTITY, LOCAL, SECRET, Dialing, Loop, caller, dialer, make_hub, make_star

from slaunch.channel.door import Door
from slaunch.channel.hub import Hub
from slaunch.channel.link import Link
from slaunch.channel.listen import listen
from slaunch.channel.star import Lost, Message, Pulse

FAST = Pulse(0.05, 0.6)


@pytest.fixture
def star():
    loop, hub, spokes = make_star(4, Pulse(0.2, 30.0))
    yield loop, hub, spokes
    loop.close()


def test_messages_go_both_ways_in_order(star):
    loop, hub, spokes = star
    for number in range(50):
        spokes[1].send(0, {"n": number})
        hub.send(3, {"n": number}, b"x" * number)
    loop.run(lambda: len(loop.of(hub)) == 50 and len(loop.of(spokes[2])) == 50)
    assert loop.of(hub) == [Message(2, {"n": number}) for number in range(50)]
    assert loop.of(spokes[2]) == [Message(0, {"n": number}, b"x" * number) for number in range(50)]


def test_a_broadcast_reaches_every_spoke_but_not_the_hub(star):
    loop, hub, spokes = star
    blob = os.urandom(5 << 20)  # more than the socket's buffer: sent as the peer reads
    hub.broadcast({"stop": True}, blob)
    loop.run(lambda: all(loop.of(spoke) for spoke in spokes))
    assert all(loop.of(spoke) == [Message(0, {"stop": True}, blob)] for spoke in spokes)
    assert loop.of(hub) == []


def test_messages_to_oneself(star):
    loop, hub, spokes = star
    hub.send(0, {"a": 1})
    spokes[0].send(1, {"b": 2})
    loop.run(lambda: loop.of(hub) and loop.of(spokes[0]))
    assert loop.of(hub) == [Message(0, {"a": 1})]
    assert loop.of(spokes[0]) == [Message(1, {"b": 2})]


def test_only_the_star_shape_is_allowed(star):
    _, hub, spokes = star
    with pytest.raises(ValueError, match="sends to the hub, not to peer 2"):
        spokes[0].send(2, {})
    with pytest.raises(ValueError, match="only the hub"):
        spokes[0].broadcast({})
    with pytest.raises(ValueError, match="no peer 9"):
        hub.send(9, {})


def test_a_spoke_that_goes_is_lost_once(star):
    loop, hub, spokes = star
    spokes[0].close()
    loop.stars.remove(spokes[0])
    loop.run(lambda: loop.of(hub))
    hub.send(1, {"too": "late"})
    time.sleep(0.05)
    loop.run(lambda: True)
    assert loop.of(hub) == [Lost(1, "it closed the connection")]
    assert hub.missing() == [1]


def test_a_hub_that_goes_is_lost_by_all(star):
    loop, hub, spokes = star
    hub.close()
    loop.run(lambda: all(loop.of(spoke) for spoke in spokes))
    assert [loop.of(spoke) for spoke in spokes] == [[Lost(0, "it closed the connection")]] * 3
    spokes[0].send(0, {"too": "late"})
    assert spokes[0].flush(0.1) is False


def test_what_was_sent_leaves_before_it_arrives(star):
    """A peer that does not read acknowledges nothing more; who has something else to do need not wait for it."""
    loop, hub, spokes = star
    link = hub.peers[1].link
    link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200_000)
    spokes[0]._link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    hub.send(1, {"long": True}, os.urandom(60_000))
    hub.write_out(30.0)
    assert not link.waiting and link.unacknowledged()
    assert hub.flush(0.1) is False
    loop.run(lambda: loop.of(spokes[0]))
    assert hub.flush(20.0)


@pytest.mark.parametrize("one_who_goes", ["hub", "spoke"])
def test_last_words_count_though_the_answer_to_them_fails(star, one_who_goes):
    """Who closes while something has come that was not read resets the connection."""
    _, hub, spokes = star
    goes, stays = (hub, spokes[0]) if one_who_goes == "hub" else (spokes[0], hub)
    stays.send(goes.index, {"never": "read"})
    assert stays.flush(5.0)
    goes.send(stays.index, {"last": "words"})
    assert goes.flush(5.0)
    goes.close()
    assert stays.take() == []
    while not (taken := stays.take()):
        stays.send(goes.index, {"too": "late"})
    assert taken[0] == Message(goes.index, {"last": "words"})
    assert isinstance(taken[1], Lost)


def test_a_silent_peer_is_lost_on_either_side():
    """A stopped process keeps its connection: only the missing heartbeats tell."""
    loop, hub, spokes = make_star(3, FAST)
    stopped = spokes[0]
    loop.stars.remove(stopped)
    stopped._watch.remove(stopped._link.sock)  # nobody reads for it any more
    loop.run(lambda: loop.of(hub))
    assert loop.of(hub)[0].index == 1
    assert loop.of(hub)[0].why.startswith("silent for 0.")
    assert loop.of(spokes[1]) == []
    hub_is_stopped = Loop(spokes[1])
    hub_is_stopped.run(lambda: hub_is_stopped.of(spokes[1]))
    assert hub_is_stopped.of(spokes[1])[0].why.startswith("silent for 0.")
    stopped.close()
    hub_is_stopped.close()
    loop.close()


def test_who_was_stopped_itself_blames_nobody():
    loop, hub, spokes = make_star(3, FAST)
    loop.run(lambda: all(peer.last > 0 for peer in hub.peers.values()))
    time.sleep(2 * FAST.patience_s)  # the whole machine, or this process, stood still
    loop.run(lambda: hub.clock_offset_s(1))
    end = time.monotonic() + 2 * FAST.patience_s
    loop.run(lambda: time.monotonic() > end)
    assert loop.of(hub) == [] and all(loop.of(spoke) == [] for spoke in spokes)
    loop.close()


def test_clocks_are_compared_by_round_trips(star):
    loop, hub, spokes = star
    spokes[1].wall = lambda: time.time() - 1000.0
    loop.run(lambda: hub.clock_offset_s(1) and hub.clock_offset_s(2))
    assert abs(hub.clock_offset_s(1)) < 0.5
    assert abs(hub.clock_offset_s(2) + 1000.0) < 0.5
    assert hub.clock_offset_s(0) == hub.clock_offset_s(99) == spokes[0].clock_offset_s(0) == 0.0


def test_flush_waits_until_the_other_machine_has_it(star):
    loop, hub, spokes = star
    hub.broadcast({"last": "words"})
    assert hub.flush(5.0)
    hub.close()
    loop.run(lambda: all(len(loop.of(spoke)) == 2 for spoke in spokes))
    assert all(loop.of(spoke)[0] == Message(0, {"last": "words"}) for spoke in spokes)


def test_flush_is_bounded_where_nobody_reads(star):
    loop, hub, spokes = star
    hub.send(1, {}, os.urandom(32 << 20))
    start = time.monotonic()
    assert not hub.flush(0.3)
    assert time.monotonic() - start < 10
    loop.run(lambda: loop.of(spokes[0]))  # and the message still arrives when somebody does
    assert len(loop.of(spokes[0])[0].blob) == 32 << 20


def test_a_star_moves_to_another_loop(star):
    loop, hub, spokes = star
    other = Loop(hub, *spokes)
    assert not loop.selector.get_map()
    spokes[0].send(0, {"n": 1})
    other.run(lambda: other.of(hub))
    other.selector.close()


def test_messages_that_come_with_the_welcome_are_not_overlooked():
    hub, port = make_hub()
    loop = Loop(hub)
    thread = Dialing(dialer(port))
    loop.run(lambda: not hub.missing())
    hub.send(1, {"at": "once"})
    loop.run(lambda: not thread.is_alive())
    thread.join()
    loop.add(thread.spoke)
    loop.run(lambda: loop.of(thread.spoke))
    loop.close()


def test_what_was_taken_can_be_put_back(star):
    loop, hub, spokes = star
    spokes[0].send(0, {"n": 1})
    loop.run(lambda: loop.of(hub))
    hub.put_back(loop.of(hub))
    assert hub.take() == [Message(1, {"n": 1})]


def test_sockets_are_tuned(star):
    _, hub, spokes = star
    for link in (hub.peers[1].link, spokes[0]._link):
        assert link.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert link.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert link.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 10
        assert not link.sock.get_inheritable()


def test_a_peer_that_never_reads_is_given_up_before_memory_is(monkeypatch):
    monkeypatch.setattr("slaunch.channel.link.BACKLOG_LIMIT", 8 << 20)
    loop, hub, _ = make_star(2)
    for _ in range(4):
        hub.send(1, {}, os.urandom(6 << 20))
    assert hub.take() == [Lost(1, "does not read what it is sent")]
    loop.close()


def test_p26_a_star_over_ipv6():
    listeners = listen(["::1"], 0)
    from support.stars import IDENTITY, SECRET

    from slaunch.channel.door import Door

    hub = Hub(listeners, 0, 2, Door(IDENTITY, SECRET))
    loop = Loop(hub)
    work = dialer(0)
    work.targets = [("::1", listeners[0].getsockname()[1])]
    thread = Dialing(work)
    loop.run(lambda: not thread.is_alive())
    thread.join()
    assert hub.peers[1].link.peer.startswith("[::1]:")
    loop.add(thread.spoke)
    thread.spoke.send(0, {"n": 6})
    loop.run(lambda: loop.of(hub))
    loop.close()


def test_listening_at_one_address_only():
    first = listen([LOCAL, "127.0.0.2", "192.0.2.1"], 0)  # the last one is not ours (RFC 5737)
    port = first[0].getsockname()[1]
    assert [sock.getsockname() for sock in first] == [(LOCAL, port), ("127.0.0.2", port)]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.3", port), timeout=5)
    assert listen(["127.0.0.3", "127.0.0.2"], port) == []  # taken at one of them: not listened at any
    socket.create_connection((LOCAL, port), timeout=5).close()
    for sock in first:
        sock.close()


def test_the_hub_raises_the_limit_of_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        hub, _ = make_hub(600)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 600
        hub.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_links_on_local_sockets():
    ours, theirs = socket.socketpair()
    link = Link(ours, "a local socket")
    with selectors.DefaultSelector():
        assert list(link.read()) == []
    theirs.close()
    with pytest.raises(EOFError):
        list(link.read())
    link.close()


def test_a_complete_star_lets_nobody_else_in():
    hub, port = make_hub()
    loop = Loop(hub)
    thread = Dialing(dialer(port, caller()))
    loop.run(lambda: not thread.is_alive())
    thread.join()
    hub.close_door()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOCAL, port), timeout=5)
    loop.add(thread.spoke)
    loop.close()


def test_a_star_between_two_loops_still_sends(star):
    """The meeting's loop has ended, the agent's has not begun."""
    loop, hub, spokes = star
    loop.selector.close()
    hub.broadcast({"n": 1}, os.urandom(16 << 20))  # more than the sockets take at once
    hub.broadcast({"n": 2})
    again = Loop(hub, *spokes)
    again.run(lambda: all(len(again.of(spoke)) == 2 for spoke in spokes))
    again.selector.close()


def test_who_goes_just_before_all_get_their_numbers_is_lost_under_its_new_one():
    listeners = listen([LOCAL], 0)
    hub = Hub(listeners, 77, 3, Door(IDENTITY, SECRET), numbered=False)
    spokes = []
    loop = Loop(hub)
    for token in (1001, 1002):
        thread = Dialing(dialer(listeners[0].getsockname()[1], caller(token, 3)))
        loop.run(lambda: not thread.is_alive())  # noqa: B023 - it is called at once
        thread.join()
        spokes.append(thread.spoke)
    spokes[0].send(0, {"wish": 1})
    spokes[0].flush(10.0)
    spokes[0].close()
    kept = []
    while Lost not in map(type, kept):
        for key, _ in loop.selector.select(10.0):
            key.data()
        kept += hub.take()
    hub.put_back(kept)
    hub.close_door()
    hub.renumber({77: 0, 1001: 1, 1002: 2}, 0, 3)
    assert hub.take() == [Message(1, {"wish": 1}), Lost(1, "it closed the connection")]
    hub.send(1, {"too": "late"})
    assert hub.missing() == [1]
    spokes[1].close()
    loop.close()
