"""Strangers, liars and broken peers at the hub's door."""

import contextlib
import os
import socket
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.stars import IDENTITY, LOCAL, SECRET, Dialing, Loop, caller, connect, dialer, drain, frame, make_hub, make_star

from slaunch.channel import wire
from slaunch.channel.handshake import Hello, key, proof, transcript
from slaunch.channel.star import Lost, Message
from slaunch.channel.wire import Opener, Sealer

HELLO = Hello(IDENTITY, 1, 2, "n1", 1, "i", "n")


def arrives(loop, hub, port):
    """The right spoke still gets in, and can speak."""
    thread = Dialing(dialer(port))
    loop.run(lambda: not thread.is_alive())
    thread.join()
    assert thread.spoke, thread.dialer.seen
    loop.add(thread.spoke)
    thread.spoke.send(0, {"here": 1})
    loop.run(lambda: Message(1, {"here": 1}) in loop.of(hub))
    assert not any(isinstance(item, Lost) for item in loop.of(hub))


def said_by(stranger, loop):
    """What the hub tells a stranger, as frames."""
    stranger.settimeout(0.05)
    data = b""

    def heard():
        nonlocal data
        try:
            more = stranger.recv(65536)
            data += more
            return not more
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True

    loop.run(heard)
    return [frame.body for frame in Opener().feed(data)]


def notices(hub):
    return "\n".join(hub.notices)


def test_a_wrong_secret_is_refused_and_noted_with_the_address(door):
    loop, hub, port = door
    thread = Dialing(dialer(port, caller(), b"w" * 32), limit_s=1.0)
    loop.run(lambda: not thread.is_alive())
    thread.join()
    assert thread.spoke is None
    assert "does not know the job's secret" in thread.dialer.seen[LOCAL, port]  # the hub could not prove itself to it
    assert "(says it is task 1 on host1)" in notices(hub)
    assert f"turned away {LOCAL}:" in notices(hub)
    arrives(loop, hub, port)


def test_a_peer_that_lies_about_its_proof_is_refused(door):
    loop, hub, port = door
    with connect(port) as liar:
        liar.sendall(frame(HELLO.body()))
        loop.run(lambda: any(guest.hello for guest in hub._guests))
        liar.sendall(frame({"say": "proof", "proof": "00" * 32}))
        assert said_by(liar, loop)[-1] == {"say": "refuse", "why": "does not know the job's secret"}
    assert "does not know the job's secret" in notices(hub)
    arrives(loop, hub, port)


def test_a_recorded_conversation_is_of_no_use(door):
    """Replay of everything that the right spoke once said, byte for byte."""
    loop, hub, port = door
    recorded = bytearray()
    relay = socket.create_server((LOCAL, 0))
    relay_port = relay.getsockname()[1]

    def pass_on():
        inner, _ = relay.accept()
        outer = connect(port)
        relayed.extend((inner, outer))
        for source, sink, keep in ((inner, outer, True), (outer, inner, False)):
            threads.append(threading.Thread(target=copy, args=(source, sink, keep)))
            threads[-1].start()

    def copy(source, sink, keep):
        with contextlib.suppress(OSError):  # the hub may be done with the link before all of it was passed on
            while data := source.recv(65536):
                if keep:
                    recorded.extend(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    relayed: list[socket.socket] = []
    threads: list[threading.Thread] = [threading.Thread(target=pass_on)]
    threads[0].start()
    thread = Dialing(dialer(relay_port))
    loop.run(lambda: not thread.is_alive())
    thread.join()
    thread.spoke.send(0, {"do": "harm"})
    loop.run(lambda: loop.of(hub))
    thread.spoke.close()
    loop.run(lambda: len(loop.of(hub)) == 2)
    for each in (*relayed, relay):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    for each in (*relayed, relay):
        each.close()

    again, again_port = make_hub()
    second = Loop(again)
    with connect(again_port) as attacker:
        attacker.sendall(bytes(recorded))
        assert {"say": "refuse", "why": "does not know the job's secret"} in said_by(attacker, second)
    assert second.of(again) == []
    assert again.missing() == [1]
    second.close()


def test_a_reflected_proof_is_refused(door):
    """The hub's own words sent back to it."""
    loop, hub, port = door
    with connect(port) as mirror:
        mirror.sendall(frame(HELLO.body()))
        loop.run(lambda: any(guest.hello for guest in hub._guests))
        mirror.settimeout(5)
        challenge = next(Opener().feed(mirror.recv(65536))).body
        mirror.sendall(frame({"say": "proof", "proof": challenge["proof"]}))
        assert said_by(mirror, loop)[-1]["why"] == "does not know the job's secret"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"identity": "cluster/43/0/0/0"}, "this is the meeting of another job"),
        ({"identity": "cluster/42/1/0/0"}, "this is the meeting of another job"),
        ({"identity": "cluster/42/0/1/0"}, "this is the meeting of another job"),
        ({"identity": "cluster/42/0/0/1"}, "this is the meeting of another job"),
        ({"size": 3}, "is task 1 of 3, but this is a meeting of 2"),
        ({"rank": 2}, "is task 2 of 2, but this is a meeting of 2"),
        ({"rank": 0}, "claims to be task 0, which is the hub itself"),
    ],
)
def test_who_belongs_elsewhere_is_told_so(door, changes, reason):
    loop, hub, port = door
    with connect(port) as stranger:
        stranger.sendall(frame({**HELLO.body(), **changes}))
        assert said_by(stranger, loop) == [{"say": "refuse", "why": reason}]
    assert LOCAL in notices(hub)
    arrives(loop, hub, port)


def test_w18_a_second_process_with_one_rank_is_refused():
    hub, port = make_hub(3)
    loop = Loop(hub)
    first = Dialing(dialer(port, caller(1, 3)))
    loop.run(lambda: not first.is_alive())
    second = Dialing(dialer(port, caller(1, 3)), limit_s=1.0)
    loop.run(lambda: not second.is_alive())
    for thread in (first, second):
        thread.join()
    assert second.spoke is None
    assert (
        f"claims to be task 1, which is here already (process {os.getpid()} on host1)"
        in second.dialer.seen[LOCAL, port]
    )
    loop.add(first.spoke)
    loop.close()


def test_one_process_may_come_twice():
    """Its first connection broke on the way, which only it knows."""
    hub, port = make_hub(3)
    loop = Loop(hub)
    who = caller(1, 3)
    spokes = []
    for _ in range(2):
        thread = Dialing(dialer(port, who))
        loop.run(lambda thread=thread: not thread.is_alive())
        thread.join()
        spokes.append(thread.spoke)
    loop.add(spokes[1])
    spokes[1].send(0, {"n": 2})
    loop.run(lambda: loop.of(hub))
    assert loop.of(hub) == [Message(1, {"n": 2})]
    assert hub.missing() == [2]
    spokes[0].close()
    loop.close()


def test_other_protocols_and_scanners_are_turned_away(door):
    loop, hub, port = door
    connect(port).close()  # a port scanner
    for greeting in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-x\r\n",
    ):
        with connect(port) as stranger:
            stranger.sendall(greeting)
            said_by(stranger, loop)
    loop.run(lambda: not hub._guests)
    assert "not a frame of slaunch's channel" in notices(hub)
    arrives(loop, hub, port)


def test_a_giant_frame_is_refused_before_it_is_read(door):
    loop, hub, port = door
    with connect(port) as stranger:
        stranger.sendall(wire.HEADER.pack(0xFFFFFFFF, wire.VERSION, wire.LARGE))
        said_by(stranger, loop)
    assert "a frame of 4294967295 bytes, where at most 8192 are allowed" in notices(hub)


def test_slow_and_silent_strangers_are_turned_away_in_time_and_nobody_waits(door, monkeypatch):
    loop, hub, port = door
    monkeypatch.setattr("slaunch.channel.door.TIME_S", 0.5)
    silent, slow = connect(port), connect(port)
    loop.run(lambda: len(hub._guests) == 2)
    for byte in frame(HELLO.body())[:5]:
        slow.sendall(bytes([byte]))
    arrives(loop, hub, port)  # beside them
    loop.run(lambda: not hub._guests)
    assert notices(hub).count("did not prove itself in time") == 2
    for stranger in (silent, slow):
        assert drain(stranger)  # the refusal, then the end
        stranger.close()


def test_a_flood_of_strangers_does_not_keep_the_right_one_out(door):
    loop, hub, port = door
    flood = [connect(port) for _ in range(200)]
    loop.run(lambda: len(hub._guests) >= 60)
    arrives(loop, hub, port)
    assert len(hub._guests) <= 2 * 2 + 64
    assert "while many others came" in notices(hub)
    for stranger in flood:
        stranger.close()


def test_a_half_open_peer_is_noticed_and_blocks_nobody():
    loop, hub, spokes = make_star(3)
    spokes[0]._link.sock.shutdown(socket.SHUT_WR)
    loop.run(lambda: loop.of(hub))
    assert loop.of(hub) == [Lost(1, "it closed the connection")]
    spokes[1].send(0, {"n": 1})
    loop.run(lambda: len(loop.of(hub)) == 2)
    loop.close()


def test_garbage_after_the_handshake_loses_that_peer_only():
    loop, hub, spokes = make_star(3)
    spokes[0]._link.sock.send(b"\0\0\0\x40\x01\0" + bytes(64))
    loop.run(lambda: loop.of(hub))
    assert loop.of(hub) == [Lost(1, "a frame with a wrong signature")]
    spokes[1].send(0, {"n": 1})
    loop.run(lambda: len(loop.of(hub)) == 2)
    loop.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.binary(max_size=300) | st.just(frame(HELLO.body())) | st.just(frame({"say": "proof", "proof": "0"})),
        max_size=4,
    )
)
def test_fuzzed_strangers_change_nothing(door, pieces):
    loop, hub, port = door
    with connect(port) as stranger:
        stranger.sendall(b"".join(pieces))
        stranger.shutdown(socket.SHUT_WR)
        loop.run(lambda: not hub._guests and not _pending(port))
    assert hub.missing() == [1]
    assert loop.of(hub) == []


def _pending(port: int) -> bool:
    """Whether a connection waits to be accepted."""
    with open("/proc/net/tcp") as table:
        listening = [line.split() for line in table if f":{port:04X} 00000000:0000 0A" in line]
    return any(int(row[4].split(":")[1], 16) for row in listening)


def test_the_right_peer_gets_in_after_all_that(door):
    arrives(*door)


def test_the_frames_after_the_handshake_need_the_key(door):
    """A man in the middle who lets the handshake pass cannot add a word."""
    loop, hub, port = door
    with connect(port) as right:
        right.sendall(frame(HELLO.body()))
        loop.run(lambda: any(guest.hello for guest in hub._guests))
        right.settimeout(5)
        challenge = next(Opener().feed(right.recv(65536))).body
        said = transcript(HELLO, challenge["nonce"])
        right.sendall(frame({"say": "proof", "proof": proof(SECRET, "spoke", said)}))
        loop.run(lambda: not hub.missing())
        right.sendall(frame({"genuine": 1}, Sealer(key(SECRET, "spoke", said))))
        loop.run(lambda: loop.of(hub))
        right.sendall(frame({"forged": 1}, Sealer(b"?" * 32)))
        loop.run(lambda: len(loop.of(hub)) == 2)
    assert loop.of(hub) == [Message(1, {"genuine": 1}), Lost(1, "a frame with a wrong signature")]
