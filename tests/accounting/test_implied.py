# SPDX-License-Identifier: Apache-2.0
"""What plans imply, and how they are written; curves of whole plans: test_curve."""

from fractions import Fraction

import pytest

from sfumato.accounting.closed import Converted
from sfumato.accounting.implied import find_pairs, gather_equal, imply_curve, is_sharp
from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteGaussian, RoundedGaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    ApproxEvent,
    BoundedRange,
    Composed,
    PoissonSample,
    PureEvent,
    Repeated,
    Sampled,
)

ONE, TWO = PureEvent(Fraction(1)), PureEvent(Fraction(2))
UNIT = Distance(Norm.L2, Fraction(1))
SAMPLE = PoissonSample(Fraction(1, 10))


def test_equal_events_are_gathered() -> None:
    nested = Composed((ONE, Repeated(Composed((ONE, TWO)), 3), Composed(())))
    assert gather_equal(nested) == Composed((Repeated(ONE, 4), Repeated(TWO, 3)))
    assert gather_equal(Composed((Repeated(ONE, 1),))) == ONE
    assert gather_equal(Composed(())) == Composed(())


def test_losses_beyond_a_pair_are_no_error() -> None:
    assert find_pairs(PureEvent(Fraction(1000))) is None
    assert find_pairs(ONE) is not None


def test_the_least_of_cost_and_divergences_is_implied() -> None:
    # 100 ranges of 0.1: 100 eta^2 / 8 = 0.125 is their rho, and rho + 2 sqrt(rho ln 1e6) = 2.75
    implied = imply_curve(Repeated(BoundedRange(Fraction(1, 10)), 100)).epsilon("1e-6").upper
    assert 2.3 < implied < 2.5
    assert imply_curve(TWO).epsilon("1e-30").upper == 2


def test_an_event_with_a_delta_of_its_own_has_its_cost() -> None:
    event = ApproxEvent(Fraction(1), Fraction(1, 10**9))
    assert isinstance(imply_curve(event), Converted)


def test_an_event_without_a_rule_implies_nothing() -> None:
    with pytest.raises(InvalidDeclaration):
        imply_curve(AdditiveNoise(DiscreteGaussian(3), Distance(Norm.L1, Fraction(1))))


def test_rounded_gaussians_are_as_sharp_as_their_pairs() -> None:
    rounded = AdditiveNoise(RoundedGaussian(Fraction(2**20)), Distance(Norm.L2, Fraction(2**40)))
    narrow = AdditiveNoise(RoundedGaussian(Fraction(2**20)), Distance(Norm.L2, Fraction(2**50)))
    for event, sharp in (
        (Sampled(SAMPLE, rounded), True),
        (Composed((Sampled(SAMPLE, rounded), Sampled(SAMPLE, narrow))), False),
        (Repeated(BoundedRange(Fraction(1, 10)), 2), False),
    ):
        plan = find_pairs(event)
        assert plan is not None and is_sharp(plan) is sharp
