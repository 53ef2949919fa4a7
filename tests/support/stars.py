"""Real hubs and spokes over real sockets, driven by one loop."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping

from slaunch.channel.dial import Caller, Dialer
from slaunch.channel.door import Door
from slaunch.channel.hub import Hub
from slaunch.channel.listen import listen
from slaunch.channel.spoke import Spoke
from slaunch.channel.star import Item, Lost, Message, Pulse
from slaunch.channel.succession import Dynasty
from slaunch.channel.wire import Sealer, pack

SECRET = bytes(range(32))
IDENTITY = "cluster/42/0/0/0"
LOCAL = "127.0.0.1"


class Loop:
    """One selector for several stars; keeps what came in, by star."""

    def __init__(self, *stars: Hub | Spoke | Dynasty) -> None:
        self.selector = selectors.DefaultSelector()
        self.stars: list[Hub | Spoke | Dynasty] = []
        self.got: dict[int, list[Item]] = {}
        for star in stars:
            self.add(star)

    def add(self, star: Hub | Spoke | Dynasty) -> None:
        star.register(self.selector)
        self.stars.append(star)
        self.got[id(star)] = []

    def of(self, star: Hub | Spoke | Dynasty) -> list[Item]:
        return self.got[id(star)]

    def run(self, until: Callable[[], object], limit_s: float = 20.0, tick: bool = True) -> None:
        """Drive them until something is true; fails after the limit."""
        end = time.monotonic() + limit_s
        while not until():
            assert time.monotonic() < end, f"not within {limit_s} s; got {[self.of(star)[-3:] for star in self.stars]}"
            for key, _ in self.selector.select(0.02):
                key.data()
            for star in self.stars:
                if tick:
                    star.tick(time.monotonic())
                self.got[id(star)] += star.take()

    def close(self) -> None:
        for star in self.stars:
            star.close()
        self.selector.close()


def make_hub(
    size: int = 2, identity: str = IDENTITY, secret: bytes = SECRET, pulse: Pulse | None = None
) -> tuple[Hub, int]:
    """A hub at a free port of the loopback interface, and that port."""
    listeners = listen([LOCAL], 0)
    return Hub(listeners, 0, size, Door(identity, secret), pulse=pulse), int(listeners[0].getsockname()[1])


def caller(rank: int = 1, size: int = 2, identity: str = IDENTITY, instance: str = "") -> Caller:
    return Caller(identity, rank, size, f"host{rank}", os.getpid(), instance or os.urandom(8).hex())


def dialer(port: int, who: Caller | None = None, secret: bytes = SECRET, *before: int) -> Dialer:
    """A dialer that tries the ports `before` and then `port`."""
    return Dialer([(LOCAL, each) for each in (*before, port)], who or caller(), lambda by, hint: secret)


class Dialing(threading.Thread):
    """A dialer at work; `spoke` is there once it has found the hub."""

    def __init__(self, dialer: Dialer, limit_s: float = 20.0, pulse: Pulse | None = None) -> None:
        super().__init__()
        self.dialer = dialer
        self.pulse = pulse
        self.limit_s = limit_s
        self.spoke: Spoke | None = None
        self.start()

    def run(self) -> None:
        link = self.dialer.dial(time.monotonic() + self.limit_s)
        if link:
            who = self.dialer.caller
            self.spoke = Spoke(link, who.rank, who.size, self.pulse)


def make_star(size: int, pulse: Pulse | None = None) -> tuple[Loop, Hub, list[Spoke]]:
    """A complete star and the loop that drives it."""
    hub, port = make_hub(size, pulse=pulse)
    loop = Loop(hub)
    threads = [Dialing(dialer(port, caller(rank, size)), pulse=pulse) for rank in range(1, size)]
    loop.run(lambda: not any(thread.is_alive() for thread in threads))
    spokes = []
    for thread in threads:
        thread.join()
        assert thread.spoke, thread.dialer.seen
        loop.add(thread.spoke)
        spokes.append(thread.spoke)
    assert hub.missing() == []
    hub.close_door()
    return loop, hub, spokes


def connect(port: int) -> socket.socket:
    """A plain connection to the hub, for strangers."""
    sock = socket.create_connection((LOCAL, port), timeout=10)
    return sock


def drain(sock: socket.socket) -> bytes:
    """All that the other side says until it closes the connection."""
    said = b""
    try:
        while data := sock.recv(65536):
            said += data
    except ConnectionResetError:
        pass
    return said


def wait_for_one(star: Hub | Spoke, limit_s: float = 20.0) -> Message | Lost | None:
    """The first that comes in; None after the limit."""
    end = time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        star.register(selector)
        while time.monotonic() < end:
            for key, _ in selector.select(0.1):
                key.data()
            taken = star.take()
            if taken:
                return taken[0]
    return None


def frame(body: Mapping[str, object], sealer: Sealer | None = None) -> bytes:
    """A frame as it is on the wire, for strangers; signed only by a sealer with a key."""
    packed = pack(body)
    return (sealer or Sealer()).seal(packed) + packed.body
