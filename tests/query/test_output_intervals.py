# SPDX-License-Identifier: Apache-2.0
"""Values and intervals of expressions; most of their tests are in test_estimate.py."""

from fractions import Fraction

from sfumato.noise import DiscreteLaplace
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.scalar import Arithmetic, Constant, Estimate, Operation
from sfumato.query.estimate import Released
from sfumato.query.output_intervals import ranges_of, value_of

MISS = Fraction(5, 100)


def test_a_multiple_of_a_count_has_a_multiple_of_its_interval() -> None:
    reading = Reading(Kind.NUMBER, Fraction(1))
    part = Released("n", reading, DiscreteLaplace(3), ((7,),), (1,))
    tenfold = Arithmetic(Operation.MULTIPLY, Constant(Fraction(10)), Estimate(0))
    (cell,) = ranges_of(tenfold, [part], [0], MISS)
    low, high = part.interval(0, MISS)
    assert value_of(tenfold, [part], 0, ()) == 70
    assert cell.interval == (10 * low, 10 * high)
    assert not cell.untold
