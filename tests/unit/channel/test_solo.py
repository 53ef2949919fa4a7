"""The star of one: the same interface without a socket."""

import selectors

import pytest

from slaunch.channel.star import Message, Pulse, Solo


def test_messages_to_oneself_come_back_in_order():
    star = Solo()
    star.send(0, {"a": 1})
    star.send(0, {"b": 2}, b"blob")
    star.broadcast({"c": 3})
    assert star.take() == [Message(0, {"a": 1}), Message(0, {"b": 2}, b"blob")]
    assert star.take() == []


def test_nobody_else_is_there():
    with pytest.raises(ValueError, match="no peer 1"):
        Solo().send(1, {})


def test_it_needs_no_loop():
    star = Solo()
    with selectors.DefaultSelector() as selector:
        star.register(selector)
        assert not selector.get_map()
    star.tick(1.0)
    assert star.flush(1.0)
    assert star.clock_offset_s(0) == 0.0
    assert (star.index, star.size, star.is_hub, list(star.notices)) == (0, 1, True, [])
    star.close()


def test_heartbeats_are_rarer_in_a_large_star():
    assert Pulse.for_size(4) == Pulse(1.0, 6.0)
    assert Pulse.for_size(10_000) == Pulse(4.0, 24.0)
