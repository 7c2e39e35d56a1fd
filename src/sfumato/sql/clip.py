# SPDX-License-Identifier: Apache-2.0
"""Clipped aggregates: the same aggregates over values that are clipped to a declared range.

If a column declares a clip, each of its sums, means and variances gets a second aggregate, its
twin, in which values beyond the clip are moved to its nearest end. The narrower range needs less
noise. Tests (WHERE, keys) read the unclipped values. ``lower`` and ``output`` use it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sfumato.exact.rational import decimal_text
from sfumato.metadata.clip import Values
from sfumato.metadata.column import Column, Integer, Real
from sfumato.plan.relation import Relation
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Coalesce,
    Constant,
    Estimate,
    Extreme,
    Field,
    FloorDivide,
    Quotient,
    Scalar,
    leaves,
)
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import GroupKey, Value, is_of_range
from sfumato.plan.value_range import span
from sfumato.sql.aggregates import Ask, Moment
from sfumato.sql.typed import number_type

_NOTHING = (
    "Clipped values were asked for, and nothing here is clipped: no sum, mean or variance reads a "
    "column with a clip, or what it reads is computed in a sub-query."
)


@dataclass(frozen=True, slots=True)
class Occasion:
    """The question in which a column's clip is looked up: its rows, keys and number of aggregates.

    A clip declared as ``sf.AUTO`` may have been learnt for such a question.
    """

    relation: Relation
    keys: tuple[GroupKey, ...]
    aggregates: int


# Returns the ends of a clip that is ``sf.AUTO``, as codes; None if it is not known.
Learn: TypeAlias = Callable[[Column, Occasion], tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class Clipping:
    """The clipping policy of a SQL question: which aggregates use clipped values, and the clips.

    ``values`` None: no aggregate uses clipped values.

    ``learn`` returns a clip that is declared as ``sf.AUTO``.
    """

    values: Values | None = None
    learn: Learn = lambda column, occasion: None
    occasion: Occasion | None = None

    def ends(self, column: Column) -> tuple[int, int] | None:
        """Returns the ends of a column's clip as integer codes (multiples of its step); None
        without one.
        """
        kind = column.type
        if not isinstance(kind, Integer | Real) or kind.clip is None:
            return None
        if isinstance(kind.clip, tuple):
            return kind.clip
        assert self.occasion is not None, "stated before twins are asked for"
        return self.learn(column, self.occasion)

    def split(self, asks: Mapping[int, Ask], shown: Iterable[exp.Expr]) -> "Split":
        """Returns the requests of a statement's aggregate calls, and their versions on clipped
        values.

        Args:
            asks: the request of each aggregate call, by the identity of its node.
            shown: the calls in the SELECT list; only these are shown with a twin beside them.
        """
        if self.values is None:
            return Split(asks)
        wanted = list(asks.values())
        if self.values is Values.TABLE:
            wanted = [asks[id(node)] for node in shown]
        twins = self._find_twins(wanted)
        clipped = {call: twins.get(ask, ask) for call, ask in asks.items()}
        lines = self._bias_lines(twins)
        if self.values is Values.CLIPPED:
            return Split(clipped, bias=lines, notes=() if lines else (_NOTHING,))
        return Split(asks, twins, clipped, lines)

    def _find_twins(self, asks: Iterable[Ask]) -> Mapping[Ask, Ask]:
        """The clipped twin of each ask whose range a clip makes narrower."""
        twins: dict[Ask, Ask] = {}
        for ask in asks:
            if not isinstance(ask, Moment) or ask.statistic is Statistic.COUNT:
                continue
            value = self._clip_value(ask.value)
            if value is not None:
                twins[ask] = Moment(value, ask.statistic)
        return twins

    def _bias_lines(self, twins: Mapping[Ask, Ask]) -> tuple[str, ...]:
        """A sentence on each column that is clipped."""
        lines: dict[str, None] = {}
        for ask in twins:
            assert isinstance(ask, Moment), "only moments have twins"
            for leaf in leaves(ask.value.expression):
                if isinstance(leaf, Field) and (ends := self.ends(leaf.column)):
                    lines[_bias_sentence(leaf.column, *ends)] = None
        return tuple(lines)

    def _clip_value(self, value: Value) -> Value | None:
        """A value computed from clipped columns; None if its range is no narrower for it."""
        expression = self._expression(value.expression)
        whole = span(value.expression)
        ends = span(expression)
        if ends is None or whole is None or ends == whole:
            return None
        kind = number_type(*ends, value.step)
        rounding = value.rounding + _nearest(value)
        return Value(f"{value.name} clipped", kind, expression, rounding)

    def _expression(self, expression: Scalar) -> Scalar:
        """An expression with each column that is part of its value clipped; tests are kept."""
        match expression:
            case Field(column):
                ends = self.ends(column)
                return expression if ends is None else between(expression, *ends)
            case Arithmetic(op, left, right):
                return Arithmetic(op, self._expression(left), self._expression(right))
            case Quotient(left, right):
                return Quotient(self._expression(left), self._expression(right))
            case FloorDivide(operand, divisor):
                return FloorDivide(self._expression(operand), divisor)
            case Extreme(greatest, operands):
                return Extreme(greatest, tuple(map(self._expression, operands)))
            case Coalesce(operands):
                return Coalesce(tuple(map(self._expression, operands)))
            case Case(branches, otherwise):
                kept = tuple((test, self._expression(result)) for test, result in branches)
                return Case(kept, self._expression(otherwise))
            case _:
                return expression


@dataclass(frozen=True, slots=True)
class Split:
    """The requests of a statement's aggregate calls, on unclipped and on clipped values.

    ``twins`` maps each request to its clipped twin, if it has one; ``clipped`` maps each call to
    its request with twins substituted. ``bias`` are the notes about clipped values; ``notes`` say
    that nothing is clipped although clipped values were requested.
    """

    asks: Mapping[int, Ask]
    twins: Mapping[Ask, Ask] = field(default_factory=dict)
    clipped: Mapping[int, Ask] = field(default_factory=dict)
    bias: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


# For a question of which no twin is wanted.
NO_TWINS = Clipping()


def between(operand: Scalar, low: int, high: int) -> Scalar:
    """Returns the operand, clipped to [low, high]; NULL if it is NULL.

    >>> age = Field(Column("age", Integer(0, 120)))
    >>> span(between(age, 18, 65))
    (18, 65)
    """
    at_least = Extreme(greatest=True, operands=(operand, Constant(low)))
    return Extreme(greatest=False, operands=(at_least, Constant(high)))


def _bias_sentence(column: Column, low: int, high: int) -> str:
    """What clipping a column changes."""
    kind = column.type
    assert isinstance(kind, Integer | Real), "only numbers have a clip"
    ends = f"[{decimal_text(low * kind.step)}, {decimal_text(high * kind.step)}]"
    return (
        f"{column.name} clipped: values beyond {ends} count as its ends; the interval of such a "
        "column of the answer does not hold what that changes."
    )


def paired(
    twins: Mapping[Ask, Ask], estimates: Mapping[Ask, Estimate]
) -> tuple[tuple[int, int], ...]:
    """Returns (clipped, unclipped) pairs of positions of estimates for the same aggregate."""
    pairs = {}
    for ask, twin in twins.items():
        pairs[estimates[twin].index] = estimates[ask].index
    return tuple(pairs.items())


def _nearest(value: Value) -> Fraction:
    """Half a step for a column whose step was derived from its range; 0 for a declared step."""
    kind = value.numeric
    if isinstance(value.expression, Field) and isinstance(kind, Real) and is_of_range(kind):
        return kind.step / 2
    return Fraction(0)
