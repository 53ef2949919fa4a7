"""Foreign servers, and targets that do not answer, where a spoke looks for its hub."""

import socket
import threading
import time

import pytest
from support.stars import LOCAL, SECRET, Dialing, caller, dialer, frame, make_hub


def foreign_server(answer: bytes):
    """Some other service: it answers each connection with `answer`, and keeps it open until it is closed."""
    server = socket.create_server((LOCAL, 0))
    server.settimeout(0.1)
    stop = threading.Event()

    def serve():
        held = []
        while not stop.is_set():
            try:
                held.append(server.accept()[0])
                held[-1].sendall(answer)
            except (TimeoutError, OSError):
                continue
        for each in held:
            each.close()

    thread = threading.Thread(target=serve)
    thread.start()

    def end():
        stop.set()
        thread.join()
        server.close()

    return server.getsockname()[1], end


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame({"say": "challenge", "identity": "x", "nonce": "", "by": "", "hint": "", "proof": ""}),
    ],
)
def test_p31_a_foreign_server_at_the_first_port_is_passed_by(door, answer):
    loop, _, port = door
    foreign, end = foreign_server(answer)
    thread = Dialing(dialer(port, caller(), SECRET, foreign))
    loop.run(lambda: not thread.is_alive())
    thread.join()
    end()
    assert thread.spoke, thread.dialer.seen
    loop.add(thread.spoke)


def test_p31_another_users_hub_of_the_same_name_is_not_believed(door):
    """Same job number on another cluster, or a malicious user: it speaks the protocol, but cannot prove itself."""
    loop, _, port = door
    other, other_port = make_hub(secret=b"x" * 32)
    loop.add(other)
    thread = Dialing(dialer(port, caller(), SECRET, other_port))
    loop.run(lambda: not thread.is_alive())
    thread.join()
    assert thread.spoke
    assert "does not know the job's secret" in thread.dialer.seen[LOCAL, other_port]
    loop.add(thread.spoke)


def test_nothing_of_use_is_said_to_a_foreign_server():
    """What a spoke says before the other side has proved itself holds neither the secret nor a proof."""
    hello = caller().hello().body()
    assert set(hello) == {"say", "identity", "rank", "size", "host", "pid", "instance", "nonce"}
    assert SECRET.hex() not in str(hello)


def test_w19_refused_connections_are_retried_with_growing_pauses():
    with socket.create_server((LOCAL, 0)) as server:
        closed = server.getsockname()[1]
    looks = []
    work = dialer(closed)
    work.late = lambda seen: looks.append(dict(seen))
    start = time.process_time()
    assert work.dial(time.monotonic() + 2.5) is None
    assert work.seen == {(LOCAL, closed): "connection refused"}
    assert looks and looks[0] == work.seen
    assert time.process_time() - start < 1.0  # it did not spin


def test_a_target_that_never_answers_delays_the_next_one_only_shortly(door):
    loop, _, port = door
    with socket.create_server((LOCAL, 0), backlog=1) as deaf:
        thread = Dialing(dialer(port, caller(), SECRET, deaf.getsockname()[1]))
        loop.run(lambda: not thread.is_alive())
        thread.join()
    assert thread.spoke
    loop.add(thread.spoke)
