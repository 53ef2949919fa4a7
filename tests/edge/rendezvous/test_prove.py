"""Connections that prove a network, over real sockets."""

import contextlib
import socket

from slaunch.channel.listen import close_all
from slaunch.rendezvous.prove import Call, open_listeners, try_all


def test_p19_what_answers_and_what_does_not():
    with contextlib.ExitStack() as stack:
        good = open_listeners(["127.0.0.1", "127.0.0.2"])
        stack.callback(close_all, good)
        port = good[0].getsockname()[1]
        closed = stack.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        stack.enter_context(socket.create_connection(full.getsockname()))
        targets = [("127.0.0.1", port), ("127.0.0.2", port), closed.getsockname(), full.getsockname()]
        failed = try_all([Call(0, 1, target) for target in targets])
    assert failed == {2: "connection refused", 3: "does not answer"}


def test_nothing_to_try():
    assert try_all([]) == {}
