"""The standard library's `dataclass`, `field`, `replace` and `asdict`, at a tenth of the cost of defining a class.

`dataclasses` compiles about seven methods per class; the eighty value classes on the way to the first worker cost 40 ms that way,
half of slaunch's own start-up time. Here all classes share the same few methods, which look the field names up. Instances behave
alike (order, defaults, equality, hash, repr, pattern matching, refusal of assignment), and `dataclasses.fields`, `asdict` and
`replace` work on them; type checkers see the standard library's names. Only what slaunch uses is here: `frozen=`, defaults,
`default_factory` and inheritance. `tests/unit/test_frozen.py` compares both.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing for its constant of this name would cost 4 ms

if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, replace
else:

    class _Factory:
        """A default made anew for each instance."""

        __slots__ = ("make",)

        def __init__(self, make):
            self.make = make

    def field(*, default_factory):
        """A field whose default is made anew for each instance."""
        return _Factory(default_factory)

    def dataclass(cls=None, /, *, frozen=False):
        """Make the class's annotated names its fields, as `dataclasses.dataclass` does."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen)
        own = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - inspect costs 6 ms
        bases = [base for base in cls.__mro__[:0:-1] if "_names" in base.__dict__]
        names, defaults = {}, {}
        for base in bases:
            names.update(dict.fromkeys(base._names))
            defaults.update(base._defaults)
        cls._names = cls.__match_args__ = tuple(names | dict.fromkeys(own))
        cls._defaults = defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}
        cls.__init__, cls.__eq__, cls.__repr__ = _init, _eq, _repr
        cls.__dataclass_fields__ = _Fields()
        if cls.__dict__.get("__hash__") is None:  # as in the standard library, the own one of a class stays
            cls.__hash__ = _hash if frozen else None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _refuse, _refuse
        return cls

    def replace(instance, /, **changes):
        """A copy with other values in some fields."""
        return type(instance)(**{name: getattr(instance, name) for name in instance._names} | changes)

    def asdict(value):
        """The fields of `value` by name, values inside it likewise, tuples and lists kept as such."""
        return {name: _plain(getattr(value, name)) for name in value._names}

    def _plain(value):
        if hasattr(type(value), "_names"):
            return asdict(value)
        if type(value) in (tuple, list):
            return type(value)([_plain(item) for item in value])
        return {key: _plain(item) for key, item in value.items()} if type(value) is dict else value

    def _init(self, *args, **kwargs):
        names, own = self._names, self.__dict__
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} has {len(names)} fields, {len(args)} values given")
        own.update(zip(names, args, strict=False))
        for name in names[len(args) :]:
            own[name] = kwargs.pop(name) if name in kwargs else _default(self, name)
        if kwargs:
            raise TypeError(f"{type(self).__name__} has no further field {', '.join(kwargs)}")

    def _default(self, name):
        if name not in self._defaults:
            raise TypeError(f"{type(self).__name__} needs a value for {name}")
        default = self._defaults[name]
        return default.make() if type(default) is _Factory else default

    def _values(self):
        own = self.__dict__
        return tuple([own[name] for name in self._names])

    def _eq(self, other):
        return _values(self) == _values(other) if type(self) is type(other) else NotImplemented

    def _hash(self):
        return hash(_values(self))

    def _repr(self):
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._names)})"

    def _refuse(self, name, value=None):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _standard(default):
        import dataclasses

        return dataclasses.field(default_factory=default.make) if type(default) is _Factory else default

    class _Fields:
        """The fields as `dataclasses` describes them, made when its functions ask for them."""

        def __get__(self, instance, owner):
            import dataclasses

            members = {name: owner.__annotations__.get(name, "object") for name in owner._names}
            defaults = {name: _standard(default) for name, default in owner._defaults.items()}
            twin = dataclasses.dataclass(type(owner.__name__, (), {"__annotations__": members, **defaults}))
            owner.__dataclass_fields__ = twin.__dataclass_fields__
            return twin.__dataclass_fields__



def names(made: type) -> tuple[str, ...]:
    """The names of the fields of a class made by `dataclass`, in order."""
    found: tuple[str, ...] = made.__match_args__  # type: ignore[attr-defined]
    return found


__all__ = ["asdict", "dataclass", "field", "names", "replace"]
