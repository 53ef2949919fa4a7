"""How two agents prove to each other that they belong to the same job, without telling a stranger anything of use.

    spoke → hub   hello      identity, rank, size, host, instance, nonce
    hub → spoke   challenge  identity, nonce, how to find the secret, the hub's proof
    spoke → hub   proof      the spoke's proof
    hub → spoke   welcome    (signed, like all that follows)

or at any point `refuse` with a reason, after which the connection closes. A proof is an HMAC, with the job's secret, of all that
both sides have said; the keys of the two directions come from the same words. So a recorded hello or proof is of no use later,
and a peer of another job, step or attempt fails even if it had the same secret. Everything here is pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from slaunch.frozen import dataclass
from slaunch.hashing import compare_digest, hmac_sha256, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NONCE_BYTES = 16
TIME_S = 5.0
"""A stranger that has not proved itself after so many seconds is turned away."""


class HandshakeError(Exception):
    """The peer is not one of ours, or not in the right state.

    Args:
        why: fit for our log.
        tell: what the peer itself may hear, if that should be less.
    """

    def __init__(self, why: str, tell: str = "") -> None:
        super().__init__(why)
        self.tell = tell or why


@dataclass(frozen=True)
class Hello:
    """What a spoke says first.

    Attributes:
        identity: names the meeting: cluster, job, step, attempt.
        rank, size: the spoke's place.
        host, pid: for messages about it.
        instance: random, new for every process: tells a second connection of one process from a second process with one rank.
        nonce: random, new for every connection, in hexadecimal.
    """

    identity: str
    rank: int
    size: int
    host: str
    pid: int
    instance: str
    nonce: str

    def body(self) -> dict[str, Any]:
        """As sent."""
        return {"say": "hello", **self.__dict__}

    @staticmethod
    def read(body: Mapping[str, Any]) -> Hello:
        """As received.

        Raises:
            HandshakeError: it is something else.
        """
        words = read_words(body, "hello", ("identity", "host", "instance", "nonce"))
        if not all(word.isprintable() and len(word) < 256 for word in words):
            raise HandshakeError("sent a hello with unfit words")
        rank, size, pid = (read_number(body, name) for name in ("rank", "size", "pid"))
        return Hello(words[0], rank, size, words[1], pid, words[2], words[3])


@dataclass(frozen=True)
class Challenge:
    """The hub's answer.

    Attributes:
        identity: the hub's own.
        nonce: random, new for every connection, in hexadecimal.
        by, hint: where the hub has the secret from, and what a spoke needs to get it there; see `secret`.
        proof: the hub's proof, in hexadecimal.
    """

    identity: str
    nonce: str
    by: str
    hint: str
    proof: str

    def body(self) -> dict[str, Any]:
        """As sent."""
        return {"say": "challenge", **self.__dict__}

    @staticmethod
    def read(body: Mapping[str, Any]) -> Challenge:
        """As received.

        Raises:
            HandshakeError: it is something else, or a refusal.
        """
        return Challenge(*read_words(body, "challenge", ("identity", "nonce", "by", "hint", "proof")))


def transcript(hello: Hello, nonce: str) -> bytes:
    """All that is said before the proofs, as one digest."""
    words = [*hello.__dict__.values(), nonce]
    return sha256(b"slaunch channel 1\n" + json.dumps(words).encode()).digest()


def proof(secret: bytes, side: str, said: bytes) -> str:
    """Proof of `side` ("hub" or "spoke") that it knows the secret."""
    return hmac_sha256(secret, f"proof of {side}\n".encode() + said).hex()


def key(secret: bytes, side: str, said: bytes) -> bytes:
    """Key for the frames that `side` sends."""
    return hmac_sha256(secret, f"key of {side}\n".encode() + said)


def check_proof(given: str, secret: bytes, side: str, said: bytes) -> None:
    """Check the other side's proof.

    Raises:
        HandshakeError: it does not know the secret.
    """
    if not compare_digest(given.encode("utf-8", "replace"), proof(secret, side, said).encode()):
        raise HandshakeError("does not know the job's secret")


def read_words(body: Mapping[str, Any], kind: str, names: tuple[str, ...]) -> list[str]:
    """The texts `names` of a message of this kind."""
    if body.get("say") == "refuse":
        raise HandshakeError(f"refused us: {str(body.get('why'))[:200]}")
    values = [body.get(name) for name in names]
    if body.get("say") != kind or not all(isinstance(value, str) for value in values):
        raise HandshakeError(f"said something else than {kind!r}")
    return [str(value) for value in values]


def read_number(body: Mapping[str, Any], name: str) -> int:
    """A number of a message."""
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise HandshakeError(f"gave no number for {name!r}")
    return value


def refusal(why: str) -> dict[str, Any]:
    """Turn the other side away."""
    return {"say": "refuse", "why": why}
