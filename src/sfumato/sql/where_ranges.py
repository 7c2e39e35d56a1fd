# SPDX-License-Identifier: Apache-2.0
"""Derives from WHERE which codes an expression can have; used for keys and bounds.

A test is read in three ways: as a range (``narrowed``), by single codes (``left``), and at NULL
(``never_null``). A test that none of these understands excludes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from sfumato.errors import unknown
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
    Windowed,
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
    """Yields conditions that are TRUE for every row of a relation, over columns that it still has.

    They come from the WHERE clauses and joins inside it.
    """
    match relation:
        case Filter(source, predicate):
            yield from _conjuncts(predicate)
            yield from holding(source)
        case (
            PublicJoin(source) | KeyJoin(source) | Semi(source) | Ranked(source) | Windowed(source)
        ):
            yield from holding(source)
        case UnitJoin(source, other, outer):
            yield from holding(source)
            # an outer join makes columns of the other side NULL, whatever was tested before
            if not outer:
                yield from holding(other)
        case Scan() | PerUnit() | Union():
            pass
        case _:
            raise unknown(relation)


def about(expression: Scalar, tests: Iterable[Scalar]) -> Tests:
    """Returns the tests that read no columns but those of ``expression``."""
    read = set(leaves(expression))
    if not read:
        return ()
    return tuple(test for test in tests if set(leaves(test)) <= read)


def left(expression: Scalar, tests: Tests, codes: Sequence[int]) -> Sequence[int]:
    """Returns those of ``codes`` that an expression can have in rows that pass all tests."""
    for test in tests:
        passing = _true_codes(test, expression, frozenset(codes))
        if passing is not None:
            codes = [code for code in codes if code in passing]
    return codes


def narrowed(expression: Scalar, tests: Tests, whole: Span) -> Span:
    """Returns the range (least and largest code) of an expression in rows that pass the tests.

    None if the range is empty.

    ``whole`` is its range without the tests.
    """
    if whole is None:
        return None
    low, high = whole
    for test in tests:
        match test:
            case Member(operand, values) if operand == expression:
                codes = [value for value in values if isinstance(value, int)]
                within = [code for code in codes if low <= code <= high]
                low, high = min(within, default=high + 1), max(within, default=high)
            case Compare() if (bound := _bound(test, expression)) is not None:
                op, code = bound
                if op in (*_UP, Comparison.EQ):
                    low = max(low, code + (op is Comparison.GT))
                if op in (*_DOWN, Comparison.EQ):
                    high = min(high, code - (op is Comparison.LT))
    if low > high:
        return None
    return low, high


def never_null(expression: Scalar, tests: Tests) -> bool:
    """Whether the tests exclude all rows in which the expression is NULL."""
    return any(not _true_of_null(test, expression) for test in tests)


def _conjuncts(test: Scalar) -> Iterator[Scalar]:
    """Yields the operands of a conjunction, nested ones too; any other test alone."""
    if isinstance(test, And):
        for operand in test.operands:
            yield from _conjuncts(operand)
    else:
        yield test


def _bound(test: Compare, expression: Scalar) -> tuple[Comparison, int] | None:
    """Returns the operator and the constant with which a test compares an expression."""
    match test:
        case Compare(op, operand, Constant(int(code))) if operand == expression:
            return op, code
        case Compare(op, Constant(int(code)), operand) if operand == expression:
            return MIRRORED.get(op, op), code
        case _:
            return None


def _true_codes(test: Scalar, expression: Scalar, codes: frozenset[int]) -> frozenset[int] | None:
    """Returns the codes of an expression for which a test is TRUE; it is FALSE for the others.

    None if the test depends on anything else.
    """
    match test:
        case Member(operand, values) if operand == expression:
            return codes.intersection(value for value in values if isinstance(value, int))
        case Compare() if (bound := _bound(test, expression)) is not None:
            op, constant = bound
            return frozenset(code for code in codes if compares(op, code, constant))
        case IsNull(operand) if operand == expression:
            return frozenset()
        case Not(operand):
            inner = _true_codes(operand, expression, codes)
            if inner is None:
                return None
            return codes - inner
        case And(operands) | Or(operands):
            every = [_true_codes(operand, expression, codes) for operand in operands]
            known = [passing for passing in every if passing is not None]
            if len(known) < len(every):
                return None
            if isinstance(test, And):
                return codes.intersection(*known)
            return frozenset().union(*known)
        case _:
            return None


def _true_of_null(test: Scalar, expression: Scalar) -> bool:
    """Whether a test can be TRUE where an expression is NULL."""
    replaced = _of_null(test, expression)
    return replaced is None or evaluate(replaced, lambda leaf: None) is True


def _of_null(test: Scalar, expression: Scalar) -> Scalar | None:
    """Returns a test with NULL in place of an expression; None if it depends on anything else."""
    match test:
        case Member(operand, _) | IsNull(operand) if operand == expression:
            return Constant(isinstance(test, IsNull) or None)
        case Compare() if _bound(test, expression) is not None:
            return Constant(None)
        case Not(operand):
            inner = _of_null(operand, expression)
            if inner is None:
                return None
            return Not(inner)
        case And(operands) | Or(operands):
            every = [_of_null(operand, expression) for operand in operands]
            known = tuple(replaced for replaced in every if replaced is not None)
            if len(known) == len(every):
                return type(test)(known)
            return None
        case _:
            return None
