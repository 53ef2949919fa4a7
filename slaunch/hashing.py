"""SHA-256, and HMAC with it, without OpenSSL: `hashlib` loads that, which takes 3 ms of every start.

Where the interpreter has an implementation of its own, that is taken, as the standard library's `random` does. It hashes about
250 MB/s, a fifth of what OpenSSL does; slaunch hashes kilobytes, and each message once, however many get it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
    from hmac import compare_digest
else:
    from _operator import _compare_digest as compare_digest  # where `hmac` has it from

    try:
        from _sha2 import sha256  # Python 3.12 and later
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:  # an interpreter that was built without
            from hashlib import sha256

BLOCK_BYTES = 64
INNER, OUTER = (bytes(value ^ pad for value in range(256)) for pad in (0x36, 0x5C))


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """The message's authentication code (RFC 2104)."""
    block = (sha256(key).digest() if len(key) > BLOCK_BYTES else key).ljust(BLOCK_BYTES, b"\0")
    inner = sha256(block.translate(INNER) + message).digest()
    return sha256(block.translate(OUTER) + inner).digest()


__all__ = ["compare_digest", "hmac_sha256", "sha256"]
