# SPDX-License-Identifier: Apache-2.0
"""The error of an output expression that is linear in released estimates, up to rounding.

``preview`` uses it for the error of an expression, ``target`` for the error that is left for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Compare,
    Estimate,
    FloorDivide,
    Operation,
    Scalar,
    leaves,
)
from sfumato.sql.post_expressions import rounded


@dataclass(frozen=True, slots=True)
class LinearForm:
    """A column of an answer as a weighted sum of estimates, by which its error follows from theirs.

    The half-width of the expression is at most the sum of those of the estimates, each times its
    weight (an absolute value), plus ``slack`` for rounding. ``has_offset`` is set if a constant is
    added.
    """

    weights: Mapping[Estimate, Fraction]
    slack: Fraction = Fraction(0)
    has_offset: bool = False

    def half_width(self, halves: Mapping[Estimate, Fraction]) -> Fraction:
        """Returns the half-width of the expression's interval, given the half-widths of its
        estimates.

        >>> LinearForm({Estimate(0): Fraction(2)}).half_width({Estimate(0): Fraction(5)})
        Fraction(10, 1)
        """
        parts = [weight * halves[estimate] for estimate, weight in self.weights.items()]
        return sum(parts, self.slack)

    def _plus(self, other: "LinearForm") -> "LinearForm":
        weights = dict(self.weights)
        for estimate, weight in other.weights.items():
            weights[estimate] = weights.get(estimate, Fraction(0)) + weight
        has_offset = self.has_offset or other.has_offset
        return LinearForm(weights, self.slack + other.slack, has_offset)

    def _times(self, factor: Fraction) -> "LinearForm":
        weights = {estimate: weight * factor for estimate, weight in self.weights.items()}
        return LinearForm(weights, self.slack * factor, self.has_offset)


def linear_form(expression: Scalar) -> LinearForm | None:
    """Returns an expression over released numbers as a weighted sum of estimates; None if it is not
    linear.

    >>> from sfumato.plan.scalar import Constant
    >>> hundredfold = Arithmetic(Operation.MULTIPLY, Constant(Fraction(100)), Estimate(0))
    >>> linear_form(hundredfold).weights[Estimate(0)]
    Fraction(100, 1)
    """
    match expression:
        case Estimate():
            return LinearForm({expression: Fraction(1)})
        case Arithmetic(Operation.ADD | Operation.SUBTRACT, left, right):
            first, second = linear_form(left), linear_form(right)
            if first is None or second is None:
                return None
            return first._plus(second)
        case Arithmetic(Operation.MULTIPLY, left, right):
            factor = _constant(left)
            if factor is None:
                return _scaled(left, _constant(right))
            return _scaled(right, factor)
        case Arithmetic(Operation.DIVIDE, left, right):
            divisor = _constant(right)
            return _scaled(left, 1 / divisor if divisor else None)
        case FloorDivide(operand, divisor):
            return _loosened(_scaled(operand, Fraction(1, divisor)), Fraction(1))
        case Case():
            return _rounding(expression)
        case _:
            constant = _constant(expression)
            if constant is None:
                return None
            return LinearForm({}, has_offset=bool(constant))


def _constant(expression: Scalar) -> Fraction | None:
    """The value of an expression of constants; None for any other, and for what is no number."""
    if leaves(expression):
        return None
    value = evaluate(expression, lambda leaf: None)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    return Fraction(value)


def _scaled(expression: Scalar, factor: Fraction | None) -> LinearForm | None:
    """The linear form of an expression times a factor."""
    form = linear_form(expression)
    if form is None or factor is None:
        return None
    return form._times(abs(factor))


def _loosened(form: LinearForm | None, slack: Fraction) -> LinearForm | None:
    """A linear form with more slack."""
    if form is None:
        return None
    return LinearForm(form.weights, form.slack + slack, form.has_offset)


def _rounding(expression: Case) -> LinearForm | None:
    """The linear form of ROUND, which is a CASE; None for any other CASE, which may have jumps."""
    match expression.branches:
        case ((Compare(_, operand, _), Arithmetic(_, _, step)),):
            size = _constant(step)
            if size and expression == rounded(operand, size):
                # the estimate and an end of its interval are each moved by at most half a step
                return _loosened(linear_form(operand), size)
    return None
