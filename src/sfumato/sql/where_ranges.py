# SPDX-License-Identifier: Apache-2.0
"""What WHERE leaves of the values of an expression: read off the text, before any row is."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from sfumato.errors import unknown
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import (
    Filter,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
)
from sfumato.plan.scalar import (
    And,
    Compare,
    Comparison,
    Constant,
    IsNull,
    Member,
    Not,
    Or,
    Scalar,
    compares,
    leaves,
)
from sfumato.plan.value_range import Span
from sfumato.sql.compare import MIRRORED

Tests: TypeAlias = tuple[Scalar, ...]

_UP = (Comparison.GT, Comparison.GE)
_DOWN = (Comparison.LT, Comparison.LE)


def holding(relation: Relation) -> Iterator[Scalar]:
    """Tests that are TRUE of every row of a relation, of columns that the rows still have."""
    match relation:
        case Filter(source, predicate):
            yield from _conjuncts(predicate)
            yield from holding(source)
        case PublicJoin(source) | Semi(source) | Ranked(source):
            yield from holding(source)
        case UnitJoin(source, other, outer):
            yield from holding(source)
            # beside an outer join the columns of the other side may be NULL, whatever was tested below
            yield from () if outer else holding(other)
        case Scan() | PerUnit() | Union():
            pass
        case _:
            raise unknown(relation)


def about(expression: Scalar, tests: Iterable[Scalar]) -> Tests:
    """The tests that read nothing but what an expression reads."""
    read = set(leaves(expression))
    return tuple(each for each in tests if read and set(leaves(each)) <= read)


def left(expression: Scalar, tests: Tests, codes: Sequence[int]) -> Sequence[int]:
    """Those of its codes that an expression can have where the tests are TRUE."""
    for each in tests:
        found = _true(each, expression, frozenset(codes))
        if found is not None:
            codes = [code for code in codes if code in found]
    return codes


def narrowed(expression: Scalar, tests: Tests, whole: Span) -> Span:
    """The range of an expression where the tests are TRUE; None: it has no value there."""
    if whole is None:
        return None
    low, high = whole
    for each in tests:
        match each:
            case Member(operand, values) if operand == expression:
                within = [
                    value for value in values if isinstance(value, int) and low <= value <= high
                ]
                low, high = min(within, default=high + 1), max(within, default=high)
            case Compare() if (found := _bound(each, expression)) is not None:
                op, code = found
                low = max(low, code + (op is Comparison.GT)) if op in (*_UP, Comparison.EQ) else low
                high = (
                    min(high, code - (op is Comparison.LT))
                    if op in (*_DOWN, Comparison.EQ)
                    else high
                )
    return (low, high) if low <= high else None


def never_null(expression: Scalar, tests: Tests) -> bool:
    """Whether a test is not TRUE where an expression is NULL."""
    return any(not _true_of_null(each, expression) for each in tests)


def _conjuncts(test: Scalar) -> Iterator[Scalar]:
    if isinstance(test, And):
        for each in test.operands:
            yield from _conjuncts(each)
    else:
        yield test


def _bound(test: Compare, expression: Scalar) -> tuple[Comparison, int] | None:
    """The constant that a comparison holds an expression against."""
    match test:
        case Compare(op, operand, Constant(int(code))) if operand == expression:
            return op, code
        case Compare(op, Constant(int(code)), operand) if operand == expression:
            return MIRRORED.get(op, op), code
        case _:
            return None


def _true(test: Scalar, expression: Scalar, codes: frozenset[int]) -> frozenset[int] | None:
    """The codes of an expression for which a test is TRUE, and FALSE for the others; None: it reads more."""
    match test:
        case Member(operand, values) if operand == expression:
            return codes.intersection(value for value in values if isinstance(value, int))
        case Compare() if (found := _bound(test, expression)) is not None:
            return frozenset(code for code in codes if compares(found[0], code, found[1]))
        case IsNull(operand) if operand == expression:
            return frozenset()
        case Not(operand):
            inner = _true(operand, expression, codes)
            return None if inner is None else codes - inner
        case And(operands) | Or(operands):
            every = [_true(each, expression, codes) for each in operands]
            known = [each for each in every if each is not None]
            if len(known) < len(every):
                return None
            return (
                codes.intersection(*known) if isinstance(test, And) else frozenset().union(*known)
            )
        case _:
            return None


def _true_of_null(test: Scalar, expression: Scalar) -> bool:
    """Whether a test can be TRUE where an expression is NULL."""
    replaced = _of_null(test, expression)
    return replaced is None or evaluate(replaced, lambda leaf: None) is True


def _of_null(test: Scalar, expression: Scalar) -> Scalar | None:
    """A test with NULL in place of an expression; None: it reads more."""
    match test:
        case Member(operand, _) | IsNull(operand) if operand == expression:
            return Constant(isinstance(test, IsNull) or None)
        case Compare() if _bound(test, expression) is not None:
            return Constant(None)
        case Not(operand):
            inner = _of_null(operand, expression)
            return None if inner is None else Not(inner)
        case And(operands) | Or(operands):
            every = [_of_null(each, expression) for each in operands]
            known = tuple(each for each in every if each is not None)
            return type(test)(known) if len(known) == len(every) else None
        case _:
            return None
