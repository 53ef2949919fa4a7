"""How long a meeting of many agents takes: a real hub, and simulated agents that use real sockets and the real protocol.

    python tests/bench/rendezvous/bench_star.py [AGENTS] [PROCESSES]

The hub is one process with the product's own code. The agents are spread over a few processes, each of which holds thousands of
real connections in one loop: real handshakes, real facts, real answers to heartbeats. What each agent's own machine would do with
what it receives (check the signature, decompress, decode: all machines at once, in the time that one takes) is done only by the
first agent of each process; the others count the bytes and drop them in the kernel. All agents come at once, the worst case.

Prints one line of JSON: seconds until all have joined, have all facts, and have agreed on a digest; the hub's CPU seconds; bytes.
"""

from __future__ import annotations

import json
import os
import random
import resource
import selectors
import socket
import sys
import time
import traceback
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from support.facts import facts, gpu

from slaunch.channel.dial import Attempt, Caller
from slaunch.channel.door import Door
from slaunch.channel.hub import Hub
from slaunch.channel.listen import listen
from slaunch.channel.wire import HEADER, PULSE, pack
from slaunch.frozen import replace
from slaunch.node.values import NodeFacts
from slaunch.rendezvous.check import check_cards, read_cards
from slaunch.rendezvous.codec import Card, encode_card
from slaunch.rendezvous.gather import StarGatherer, listen_to, split

SECRET, IDENTITY, ADDRESS = b"s" * 32, "bench/1/0/0/0", "127.0.0.1"
LIMIT_S = 300.0
BURST = 100
DIGEST = b"d" * 64


def real_facts(rank: int) -> NodeFacts:
    """Facts with as much chance in them as real ones: what does not compress."""
    chance = random.Random(rank)
    devices = tuple(replace(gpu(i), uuid=f"GPU-{uuid.UUID(int=chance.getrandbits(128))}") for i in range(8))
    ports = tuple(sorted(chance.sample(range(15_000, 32_000), 12)))
    pid, machine = chance.randrange(1000, 100_000), f"{chance.getrandbits(128):032x}"
    return replace(facts(rank), devices=devices, machine=machine, pid=pid, ports=ports, time_s=1.8e9 + chance.randrange(9))


def card(rank: int, size: int) -> bytes:
    """A task's words."""
    return encode_card(Card(rank, size, "nodes", b"", real_facts(rank)))


class Agent:
    """One simulated agent: joins, sends its facts, takes everybody's, agrees.

    Args:
        whole: check and decode what comes, as a real one does.
    """

    def __init__(self, rank: int, size: int, words: bytes, port: int, selector: selectors.BaseSelector, whole: bool) -> None:
        self.rank, self.size, self.words, self.whole, self.selector = rank, size, words, whole, selector
        caller = Caller(IDENTITY, rank, size, f"node{rank:05}", os.getpid(), os.urandom(8).hex())
        self.attempt = Attempt((ADDRESS, port), caller, time.monotonic() + LIMIT_S)
        self.attempt.deadline = time.monotonic() + LIMIT_S
        self.link = self.attempt.link
        self.rounds = 0
        self.head, self.rest, self.flags = b"", 0, 0
        selector.register(self.link.sock, selectors.EVENT_WRITE, self.connected)

    def connected(self) -> None:
        self.attempt.connected()
        self.selector.modify(self.link.sock, selectors.EVENT_READ, self.join)

    def join(self) -> None:
        if any(self.attempt.hear(frame, lambda by, hint: SECRET) for frame in self.link.read()):
            self.selector.modify(self.link.sock, selectors.EVENT_READ, self.read_whole if self.whole else self.drop)
            self.link.send(pack({"gather": 1}, self.words))

    def read_whole(self) -> None:
        for frame in self.link.read():
            if frame.blob and self.rounds == 0:
                cards = read_cards(split(frame.blob))
                check_cards(cards)
                assert len(cards) == self.size and cards[self.rank].facts.ports == real_facts(self.rank).ports
            self.answer(frame.flags)

    def drop(self) -> None:
        while True:
            try:
                if self.rest:
                    self.rest -= len(self.link.sock.recv(min(self.rest, 1 << 20), socket.MSG_TRUNC))
                else:
                    self.head += self.link.sock.recv(HEADER.size - len(self.head))
                    if len(self.head) == HEADER.size:
                        self.rest, _, self.flags = HEADER.unpack(self.head)
                        self.head = b""
                        continue
            except BlockingIOError:
                return
            if not self.rest and not self.head:
                self.answer(self.flags)

    def answer(self, flags: int) -> None:
        if flags & PULSE:
            self.link.send(pack({"clock": time.time()}, flags=PULSE))
            return
        self.rounds += 1
        if self.rounds == 1:
            self.link.send(pack({"gather": 2}, DIGEST))


def agents(ranks: range, size: int, port: int, ready: int, go: int) -> None:
    """A process full of agents."""
    words = {rank: card(rank, size) for rank in ranks}
    os.close(ready)
    os.read(go, 1)
    with selectors.DefaultSelector() as selector:
        todo, left = list(ranks), []
        while todo or any(agent.rounds < 2 for agent in left):
            for rank in todo[:BURST]:
                left.append(Agent(rank, size, words[rank], port, selector, rank == ranks[0]))
            del todo[:BURST]
            for key, _ in selector.select(0.0 if todo else 1.0):
                key.data()


def spawn(size: int, port: int, processes: int) -> tuple[list[int], int]:
    """Start the processes and wait until they are ready; what is written to the descriptor lets them go."""
    ready, ready_in = os.pipe()
    go_out, go = os.pipe()
    step, pids = -(-(size - 1) // processes), []
    for start in range(1, size, step):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(ready)
                agents(range(start, min(start + step, size)), size, port, ready_in, go_out)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(ready_in)
    os.read(ready, 1)
    return pids, go


def main() -> None:
    size, processes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    listeners = listen([ADDRESS], 0)
    pids, go = spawn(size, listeners[0].getsockname()[1], processes)
    start, cpu = time.monotonic(), time.process_time()
    os.write(go, b"!" * len(pids))
    deadline = start + LIMIT_S
    hub = Hub(listeners, 0, size, Door(IDENTITY, SECRET))
    hub.put_back(list(listen_to(hub, lambda: not hub.complete(), deadline)))
    hub.close_door()
    times = {"joined_s": time.monotonic() - start}
    gatherer = StarGatherer(hub, 0, SECRET, str)
    parts = gatherer.allgather(card(0, size), deadline)
    times["facts_s"] = time.monotonic() - start
    check_cards(read_cards(parts))
    times["checked_s"] = time.monotonic() - start
    assert set(gatherer.allgather(DIGEST, deadline)) == {DIGEST}
    times["agreed_s"] = time.monotonic() - start
    used = time.process_time() - cpu
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(pids)
    gatherer.close()
    rounded = {name: round(value, 3) for name, value in {**times, "hub_cpu_s": used}.items()}
    size_of = {"facts_bytes": sum(map(len, parts)), "hub_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}
    print(json.dumps({"agents": size, "processes": processes, **rounded, **size_of}))


if __name__ == "__main__":
    main()
