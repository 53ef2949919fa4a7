"""The words and proofs of the handshake."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.channel.handshake import (
    Challenge,
    HandshakeError,
    Hello,
    check_proof,
    key,
    proof,
    read_words,
    refusal,
    transcript,
)

HELLO = Hello("c/1/0/0/0", 3, 8, "n3", 1234, "aa", "bb")
SECRET = b"s" * 32


def test_words_travel():
    assert Hello.read(HELLO.body()) == HELLO
    challenge = Challenge("c/1/0/0/0", "cc", "munge", "MUNGE:xyz:", "dd")
    assert Challenge.read(challenge.body()) == challenge


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.booleans() | st.lists(st.integers())))
def test_anything_else_is_a_handshake_error(body):
    for read in (Hello.read, Challenge.read):
        with pytest.raises(HandshakeError):
            read(body)


@pytest.mark.parametrize("field", ["rank", "size", "pid", "host", "identity", "instance", "nonce"])
@pytest.mark.parametrize("value", [None, -1, [], True, 1.5, "\n", "x" * 300])
def test_a_hello_with_an_unfit_value_is_refused(field, value):
    with pytest.raises(HandshakeError):
        Hello.read({**HELLO.body(), field: value})


def test_a_refusal_is_told_as_such():
    with pytest.raises(HandshakeError, match="refused us: go away"):
        Challenge.read(refusal("go away"))


def test_every_word_counts_in_the_transcript():
    said = {transcript(HELLO, "n")}
    for field in dataclasses.fields(Hello):
        value = getattr(HELLO, field.name)
        changed = {**HELLO.__dict__, field.name: value + 1 if isinstance(value, int) else value + "x"}
        said.add(transcript(Hello(**changed), "n"))
    said.add(transcript(HELLO, "m"))
    assert len(said) == len(dataclasses.fields(Hello)) + 2


def test_words_cannot_run_into_each_other():
    assert transcript(Hello("a", 1, 2, "b", 3, "c", "d"), "e") != transcript(Hello("ab", 1, 2, "", 3, "c", "d"), "e")


def test_a_proof_is_of_one_side_one_secret_and_one_conversation():
    said = transcript(HELLO, "n")
    check_proof(proof(SECRET, "hub", said), SECRET, "hub", said)
    for wrong in (
        proof(SECRET, "spoke", said),
        proof(b"t" * 32, "hub", said),
        proof(SECRET, "hub", transcript(HELLO, "m")),
        "",
        "é",
    ):
        with pytest.raises(HandshakeError, match="does not know the job's secret"):
            check_proof(wrong, SECRET, "hub", said)


def test_keys_differ_by_direction_and_from_the_proofs():
    said = transcript(HELLO, "n")
    made = {key(SECRET, "hub", said), key(SECRET, "spoke", said), bytes.fromhex(proof(SECRET, "hub", said))}
    assert len(made) == 3


def test_missing_words():
    with pytest.raises(HandshakeError, match="something else than 'proof'"):
        read_words({"say": "proof"}, "proof", ("proof",))
