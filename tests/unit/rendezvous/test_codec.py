"""Cards as bytes: nothing is lost, and little is sent."""

import json
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st
from support.facts import facts, gpu

from slaunch.frozen import replace
from slaunch.node.values import Address, Device, Nic, NodeFacts, Problem
from slaunch.rendezvous import codec
from slaunch.rendezvous.codec import Card, decode_card, encode_card, numbers, ranges, read_words

small = st.integers(0, 300)
text = st.text(max_size=8)
numbers_of = st.lists(small, max_size=12).map(tuple)
signed = st.lists(st.integers(-1, 9), max_size=12).map(tuple)
groups_of = st.lists(st.lists(small, min_size=1, max_size=3).map(tuple), max_size=6).map(tuple)
all_facts = st.builds(
    NodeFacts,
    host=text,
    machine=text,
    addresses=st.lists(st.builds(Address, text, text, small, small), max_size=3).map(tuple),
    cpus=numbers_of,
    cores=groups_of,
    devices=st.lists(st.builds(Device, text, small, text, text, text, st.integers(-1, 8), small, text), max_size=3).map(tuple),
    visible=text,
    workers=small,
    ports=numbers_of,
    control_port=small,
    pid=small,
    python=text,
    versions=text,
    program_digest=text,
    time_s=st.integers(0, 2**32).map(float),
    problems=st.lists(st.builds(Problem, small, text, text, text), max_size=2).map(tuple),
    numa=signed,
    caches=signed,
    reach=groups_of,
    reach_numa=signed,
    reach_caches=signed,
    online=small,
    notes=st.lists(text, max_size=2).map(tuple),
    memory=numbers_of,
    memory_policy=text,
    packages=signed,
    nics=st.lists(st.builds(Nic, text, text, st.integers(-1, 8), small, text, numbers_of), max_size=3).map(tuple),
)


def again(card: Card) -> Card:
    return decode_card(read_words(encode_card(card)))


@settings(max_examples=30)
@given(st.builds(Card, small, small, text, st.binary(max_size=32), all_facts))
def test_cards_come_out_as_they_went_in(card):
    once = again(card)
    assert replace(once, facts=without_names(once.facts)) == replace(card, facts=without_names(card.facts))
    assert again(once) == once


def without_names(made: NodeFacts) -> NodeFacts:
    return replace(made, devices=tuple(replace(device, uuid="") for device in made.devices))


def test_every_field_of_the_facts_travels():
    """A field added to NodeFacts travels by itself, or this test says so."""
    made = facts(3)
    assert without_names(again(Card(3, 8, "n", b"s", made)).facts) == without_names(made)
    assert set(codec.PACK) <= set(NodeFacts.__match_args__)
    assert set(codec.PACK) - {"time_s"} == set(codec.UNPACK)


@given(st.lists(small).map(tuple))
def test_ranges_keep_any_order(values):
    assert numbers(ranges(values)) == values


def test_ranges_are_short():
    assert ranges(range(128)) == "0-127"
    assert ranges((0, 1, 5, 3, 4)) == "0-1,5,3-4"
    assert ranges(()) == ""


def test_a_card_of_another_version_can_still_be_named():
    words = json.loads(encode_card(Card(0, 2, "n", b"", facts(7))))
    older = json.dumps(["slaunch 0.9, python 3.10.1", *words[1:3], "something else"]).encode()
    assert read_words(older)[:2] == ["slaunch 0.9, python 3.10.1", "node00007"]


def test_ten_thousand_nodes_fit_into_one_frame():
    cards = [encode_card(Card(rank, 10_000, "0123456789ab", b"", facts(rank))) for rank in range(500)]
    assert max(map(len, cards)) < 3000
    assert len(zlib.compress(b"".join(cards), 6)) / 500 < 150  # bytes a node, with 8 GPUs of random names


def test_unique_names_of_devices_stay_different_and_are_marked_as_stand_ins():
    devices = again(Card(0, 1, "n", b"", facts(0))).facts.devices
    assert len({device.uuid for device in devices}) == 8
    assert all(device.uuid.startswith("uuid~") for device in devices)
    unknown = again(Card(0, 1, "n", b"", replace(facts(0), devices=(replace(gpu(0), uuid=""),)))).facts.devices
    assert unknown[0].uuid == ""
