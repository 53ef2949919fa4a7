"""Frames: what the bytes between two agents mean.

    length   4 bytes, big-endian: number of bytes after this header
    version  1 byte
    flags    1 byte: ZLIB, PULSE, LARGE
    mac      32 bytes, once the two sides know each other: HMAC-SHA256 of counter, header and SHA-256 of the body
    body     one line of JSON, then a newline, then bytes ("blob", mostly none)

Each direction has its own key and counts its frames, so a frame can be neither replayed, dropped, reordered nor sent back.
The MAC covers the body's digest rather than the body, so that a body sent to 10,000 peers is hashed once.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping

from slaunch.frozen import dataclass
from slaunch.hashing import compare_digest, hmac_sha256, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
ZLIB, PULSE, LARGE = 1, 2, 4
HEADER = struct.Struct(">IBB")
COUNTER = struct.Struct(">Q")
MAC_BYTES = 32

HELLO_LIMIT = 8 << 10
"""Largest frame in bytes before the peer has proved itself."""
LIMIT = 1 << 20
"""Largest ordinary frame in bytes, also after decompression."""
LARGE_LIMIT = 256 << 20
"""Largest frame marked LARGE in bytes, also after decompression: the facts of all nodes."""
SMALL = 1 << 10
"""Bodies up to this many bytes are not worth compressing."""


class WireError(Exception):
    """The peer does not speak this protocol, or not with our key."""


@dataclass(frozen=True)
class Packed:
    """A message ready for any number of peers."""

    flags: int
    body: bytes
    digest: bytes


@dataclass(frozen=True)
class Frame:
    """A message as it came in."""

    flags: int
    body: Mapping[str, Any]
    blob: bytes


def pack(body: Mapping[str, Any], blob: bytes = b"", flags: int = 0, dense: bool = False) -> Packed:
    """Encode a message; one that does not fit an ordinary frame is marked LARGE.

    Args:
        body, blob: the message.
        flags: PULSE or 0.
        dense: the blob is compressed already.

    Raises:
        ValueError: it does not fit a LARGE one either.
    """
    data = json.dumps(body, separators=(",", ":")).encode() + b"\n" + blob
    if len(data) > LARGE_LIMIT:
        raise ValueError(f"a message of {len(data)} bytes is too large for the agents' channel")
    flags |= LARGE if len(data) > LIMIT - MAC_BYTES else 0
    if len(data) > SMALL and not dense:
        smaller = zlib.compress(data, 1)
        if len(smaller) < len(data):
            data, flags = smaller, flags | ZLIB
    return Packed(flags, data, sha256(data).digest())


class Sealer:
    """The sending side of one direction. Without a key it makes frames without MAC, for the handshake."""

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._counter = 0

    def seal(self, packed: Packed) -> bytes:
        """Header and MAC to be sent before `packed.body`."""
        extra = MAC_BYTES if self._key else 0
        header = HEADER.pack(len(packed.body) + extra, VERSION, packed.flags)
        if not self._key:
            return header
        tag = mac(self._key, self._counter, header, packed.digest)
        self._counter += 1
        return header + tag


class Opener:
    """The receiving side of one direction: takes bytes as they come, gives whole, genuine frames."""

    def __init__(self) -> None:
        self._key = b""
        self._counter = 0
        self._buffer = bytearray()

    def secure(self, key: bytes) -> None:
        """From the next frame on, expect MACs with this key."""
        self._key = key

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add bytes; yield the frames they complete.

        Raises:
            WireError: the bytes are not such frames. The connection is then useless.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            length, version, flags = HEADER.unpack_from(self._buffer)
            self._check_header(length, version, flags)
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            header, content = bytes(self._buffer[: HEADER.size]), bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield self._open(header, flags, content)

    def _check_header(self, length: int, version: int, flags: int) -> None:
        if version != VERSION or flags & ~(ZLIB | PULSE | LARGE):
            raise WireError("not a frame of slaunch's channel")
        limit = HELLO_LIMIT if not self._key else LARGE_LIMIT if flags & LARGE else LIMIT
        if length > limit:
            raise WireError(f"a frame of {length} bytes, where at most {limit} are allowed")

    def _open(self, header: bytes, flags: int, content: bytes) -> Frame:
        if self._key:
            tag, content = content[:MAC_BYTES], content[MAC_BYTES:]
            wanted = mac(self._key, self._counter, header, sha256(content).digest())
            if not compare_digest(tag, wanted):
                raise WireError("a frame with a wrong signature")
            self._counter += 1
        limit = HELLO_LIMIT if not self._key else LARGE_LIMIT if flags & LARGE else LIMIT
        body, blob = parse(inflate(content, limit) if flags & ZLIB else content)
        return Frame(flags, body, blob)


def mac(key: bytes, counter: int, header: bytes, digest: bytes) -> bytes:
    """The signature of one frame."""
    return hmac_sha256(key, COUNTER.pack(counter) + header + digest)


def inflate(data: bytes, limit: int) -> bytes:
    """Decompress, but never to more than `limit` bytes."""
    machine = zlib.decompressobj()
    try:
        plain = machine.decompress(data, limit)
    except zlib.error as error:
        raise WireError(f"a frame with bad compression: {error}") from None
    if not machine.eof:
        raise WireError(f"a frame that is cut off, or larger than {limit} bytes when decompressed")
    return plain


def parse(data: bytes) -> tuple[Mapping[str, Any], bytes]:
    """Split a body into its JSON object and its blob."""
    line, newline, blob = data.partition(b"\n")
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        raise WireError("a frame that is not JSON") from None
    if not newline or not isinstance(body, dict):
        raise WireError("a frame that is not a JSON object")
    return body, blob
