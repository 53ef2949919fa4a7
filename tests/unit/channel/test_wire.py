"""Frames: what goes in comes out; anything else is refused, with bounded memory."""

import json
import zlib
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.channel import wire
from slaunch.channel.wire import LARGE, LIMIT, PULSE, ZLIB, Frame, Opener, Packed, Sealer, WireError, pack

KEY, OTHER = b"k" * 32, b"o" * 32
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
bodies = st.dictionaries(st.text(), values, max_size=4)


def opener(key=KEY):
    made = Opener()
    made.secure(key)
    return made


def sealed(packed, key=KEY, sealer=None):
    return (sealer or Sealer(key)).seal(packed) + packed.body


@given(
    st.lists(st.tuples(bodies, st.binary(max_size=3000)), max_size=5), st.integers(1, 700), st.sampled_from([b"", KEY])
)
def test_frames_come_out_as_they_went_in_however_they_are_cut(messages, cut, key):
    sealer, data = Sealer(key), b""
    for body, blob in messages:
        data += sealed(pack(body, blob), sealer=sealer)
    receiver, frames = opener(key), []
    for start in range(0, len(data), cut):
        frames += receiver.feed(data[start : start + cut])
    assert [(frame.body, frame.blob) for frame in frames] == messages


@given(st.binary(max_size=200), st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_refused(blob, position, change):
    data = bytearray(sealed(pack({"a": 1}, blob)))
    data[position % len(data)] ^= change
    try:
        frames = list(opener().feed(bytes(data)))
    except WireError:
        return
    assert frames == []  # a longer length: the frame is not complete, and never will be genuine


@given(st.binary(max_size=2000), st.sampled_from([b"", KEY]))
def test_garbage_is_refused_or_waited_for_but_never_taken(garbage, key):
    try:
        frames = list(opener(key).feed(garbage))
    except WireError:
        return
    if key:
        assert frames == []


def test_a_replayed_frame_is_refused():
    data = sealed(pack({"do": "it"}))
    receiver = opener()
    assert len(list(receiver.feed(data))) == 1
    with pytest.raises(WireError, match="wrong signature"):
        list(receiver.feed(data))


def test_dropped_and_swapped_frames_are_refused():
    sealer = Sealer(KEY)
    first, second = sealed(pack({"n": 1}), sealer=sealer), sealed(pack({"n": 2}), sealer=sealer)
    for order in (second, second + first):
        with pytest.raises(WireError, match="wrong signature"):
            list(opener().feed(order))


def test_a_frame_is_not_accepted_by_the_other_direction():
    with pytest.raises(WireError, match="wrong signature"):
        list(opener(OTHER).feed(sealed(pack({"n": 1}), KEY)))


def test_an_unsigned_frame_is_refused_once_keys_are_set():
    with pytest.raises(WireError, match="wrong signature"):
        list(opener().feed(sealed(pack({"n": 1}, b"x" * 100), b"")))


def test_before_the_handshake_frames_are_small():
    with pytest.raises(WireError, match="at most 8192"):
        list(Opener().feed(wire.HEADER.pack(wire.HELLO_LIMIT + 1, wire.VERSION, 0)))
    with pytest.raises(WireError, match="at most 8192"):
        list(Opener().feed(wire.HEADER.pack(wire.HELLO_LIMIT + 1, wire.VERSION, LARGE)))


def test_ordinary_frames_are_bounded_and_large_ones_are_marked():
    blob = bytes(range(256)) * 8192
    packed = pack({"facts": 1}, blob)
    assert packed.flags & LARGE
    assert next(opener().feed(sealed(packed))).blob == blob
    with pytest.raises(WireError, match="at most 1048576"):
        list(opener().feed(wire.HEADER.pack(LIMIT + 1, wire.VERSION, 0)))
    with pytest.raises(WireError, match="at most"):
        list(opener().feed(wire.HEADER.pack(wire.LARGE_LIMIT + 1, wire.VERSION, LARGE)))


def test_a_message_larger_than_any_frame_is_the_senders_error(monkeypatch):
    monkeypatch.setattr(wire, "LARGE_LIMIT", 1000)
    with pytest.raises(ValueError, match="too large"):
        pack({}, bytes(1001))


def test_a_compressed_bomb_does_not_explode():
    bomb = zlib.compress(b"{" + b" " * (64 << 20), 9)
    assert len(bomb) < LIMIT
    data = sealed(Packed(ZLIB, bomb, sha256(bomb).digest()))
    with pytest.raises(WireError, match="larger than 1048576"):
        list(opener().feed(data))


@pytest.mark.parametrize(
    "body", [b"[1]\n", b"{}", b"nonsense\n", b"[" * 5000 + b"\n", b'{"a":1' + b"\n", b"\xff\xfe\n", b"\n"]
)
def test_bodies_that_are_not_json_objects_are_refused(body):
    with pytest.raises(WireError, match="JSON"):
        list(opener().feed(sealed(Packed(0, body, sha256(body).digest()))))


@pytest.mark.parametrize(
    "header", [b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x16\x03\x01\x02\x00\x01", b"\0" * 6]
)
def test_other_protocols_are_recognised_by_their_first_bytes(header):
    with pytest.raises(WireError, match="not a frame of slaunch's channel"):
        list(Opener().feed(header))


def test_bad_compression_is_refused():
    body = b"not compressed at all"
    with pytest.raises(WireError, match="bad compression"):
        list(opener().feed(sealed(Packed(ZLIB, body, sha256(body).digest()))))


def test_large_bodies_are_compressed_where_that_helps():
    assert pack({}, bytes(10_000)).flags & ZLIB
    assert not pack({}, bytes(10)).flags & ZLIB


def test_flags_travel():
    assert next(opener().feed(sealed(pack({}, flags=PULSE)))) == Frame(PULSE, {}, b"")


def test_w46_no_pickle_on_the_wire():
    """Bodies are JSON: what a peer sends can be data only."""
    assert json.loads(pack({"a": [1, "b", None]}).body) == {"a": [1, "b", None]}
    with pytest.raises(TypeError):
        pack({"a": object()})
