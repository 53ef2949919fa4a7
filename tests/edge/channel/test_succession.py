"""A star whose hub goes away: the others gather around the next one, over real sockets."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from support.stars import LOCAL, SECRET, Loop, connect, make_star

from slaunch.channel.listen import listen
from slaunch.channel.star import Headless, Item, Lost, Message, Pulse, Succeeded
from slaunch.channel.succession import HEIRS, PROOF_BEATS, Dynasty, Line

PULSE = Pulse(0.2, 5.0)


class Court:
    """Dynasties of one job; those in `dead` have no listener any more, as if their process were gone."""

    def __init__(self, size: int, pulse: Pulse = PULSE) -> None:
        first, hub, spokes = make_star(size, pulse)
        first.selector.close()
        doors = [listen([LOCAL], 0) for _ in range(size)]
        line = Line("test", SECRET, tuple(((LOCAL, int(door[0].getsockname()[1])),) for door in doors), "here")
        self.all = [Dynasty(star, line, door, pulse) for star, door in zip([hub, *spokes], doors, strict=True)]
        self.loop = Loop(*self.all)

    def kill(self, *indices: int) -> None:
        for index in indices:
            self.all[index].close()
            self.loop.stars.remove(self.all[index])

    def cut(self, index: int) -> None:
        """It hears and says nothing more, but its process lives."""
        self.loop.stars.remove(self.all[index])

    def of(self, index: int) -> Sequence[Item]:
        return self.loop.of(self.all[index])

    def settled(self, *indices: int) -> bool:
        return all(any(isinstance(item, Succeeded | Headless) for item in self.of(index)) for index in indices)

    def reigns(self, index: int) -> list[Succeeded]:
        return [item for item in self.of(index) if isinstance(item, Succeeded)]


@pytest.fixture
def court():
    made: list[Court] = []

    def make(size: int, pulse: Pulse = PULSE) -> Court:
        made.append(Court(size, pulse))
        return made[-1]

    yield make
    for each in made:
        for star in each.all:
            star.close()
        each.loop.close()


def test_all_gather_around_the_next_one_and_talk(court):
    job = court(5)
    job.kill(0)
    job.loop.run(lambda: job.settled(1, 2, 3, 4))
    assert job.of(2)[0] == Lost(0, "it closed the connection", heir=True)
    assert job.reigns(1) == [Succeeded(1, proven=True)]
    assert [job.reigns(index) for index in (2, 3, 4)] == [[Succeeded(1)]] * 3
    assert (job.all[1].is_hub, job.all[3].hub) == (True, 1)
    job.all[3].send(1, {"n": 3})
    job.loop.run(lambda: Message(3, {"n": 3}) in job.of(1))
    job.all[1].broadcast({"stop": True})
    job.loop.run(lambda: all(Message(1, {"stop": True}) in job.of(index) for index in (2, 3, 4)))
    assert not [item for item in job.of(1) if isinstance(item, Lost) and item.index != 0]


def test_the_one_after_the_next_if_that_is_dead_too_and_the_missing_is_named(court):
    job = court(4)
    job.kill(1)
    job.kill(0)
    job.loop.run(lambda: job.settled(2, 3))
    assert job.reigns(2) == [Succeeded(2, proven=True, ended=(1,))]
    job.loop.run(lambda: any(isinstance(item, Lost) and item.index == 1 for item in job.of(2)))
    assert not any(isinstance(item, Lost) and item.index == 3 for item in job.of(2))


def test_hubs_may_follow_each_other_to_the_last(court):
    job = court(4)
    for index in range(3):
        job.kill(index)
        job.loop.run(lambda index=index: all(len(job.reigns(other)) == index + 1 for other in range(index + 1, 4)))
        assert [job.reigns(other)[-1].index for other in range(index + 1, 4)] == [index + 1] * (3 - index)
    assert job.all[3].is_hub


def test_a_silent_hub_is_not_proven_dead_and_its_return_moves_nobody(court):
    job = court(3, Pulse(0.1, 1.0))
    job.cut(0)
    job.loop.run(lambda: job.settled(1, 2))
    assert job.of(1)[0].silent
    assert job.reigns(1) == [Succeeded(1, proven=False, mutual=True)]
    job.loop.stars.append(job.all[0])
    job.loop.run(lambda: {item.index for item in job.of(0) if isinstance(item, Lost)} == {1, 2})
    job.all[0].broadcast({"stop": "by the old one"})
    job.all[1].broadcast({"stop": "by the new one"})
    job.loop.run(lambda: any(isinstance(item, Message) for item in job.of(2)))
    assert [item for item in job.of(2) if isinstance(item, Message)] == [Message(1, {"stop": "by the new one"})]


def test_those_that_end_later_may_have_gone_on_before(court):
    """It loses the hub alone; soon after the others have ended, perhaps as their job was done."""
    job = court(3, Pulse(0.2, 5.0))
    job.all[2]._star._lose("the cable is out")
    begun = time.monotonic()
    job.loop.run(lambda: time.monotonic() > begun + 2 * PROOF_BEATS * 0.2)
    job.kill(0, 1)
    job.loop.run(lambda: job.settled(2))
    assert job.reigns(2) == [Succeeded(2, proven=False, ended=())]


def test_one_that_stood_still_cannot_say_when_the_others_have_ended(court):
    job = court(2, Pulse(0.1, 1.0))
    job.cut(1)
    begun = time.monotonic()
    job.loop.run(lambda: time.monotonic() > begun + 0.7)
    job.kill(0)
    job.loop.stars.append(job.all[1])
    job.loop.run(lambda: job.settled(1))
    assert job.of(1)[0] == Lost(0, "it closed the connection", heir=True, late=True)
    assert job.reigns(1) == [Succeeded(1, proven=False)]


def test_one_that_loses_the_hub_alone_finds_no_other(court):
    """The others, first in line, are well and do not open."""
    job = court(HEIRS + 2)
    job.all[HEIRS + 1]._star._lose("the cable is out")
    job.loop.run(lambda: job.settled(HEIRS + 1), limit_s=40)
    assert isinstance(job.of(HEIRS + 1)[-1], Headless)
    assert not any(job.of(index) for index in range(1, HEIRS + 1))


def test_who_is_in_line_but_alone_is_a_hub_of_nobody(court):
    job = court(3)
    job.all[2]._star._lose("the cable is out")
    job.loop.run(lambda: job.settled(2))
    assert job.reigns(2) == [Succeeded(2, proven=False)]
    job.loop.run(lambda: any(item == Lost(1, "has not come to the new hub", silent=True) for item in job.of(2)))


def test_who_has_left_the_job_is_not_waited_for(court):
    job = court(4)
    for each in job.all:
        each.keep((0, 2, 3))
    job.cut(1)
    job.kill(0)
    job.loop.run(lambda: job.settled(2, 3))
    assert job.reigns(3) == [Succeeded(2)]
    assert not any(isinstance(item, Lost) and item.index == 1 for item in job.of(2))


def test_strangers_that_wait_at_the_next_door_keep_nobody_out(court):
    """A port scanner, and one that sends garbage, came while the first hub lived."""
    job = court(3)
    port = job.all[1]._line.targets[1][0][1]
    strangers = [connect(port) for _ in range(20)]
    for stranger in strangers[::2]:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    job.kill(0)
    job.loop.run(lambda: job.settled(1, 2))
    assert job.reigns(2) == [Succeeded(1)]
    job.loop.run(lambda: len(job.all[1].notices) >= 10)
    for stranger in strangers:
        stranger.close()
