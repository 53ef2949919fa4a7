"""Answers Prometheus: the smallest HTTP server that does, in the agent's loop, never waiting for a client."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_CLIENTS = 8
MOST_BYTES = 8192


class Exporter:
    """Serves text at `/metrics` and everywhere else.

    Args:
        port: where; 0 = a free port.
        text: makes the text.
        selector: of the agent's loop.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, port: int, text: Callable[[], str], selector: selectors.BaseSelector) -> None:
        self._text = text
        self._selector = selector
        self._clients: dict[int, Client] = {}
        family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
        self._server = socket.create_server(("", port), family=family, dualstack_ipv6=family == socket.AF_INET6)
        self._server.setblocking(False)
        self.port = int(self._server.getsockname()[1])
        selector.register(self._server, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Serve no more."""
        for client in list(self._clients.values()):
            client.close()
        forget(self._selector, self._server)
        self._server.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # it has gone away, or there is no descriptor left
            return
        if len(self._clients) >= MOST_CLIENTS:  # the oldest one sleeps
            next(iter(self._clients.values())).close()
        Client(connection, self._text, self._selector, self._clients)


class Client:
    """One connection: a request, an answer, the end. It is in `others` as long as it lasts."""

    def __init__(
        self, connection: socket.socket, text: Callable[[], str], selector: selectors.BaseSelector, others: dict[int, Client]
    ) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._text = text
        self._selector = selector
        self._others = others
        self._number = connection.fileno()
        self._request = b""
        self._answer = b""
        others[self._number] = self
        selector.register(connection, selectors.EVENT_READ, self._read)

    def close(self) -> None:
        """It is done with."""
        forget(self._selector, self._connection)
        del self._others[self._number]
        self._connection.close()

    def _read(self) -> None:
        data = self._try(lambda: self._connection.recv(4096))
        if data is None:
            return
        self._request += data
        if not data or len(self._request) > MOST_BYTES:
            self.close()
        elif b"\r\n\r\n" in self._request or b"\n\n" in self._request:
            self._answer = response(self._request, self._text)
            self._selector.modify(self._connection, selectors.EVENT_WRITE, self._write)

    def _write(self) -> None:
        sent = self._try(lambda: self._connection.send(self._answer))
        if sent is None:
            return
        self._answer = self._answer[sent:]
        if not self._answer:
            self.close()

    def _try(self, call: Callable[[], Any]) -> Any:
        """What a call gives; None if there is nothing yet, or the client has gone, which ends it."""
        try:
            return call()
        except BlockingIOError:
            return None
        except OSError:
            self.close()
            return None


def forget(selector: selectors.BaseSelector, connection: socket.socket) -> None:
    """Wait no longer for a connection; the loop may be over already."""
    try:
        selector.unregister(connection)
    except (KeyError, RuntimeError):
        pass


def response(request: bytes, text: Callable[[], str]) -> bytes:
    """The answer to a request."""
    method = request.partition(b" ")[0]
    if method not in (b"GET", b"HEAD"):
        return b"HTTP/1.0 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    body = text().encode()
    head = f"HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + (body if method == b"GET" else b"")
