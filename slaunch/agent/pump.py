"""The process that writes a node's log files where workers cannot do it themselves: with timestamps, with rotation, or so that no
worker waits for the disk. It reads the workers' pipes.

Two threads: one reads, one writes, so that a disk that hangs holds nobody up. Between them are at most `HELD_BYTES`. While the
disk works but is slower than the workers, they wait, as they would for their own files. When it takes nothing for `STUCK_S` (it
is full, or its server is gone), what does not fit is left out and counted, and a line in the file says so once the disk works.

It ends when its starter says so or is gone, and all that was said before has been written, or cannot be.
"""

from __future__ import annotations

import json
import os
import select
import socket
import threading
import time
from collections import deque
from math import inf

from slaunch.agent.logfile import LogFile, Stamper
from slaunch.agent.outlets import Form
from slaunch.frozen import dataclass

READ_BYTES = 1 << 20
BATCH_S = 0.005
"""Wait after a read that found little: of a worker that prints line by line thousands are read at once."""
BATCH_BYTES = 1 << 16
HELD_BYTES = 64 << 20
STUCK_S = 1.0
RETRY_S = 0.2
"""How often a disk that is full is tried again."""
DISK_S = 3.0
"""How long the disk may take in the end for what is held: the agent waits meanwhile, and other agents miss it after 6 s."""
SYNC_S = 0.3
"""How long it may take for what is held when a worker has failed, whose last lines are wanted."""
ORPHAN_S = 10.0
"""How long workers may go on printing when the agent has been killed."""
MESSAGE_BYTES = 1 << 16
END, SYNC, SYNCED, LATE = b"end", b"sync", b"synced", b"late"


@dataclass
class Inlet:
    """One worker's pipe, and the file that it goes to."""

    pipe: int
    file: LogFile
    stamper: Stamper | None
    left_out: int = 0
    lines_left_out: int = 0


class Disk:
    """The writing thread, and what waits for it.

    Args:
        tell: takes a line for the user.

    Attributes:
        held: bytes that wait.
        moved_at: when the disk last took something, or had nothing to do; monotonic.
    """

    def __init__(self, tell: socket.socket) -> None:
        self.held = 0
        self.moved_at = time.monotonic()
        self._tell = tell
        self._queue: deque[tuple[Inlet, bytes]] = deque()
        self._wake = threading.Condition()
        self._told: set[str] = set()
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, inlet: Inlet, data: bytes) -> None:
        """Have it written; or leave it out, if too much waits already and the disk takes nothing."""
        if self.held >= HELD_BYTES and self.is_stuck():
            inlet.left_out += len(data)
            inlet.lines_left_out += data.count(b"\n")
        else:
            self._queue_up(inlet, self._gap(inlet) + data)

    def end(self, inlet: Inlet) -> None:
        """Nothing more comes of it."""
        if inlet.left_out:
            self._queue_up(inlet, self._gap(inlet))
        self._queue_up(inlet, b"")

    def is_stuck(self) -> bool:
        """Whether it has taken nothing for long."""
        return bool(self._queue) and time.monotonic() > self.moved_at + STUCK_S

    def is_full(self) -> bool:
        """Whether workers shall wait for the disk, which works."""
        return self.held >= HELD_BYTES and not self.is_stuck()

    def finish(self, patience_s: float) -> int:
        """Wait until everything is written; how many bytes are not."""
        give_up = time.monotonic() + patience_s
        with self._wake:
            while self.held and time.monotonic() < give_up:
                self._wake.wait(give_up - time.monotonic())
            return self.held

    def _queue_up(self, inlet: Inlet, data: bytes) -> None:
        with self._wake:
            if not self._queue:
                self.moved_at = time.monotonic()
            self._queue.append((inlet, data))
            self.held += len(data)
            self._wake.notify_all()

    def _gap(self, inlet: Inlet) -> bytes:
        """The line that stands in place of what was left out."""
        if not inlet.left_out:
            return b""
        lost = f"{inlet.lines_left_out} lines ({inlet.left_out} bytes)"
        inlet.left_out = inlet.lines_left_out = 0
        return f"\n---- slaunch: {lost} are missing here, the disk did not take them ----\n".encode()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue:
                    self._wake.wait()
                inlet, data = self._queue[0]
            if data:
                self._write(inlet, data)
            else:
                inlet.file.close()
            with self._wake:
                self._queue.popleft()
                self.held -= len(data)
                self.moved_at = time.monotonic()
                self._wake.notify_all()

    def _write(self, inlet: Inlet, data: bytes) -> None:
        while True:
            try:
                inlet.file.write(data)
                return
            except OSError as error:
                self._complain(f"{inlet.file.path}: {error.strerror}")
                data = b""  # the file has it already, and begins with it
                time.sleep(RETRY_S)

    def _complain(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            say(self._tell, f"cannot write a worker's output, trying on: {text}")


def say(channel: socket.socket, text: str) -> None:
    """Tell the agent, unless it is gone or does not listen."""
    try:
        channel.send(text.encode()[:MESSAGE_BYTES], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        pass


class Pump:
    """The reading thread: the process's main one."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._disk = Disk(channel)
        self._inlets: dict[int, Inlet] = {}
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._end_at = inf

    def run(self) -> int:
        """Read and write until the end; how many bytes could not be written."""
        while time.monotonic() < self._end_at:
            wait_s = min(self._end_at - time.monotonic(), 1.0) if self._end_at < inf else None
            ready = {number for number, _ in self._poll.poll(None if wait_s is None else int(wait_s * 1000))}
            if self._channel.fileno() in ready and not self._listen():
                break
            moved = sum(self._read(number) for number in ready if number in self._inlets)
            if self._end_at < inf and not self._inlets:
                break
            if moved < BATCH_BYTES or self._disk.is_full():
                time.sleep(BATCH_S)
        self._drain()
        for inlet in self._inlets.values():
            self._disk.end(inlet)
        return self._disk.finish(DISK_S)

    def _listen(self) -> bool:
        """Take the agent's word; False if that is the last one. An agent that is gone leaves workers that die."""
        message, files, _, _ = socket.recv_fds(self._channel, MESSAGE_BYTES, 2)
        if message == END:
            return False
        if message == SYNC:
            self._drain()
            say(self._channel, (LATE if self._disk.finish(SYNC_S) else SYNCED).decode())
        elif not message:
            self._poll.unregister(self._channel)
            self._end_at = time.monotonic() + ORPHAN_S
        else:
            self._open(json.loads(message), *files)
        return True

    def _open(self, order: dict[str, object], pipe: int, file: int) -> None:
        form = Form(bool(order["timestamps"]), int(str(order["most"])), int(str(order["keep"])))
        os.set_blocking(pipe, False)
        inlet = Inlet(pipe, LogFile(str(order["path"]), file, form), Stamper() if form.timestamps else None)
        self._inlets[pipe] = inlet
        self._poll.register(pipe, select.POLLIN)

    def _read(self, number: int) -> int:
        """Take what is in a pipe; how many bytes."""
        inlet = self._inlets[number]
        if self._disk.is_full():
            return 0
        try:
            data = os.read(inlet.pipe, READ_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._poll.unregister(number)
            del self._inlets[number]
            os.close(inlet.pipe)
            self._disk.end(inlet)
            return 0
        self._disk.put(inlet, inlet.stamper.stamp(data, time.time()) if inlet.stamper else data)
        return len(data)

    def _drain(self) -> None:
        """Take what is in the pipes now."""
        for number in list(self._inlets):
            while number in self._inlets and self._read(number):
                pass
