"""Predicates over a setting: `mp >= 16 and pp == 1`, `granularity in ("full", "core_attn")`, `not (mp * pp > gpus)`.

The text is parsed by Python's own parser, but only the constructs below are accepted, and nothing is ever evaluated by it:
numbers, texts, True, False, None, tuples and lists of these, names of dimensions, `and or not`, comparisons, `in`, `+ - * // %`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Set

from slaunch.tune.config.kinds import meant
from slaunch.tune.values import Value

Scope = Mapping[str, Value]
Part = Callable[[Scope], object]
Predicate = Callable[[Scope], bool]

LONGEST = 1000
"""Characters of a predicate at most; keeps the parser's recursion small."""

COMPARISONS: Mapping[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,  # type: ignore[dict-item]
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
    ast.In: lambda left, right: operator.contains(right, left),  # type: ignore[arg-type]
    ast.NotIn: lambda left, right: not operator.contains(right, left),  # type: ignore[arg-type]
}
ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class PredicateError(ValueError):
    """The text is no predicate, or cannot be answered for a setting."""


def compile_predicate(text: str, names: Set[str], aliases: Mapping[str, str]) -> Predicate:
    """The predicate that the text describes.

    Args:
        text: the predicate.
        names: names of dimensions that it may use.
        aliases: short names, and the names that they stand for.

    Raises:
        PredicateError: for anything outside the language; it names the construct or the unknown name.
    """
    if len(text) > LONGEST:
        raise PredicateError(f"it is longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        part = _Builder(names, aliases).build(tree.body)
    except SyntaxError as error:
        raise PredicateError(f"it is no expression: {error.msg}") from None
    except PredicateError:
        raise
    except ValueError as error:  # characters that no source text may have
        raise PredicateError(f"it is no expression: {error}") from None
    except (RecursionError, MemoryError):
        raise PredicateError("it is nested too deeply") from None
    return lambda scope: bool(_answer(part, scope, text))


def _answer(part: Part, scope: Scope, text: str) -> object:
    try:
        return part(scope)
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise PredicateError(f"`{text}` has no answer for {dict(scope)}: {error}") from None


class _Builder:
    """Turns the parsed text into nested functions."""

    def __init__(self, names: Set[str], aliases: Mapping[str, str]) -> None:
        self.names, self.aliases = names, aliases

    def build(self, node: ast.expr) -> Part:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise PredicateError(f"`{ast.unparse(node)}` is not allowed in it")
        part: Part = method(node)
        return part

    def _constant(self, node: ast.Constant) -> Part:
        value = node.value
        if not isinstance(value, int | float | str | None):
            raise PredicateError(f"`{ast.unparse(node)}` is not allowed in it")
        return lambda scope: value

    def _name(self, node: ast.Name) -> Part:
        name = self.aliases.get(node.id, node.id)
        if name not in self.names:
            raise PredicateError(f"there is no dimension {node.id}{meant(node.id, sorted({*self.names, *self.aliases}))}")
        return lambda scope: scope.get(name)

    def _boolop(self, node: ast.BoolOp) -> Part:
        parts = [self.build(value) for value in node.values]
        if isinstance(node.op, ast.And):
            return lambda scope: all(part(scope) for part in parts)
        return lambda scope: any(part(scope) for part in parts)

    def _unaryop(self, node: ast.UnaryOp) -> Part:
        inner = self.build(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda scope: not inner(scope)
        if isinstance(node.op, ast.USub):
            return lambda scope: -_number(inner(scope))
        raise PredicateError(f"`{ast.unparse(node)}` is not allowed in it")

    def _binop(self, node: ast.BinOp) -> Part:
        act = ARITHMETIC.get(type(node.op))
        if act is None:
            raise PredicateError(f"`{ast.unparse(node)}` is not allowed in it")
        left, right = self.build(node.left), self.build(node.right)
        return lambda scope: act(_number(left(scope)), _number(right(scope)))

    def _compare(self, node: ast.Compare) -> Part:
        if any(type(op) not in COMPARISONS for op in node.ops):
            raise PredicateError(f"`{ast.unparse(node)}` is not allowed in it")
        tests = [COMPARISONS[type(op)] for op in node.ops]
        parts = [self.build(each) for each in (node.left, *node.comparators)]

        def holds(scope: Scope) -> bool:
            values = [part(scope) for part in parts]
            return all(test(values[i], values[i + 1]) for i, test in enumerate(tests))

        return holds

    def _tuple(self, node: ast.Tuple | ast.List) -> Part:
        parts = [self.build(each) for each in node.elts]
        return lambda scope: tuple(part(scope) for part in parts)

    _list = _tuple


def _number(value: object) -> float:
    """A number; texts have no arithmetic, so that no text can grow without bound."""
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value
