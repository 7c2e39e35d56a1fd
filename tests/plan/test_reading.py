# SPDX-License-Identifier: Apache-2.0
"""How each aggregate says that its integers are read."""

from fractions import Fraction

from sfumato.metadata.column import Column, Date, Integer, Real
from sfumato.plan.aggregate import CodeQuantiles, CountRows, Mean, Quantiles, Sum, Variance
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.value import Value


def test_readings_turn_integers_into_values():
    age, hours = (
        Value.of(Column(*each))
        for each in (("age", Integer(17, 90)), ("hours", Real(2, 10, step="0.25")))
    )
    assert CountRows().reading(8) == Reading(Kind.NUMBER, Fraction(1, 8))
    assert Sum(hours).reading(2) == Reading(Kind.NUMBER, Fraction(1, 8))
    # a row adds 73, or 32, to its pair
    assert Mean(age).reading(4) == Reading(
        Kind.MEAN, Fraction(1, 4 * 73), Fraction(17), Fraction(73), Fraction(90)
    )
    assert Mean(hours).reading(1) == Reading(
        Kind.MEAN, Fraction(1, 32), Fraction(2), Fraction(8), Fraction(10)
    )
    assert Variance(age).reading(1) == Reading(
        Kind.VARIANCE, Fraction(1, 73**2), Fraction(17), Fraction(73), Fraction(90)
    )
    day = Value.of(Column("day", Date("1970-01-01", "1970-01-31")))
    assert Quantiles(day, (Fraction(1, 2),)).reading(1) == Reading(
        Kind.QUANTILES, Fraction(1), Fraction(0), Fraction(1), Fraction(30), is_date=True
    )


def test_coarse_levels_stand_for_their_middle():
    income = Value.of(Column("income", Integer(0, 4 * 1024 - 1)))
    quantiles = CodeQuantiles(income, (Fraction(1, 2),), leaf=4).reading(1)
    assert (quantiles.lower, quantiles.least, quantiles.upper) == (Fraction(3, 2), 0, 4 * 1024 - 1)
    assert (quantiles.span, quantiles.rounding) == (4, Fraction(3, 2))
    every = CodeQuantiles(income, (Fraction(1, 2),)).reading(1)
    assert (every.lower, every.span, every.rounding) == (0, 1, 0)
    coarse = Variance(income, 2**10).reading(1)
    assert (coarse.lower, coarse.rounding) == (Fraction(3, 2), Fraction(3, 2))
    assert Variance(income).reading(1).rounding == 0
