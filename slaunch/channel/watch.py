"""The sockets of a star, kept in step with the selector of the loop that owns it."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Watch:
    """Sockets to watch, each with what to call when it is ready. Works without a selector until one is attached.

    A selector that its owner has closed is let go of; the next one that is attached gets all sockets.
    """

    def __init__(self) -> None:
        self._selector: selectors.BaseSelector | None = None
        self._entries: dict[socket.socket, tuple[int, Callable[[], None]]] = {}

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Move all sockets to another selector."""
        for sock in self._entries:
            self._forget(sock)
        self._selector = selector
        for sock in self._entries:
            self._put(sock)

    def add(self, sock: socket.socket, call: Callable[[], None]) -> None:
        """Watch a socket for input."""
        self._entries[sock] = (READ, call)
        self._put(sock)

    def writing(self, sock: socket.socket, wanted: bool) -> None:
        """Whether to watch it for room to write as well."""
        entry = self._entries.get(sock)
        events = READ | WRITE if wanted else READ
        if entry is None or entry[0] == events:
            return
        self._entries[sock] = (events, entry[1])
        self._forget(sock)
        self._put(sock)

    def remove(self, sock: socket.socket) -> None:
        """Watch it no longer; call it before the socket is closed."""
        if self._entries.pop(sock, None):
            self._forget(sock)

    def _put(self, sock: socket.socket) -> None:
        if self._selector:
            self._selector.register(sock, *self._entries[sock])

    def _forget(self, sock: socket.socket) -> None:
        if self._selector is None:
            return
        try:
            self._selector.unregister(sock)
        except (KeyError, ValueError, RuntimeError):
            self._selector = None
