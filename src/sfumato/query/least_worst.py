# SPDX-License-Identifier: Apache-2.0
"""Splits the cost of a publication so that the largest relative error of its columns is least.

``publication`` calls ``least_worst`` if ``Session.plan`` is given ``sizes=``.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.errors import WrongUse, shown
from sfumato.plan.aggregate import Aggregate, Sum
from sfumato.plan.reading import Kind
from sfumato.plan.scalar import Estimate
from sfumato.plan.statistic import Statistic
from sfumato.query.preview import Preview
from sfumato.query.price import Price

# Errors of means level off at the range, so shares are moved several times.
_ROUNDS = 6
# No question gets less than this share of an equal one; shares are multiples of the second.
_LEAST, _UNIT = Fraction(1, 1000), Fraction(1, 10**6)
_LEVEL = Fraction(95, 100)
_SPREADS = (Statistic.DEVIATION, Statistic.DEVIATION_OF_SAMPLE)


def least_worst(
    statements: Mapping[str, str],
    sizes: Mapping[str, int],
    price: Price,
    preview: Callable[[str, Price], Preview],
) -> dict[str, Fraction]:
    """Returns the share of a total cost for each question, so that all have about the same worst
    relative error.

    ``sizes`` has, for each question, the number of rows of the smallest groups that should still
    have a useful estimate. ``preview`` previews the question of a name at a price. The search
    assumes that the error is inverse to an epsilon (Laplace noise), or to the root of a rho
    (Gaussian noise).

    Raises:
        WrongUse: a question without a size, or a size that is no whole number above 0.
    """
    if not isinstance(sizes, Mapping) or sizes.keys() != statements.keys():
        raise WrongUse(
            "sizes= of other questions than those that are asked.",
            allowed="for each question, about how many rows its groups have",
        )
    for size in sizes.values():
        if type(size) is not int or size < 1:
            raise WrongUse(f"sizes= with {shown(size)}.", allowed="whole numbers above 0")
    equal = Fraction(1, len(statements))
    power = 2 if price.epsilon is None else 1
    shares = dict.fromkeys(statements, equal)
    for _ in range(_ROUNDS):
        moved = {}
        for name in statements:
            asked = replace(price, delta=None).shared(shares[name])
            worst_error = relative_error(preview(name, asked), sizes[name])
            # a question whose errors depend on its answers keeps an equal share
            moved[name] = equal if worst_error is None else shares[name] * worst_error**power
        total = sum(moved.values())
        if not total:
            # at this cost no question has an error that counts
            return shares
        for name, share in moved.items():
            exact = max(share / total, _LEAST * equal)
            shares[name] = max(round(exact / _UNIT), 1) * _UNIT
        total = sum(shares.values())
        shares = {name: share / total for name, share in shares.items()}
    return shares


def relative_error(preview: Preview, size: int) -> Fraction | None:
    """Returns the largest relative 95% error of a column in a group of ``size`` rows.

    The error is divided by the largest value that the column could have there: for a count the
    rows, for a sum the rows times the largest value, for a mean or a deviation the declared range,
    for a variance its square. None if all errors depend on the answers.
    """
    shares: list[Fraction] = []
    for item in preview.planned.question.output.items:
        estimate = item.expression
        if isinstance(estimate, Estimate):
            (line,) = preview.of_estimate(item.name, estimate, _LEVEL, (size,))[:1]
            error: Any = line.get("rank_error", line["half_width"])
            shares.append(Fraction(error) / _largest(preview, estimate, size))
    return max(shares, default=None)


def _largest(preview: Preview, estimate: Estimate, size: int) -> Fraction:
    """The largest value that an estimate can have in a group of so many rows."""
    bounded = preview.planned.bounded
    aggregate: Aggregate = bounded.parts[estimate.index].aggregate
    reading = aggregate.reading(bounded.refinement)
    if isinstance(aggregate, Sum):
        return size * aggregate.largest * aggregate.value.step
    if estimate.statistic is Statistic.COUNT or reading.kind in (Kind.NUMBER, Kind.QUANTILES):
        return Fraction(size)
    if estimate.statistic is Statistic.SUM:
        return size * max(abs(reading.lower), abs(reading.upper))
    if reading.kind is Kind.MEAN or estimate.statistic in (Statistic.MEAN, *_SPREADS):
        return reading.span
    return reading.span**2
