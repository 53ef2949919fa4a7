"""`slaunch.frozen` behaves as `dataclasses` does wherever slaunch uses it."""

import dataclasses

import pytest

from slaunch import frozen


def family(module):
    """The same three classes, made by one module or the other."""

    @module.dataclass(frozen=True)
    class Base:
        a: int
        b: str = "b"

    @module.dataclass(frozen=True)
    class Child(Base):
        c: tuple[int, ...] = ()
        d: dict[str, int] = module.field(default_factory=dict)

    @module.dataclass
    class Loose:
        x: int
        y: list[int] = module.field(default_factory=list)

    return Base, Child, Loose


BOTH = pytest.mark.parametrize("module", [frozen, dataclasses], ids=["frozen", "dataclasses"])


@BOTH
def test_values_defaults_and_order(module):
    base, child, loose = family(module)
    assert (base(1).a, base(1).b, base(b="x", a=2).b) == (1, "b", "x")
    made = child(1, "z", (3,))
    assert (made.a, made.b, made.c, made.d) == (1, "z", (3,), {})
    assert child(1).d is not child(1).d
    assert loose(1).y is not loose(1).y


@BOTH
def test_equality_hash_and_repr(module):
    base, child, loose = family(module)
    assert base(1) == base(1) != base(2)
    assert base(1) != child(1)
    assert hash(base(1, "q")) == hash(base(1, "q"))
    assert repr(base(1)).endswith("Base(a=1, b='b')")
    assert loose(1) == loose(1)
    with pytest.raises(TypeError):
        hash(loose(1))


@BOTH
def test_assignment_is_refused_only_where_frozen(module):
    base, child, loose = family(module)
    for value in (base(1), child(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.a = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del value.a
    thing = loose(1)
    thing.x = 5
    assert thing.x == 5


@BOTH
@pytest.mark.parametrize("make", [lambda b: b(), lambda b: b(1, "b", 3), lambda b: b(1, nosuch=1), lambda b: b(1, a=1)])
def test_wrong_arguments(module, make):
    with pytest.raises(TypeError):
        make(family(module)[0])


@BOTH
def test_replace_and_the_functions_of_dataclasses(module):
    _, child, _ = family(module)
    made = child(1, d={"k": 1})
    assert module.replace(made, a=7) == child(7, d={"k": 1}) == dataclasses.replace(made, a=7)
    assert [field.name for field in dataclasses.fields(child)] == ["a", "b", "c", "d"]
    assert module.asdict(made) == dataclasses.asdict(made) == {"a": 1, "b": "b", "c": (), "d": {"k": 1}}
    with pytest.raises(TypeError):
        module.replace(made, nosuch=1)
    assert frozen.names(child) == ("a", "b", "c", "d")


@BOTH
def test_asdict_goes_into_values_tuples_and_dicts(module):
    base, child, _ = family(module)
    made = child((base(1), 2), d={"k": base(3)})
    assert module.asdict(made) == {"a": ({"a": 1, "b": "b"}, 2), "b": "b", "c": (), "d": {"k": {"a": 3, "b": "b"}}}


@BOTH
def test_pattern_matching(module):
    base, _, _ = family(module)
    match base(4, "m"):
        case base(a, b=text):
            assert (a, text) == (4, "m")
        case _:
            pytest.fail("no match")
