# SPDX-License-Identifier: Apache-2.0
"""Expressions in the form by which their intervals are computed; coverage is in test_estimate."""

from fractions import Fraction

from sfumato.plan.scalar import Arithmetic, Constant, Estimate, Operation
from sfumato.plan.statistic import Statistic
from sfumato.query.cell_interval import simplified


def test_a_sum_over_the_count_of_its_release_is_a_mean_also_inside_an_expression() -> None:
    total, count = Estimate(0, Statistic.SUM), Estimate(0, Statistic.COUNT)
    ratio = Arithmetic(Operation.DIVIDE, total, count)
    mean = Estimate(0, Statistic.MEAN)
    one = Constant(Fraction(1))
    assert simplified(ratio) == mean
    assert simplified(Arithmetic(Operation.SUBTRACT, ratio, one)) == Arithmetic(
        Operation.SUBTRACT, mean, one
    )
    other = Arithmetic(Operation.DIVIDE, total, Estimate(1, Statistic.COUNT))
    assert simplified(other) == other
