"""The store by which Horovod's workers meet over Gloo: values by scope and key, over HTTP.

Source: horovod 0.28.1, `common/gloo/http_store.cc` (the client: one request for each connection, tried three times, half a second
apart; it looks for a missing key every 10 ms), `common/gloo/gloo_context.cc` (scopes "global", "local_<host>", "cross_<local
rank>", in each the ranks as keys) and `runner/http/http_server.py` (what horovodrun serves):

    PUT /scope/key      keep the body                           200
    GET /scope/key      the value                               200, or 404 as long as there is none
    DELETE /scope/key   this rank has met all others            200

When all ranks of a scope have said so, it is empty again, so that `hvd.init()` after `hvd.shutdown()` finds no old addresses.

The protocol knows no secret: whoever reaches the address can read and write. Hence it listens on the one address that the job's
nodes use, keeps no more than a job of this size needs, and lets nobody take his time.

Runs as a program of its own, without the rest of slaunch: `gloo_store.py address port world`. Whoever started it ends it.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time

HEAD_BYTES = 8 << 10
"""Longest request without its body."""
PATIENCE_S = 3.0
"""Time for one request, as horovodrun's server gives it."""
VISITS = 500
"""Connections at once; further ones wait in the kernel's queue. The usual limit of descriptors is 1024."""
BACKLOG = 4096
CHUNK_BYTES = 64 << 10
PAIR_BYTES = 512
"""Room for the address that a rank tells each other one; Gloo needs less than 200."""
ITEM_BYTES = 256
"""What keeping one value costs beside its bytes."""
WORLDS = 8
"""How many times the world may meet without tidying up: global, local, cross, process sets."""

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 413: "Content Too Large", 507: "Full"}


class Store:
    """Values by scope and key, within bounds.

    Attributes:
        value_limit: bytes of the longest value.

    Args:
        world: number of workers.
    """

    def __init__(self, world: int) -> None:
        self.value_limit = CHUNK_BYTES + PAIR_BYTES * world
        self._room = WORLDS * world * self.value_limit
        self._scopes: dict[str, dict[str, bytes]] = {}
        self._done: dict[str, set[str]] = {}

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the response."""
        root, *names = path.split("/")
        if root or len(names) != 2 or not all(names):
            return 400, b""
        scope, key = names
        if method == "GET":
            value = self._scopes.get(scope, {}).get(key)
            return (404, b"") if value is None else (200, value)
        if method == "PUT":
            return self._put(scope, key, body), b""
        if method == "DELETE":
            self._finish(scope, key)
            return 200, b""
        return 405, b""

    def _put(self, scope: str, key: str, value: bytes) -> int:
        old = self._scopes.get(scope, {}).get(key)
        room = self._room - cost(scope, key, value) + (0 if old is None else cost(scope, key, old))
        if room < 0:
            return 507
        self._room = room
        self._scopes.setdefault(scope, {})[key] = value
        return 200

    def _finish(self, scope: str, key: str) -> None:
        """A rank has met all others of the scope, who have told their addresses by then."""
        values = self._scopes.get(scope, {})
        if key not in values:
            return
        done = self._done.setdefault(scope, set())
        done.add(key)
        if done >= {name for name in values if name.isdecimal()}:
            self._room += sum(cost(scope, name, value) for name, value in values.items())
            del self._scopes[scope], self._done[scope]


def cost(scope: str, key: str, value: bytes) -> int:
    """Bytes that a value takes."""
    return ITEM_BYTES + len(scope) + len(key) + len(value)


class Visit:
    """One connection: a request on its way in, then a response on its way out.

    Attributes:
        link: its socket.
        late_at: when it has to be over, monotonic seconds.
        reply: what is still to be sent; b"" while the request is incomplete.
    """

    def __init__(self, link: socket.socket, late_at: float) -> None:
        self.link = link
        self.late_at = late_at
        self.reply = b""
        self._data = bytearray()
        self._request: tuple[str, str] = ("", "")
        self._length = -1

    def take(self, data: bytes, store: Store) -> None:
        """More of the request; with its end, `reply` is there."""
        self._data += data
        if self._length < 0:
            self._take_head(store)
        if not self.reply and 0 <= self._length <= len(self._data):
            self.reply = response(*store.answer(*self._request, bytes(self._data[: self._length])))

    def _take_head(self, store: Store) -> None:
        end = self._data.find(b"\r\n\r\n", 0, HEAD_BYTES)
        if end < 0:
            self.reply = response(400) if len(self._data) >= HEAD_BYTES else b""
            return
        first, *fields = bytes(self._data[:end]).decode("latin-1").split("\r\n")
        del self._data[: end + 4]
        words, length = first.split(" "), body_length(fields)
        if len(words) != 3 or length < 0:
            self.reply = response(400)
        elif length > store.value_limit:
            self.reply = response(413)
        else:
            self._request, self._length = (words[0], words[1]), length


def body_length(fields: list[str]) -> int:
    """What Content-Length says; 0 without one, -1 if it makes no sense."""
    for field in fields:
        name, _, value = field.partition(":")
        if name.strip().lower() == "content-length":
            value = value.strip()
            return int(value) if value.isdecimal() and len(value) < 16 else -1
    return 0


def response(status: int, body: bytes = b"") -> bytes:
    """A whole response, after which the connection is closed."""
    return f"HTTP/1.0 {status} {REASONS[status]}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


class Server:
    """Answers many connections at once, in one thread.

    Args:
        listener: a listening socket.
        store: what it serves.
    """

    def __init__(self, listener: socket.socket, store: Store) -> None:
        self._listener = listener
        self._store = store
        self._selector = selectors.DefaultSelector()
        self._visits: dict[Visit, None] = {}  # in order of their deadlines
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the process is ended."""
        while True:
            self.turn(PATIENCE_S if self._visits else None)

    def turn(self, patience_s: float | None) -> None:
        """Do what is due, waiting for it no longer than that."""
        for key, _ in self._selector.select(patience_s):
            if key.data is None:
                self._welcome()
            else:
                self._serve(key.data)
        now = time.monotonic()
        while self._visits and (oldest := next(iter(self._visits))).late_at <= now:
            self._end(oldest)

    def _welcome(self) -> None:
        try:
            link, _ = self._listener.accept()
        except OSError:  # gone again, or no descriptor left: the client tries once more
            return
        link.setblocking(False)
        visit = Visit(link, time.monotonic() + PATIENCE_S)
        self._visits[visit] = None
        self._selector.register(link, selectors.EVENT_READ, visit)
        if len(self._visits) == VISITS:
            self._selector.unregister(self._listener)
        self._serve(visit)  # a client speaks first: most requests are here already

    def _serve(self, visit: Visit) -> None:
        try:
            if not visit.reply:
                data = visit.link.recv(CHUNK_BYTES)
                if not data:
                    return self._end(visit)
                visit.take(data, self._store)
            if visit.reply:
                visit.reply = visit.reply[visit.link.send(visit.reply) :]
                if not visit.reply:
                    return self._end(visit)
                self._selector.modify(visit.link, selectors.EVENT_WRITE, visit)
        except BlockingIOError:
            if visit.reply:
                self._selector.modify(visit.link, selectors.EVENT_WRITE, visit)
        except OSError:
            self._end(visit)

    def _end(self, visit: Visit) -> None:
        del self._visits[visit]
        self._selector.unregister(visit.link)
        visit.link.close()
        if len(self._visits) == VISITS - 1:
            self._selector.register(self._listener, selectors.EVENT_READ)

    def close(self) -> None:
        """End all connections."""
        for visit in tuple(self._visits):
            self._end(visit)
        self._selector.close()
        self._listener.close()


def main(address: str, port: str, world: str) -> int:
    """Serve; returns only if that is impossible."""
    try:
        listener = socket.create_server((address, int(port)), backlog=BACKLOG)
    except OSError as error:
        print(f"slaunch: Horovod's workers cannot meet at {address}:{port}: {error.strerror}", file=sys.stderr)
        return 1
    Server(listener, Store(int(world))).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
