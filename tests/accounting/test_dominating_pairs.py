# SPDX-License-Identifier: Apache-2.0
"""Events as dominating pairs: each kind, counts, and what is left to exact costs."""

from fractions import Fraction

import pytest

from sfumato.accounting.account import account
from sfumato.accounting.dominating_pairs import FixedPlan
from sfumato.accounting.loss import Atoms, Gaussian, Ramp, Replaced, Sampled
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    ApproxEvent,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    FixedSample,
    Group,
    NoisyMax,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Repeated,
    Rule,
    Selection,
    Stream,
    Thresholded,
)
from sfumato.privacy.event import Sampled as SampledEvent
from sfumato.privacy.unit import Relation

L1, L2, LINF = (Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2, Norm.LINF))
GAUSSIAN = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(2), L2)
LAPLACE = ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(4), L1)


def plan(event) -> FixedPlan:
    found = FixedPlan.of(event)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("event", "pair", "times"),
    [
        (LAPLACE, Ramp(0.25, tips=True), 1),
        (
            AdditiveNoise(DiscreteLaplace(10), Distance(Norm.L1, Fraction(5, 2))),
            Atoms.discrete_laplace(0.1, 2),
            1,
        ),
        (AdditiveNoise(DiscreteLaplace(10), LINF, cells=3), Atoms.discrete_laplace(0.1, 1), 3),
        (AdditiveNoise(DiscreteGaussian(3), L2), Atoms.discrete_gaussian(9.0, 1), 1),
        (
            AdditiveNoise(DiscreteGaussian(3), Distance(Norm.L2, Fraction(7, 2))),
            Atoms.discrete_gaussian(9.0, 1),
            3,
        ),
        (AdditiveNoise(DiscreteGaussian(3), LINF, cells=20), Atoms.discrete_gaussian(9.0, 1), 20),
        (Selection(Rule.EXPONENTIAL, Fraction(1, 4), LINF), Ramp(0.5, tips=False), 1),
        (Selection(Rule.PERMUTE_AND_FLIP, Fraction(1, 4), LINF), Atoms.pure(0.5), 1),
        (NoisyMax(DiscreteLaplace(4), LINF), Atoms.pure(0.5), 1),
        (RandomizedResponse(Fraction(1, 2), 7), Atoms.response(0.5, 7), 1),
        (BoundedRange(Fraction(1, 2)), Ramp(0.5, tips=False), 1),
        (PureEvent(Fraction(1, 2)), Atoms.pure(0.5), 1),
        (Group(PureEvent(Fraction(1, 2)), 3), Atoms.pure(1.5), 1),
        (Repeated(Composed((LAPLACE, LAPLACE)), 50), Ramp(0.25, tips=True), 100),
        (SampledEvent(PoissonSample(Fraction(1, 8)), GAUSSIAN), Sampled(Gaussian(0.5), 0.125), 1),
        (
            SampledEvent(PoissonSample(Fraction(1, 8)), LAPLACE),
            Sampled(Ramp(0.25, tips=True), 0.125),
            1,
        ),
        (SampledEvent(PoissonSample(Fraction(1)), LAPLACE), Ramp(0.25, tips=True), 1),
    ],
    ids=str,
)
def test_an_event_is_uses_of_its_pair(event, pair, times: int) -> None:
    assert plan(event).pairs == ((pair, times),)


def test_pure_losses_are_exact_sums_and_gaussians_have_none() -> None:
    assert plan(Repeated(LAPLACE, 1000)).pure == 250
    assert plan(Composed((LAPLACE, GAUSSIAN))).pure is None
    assert plan(Composed((GAUSSIAN, Repeated(GAUSSIAN, 3)))).squared == 1
    assert plan(Stream(GAUSSIAN, steps=4, column=Fraction(1))).squared == Fraction(1, 4)
    assert plan(Composed(())) == FixedPlan()


def test_deltas_of_events_are_kept_beside() -> None:
    shown = Thresholded(AdditiveNoise(DiscreteLaplace(2), LINF, cells=1), threshold=20, keys=1)
    one = account(shown).delta
    assert plan(Repeated(shown, 5)).own.upper == 1 - (1 - one) ** 5 > 0
    approx = ApproxEvent(Fraction(1, 2), Fraction(1, 10**6))
    assert plan(approx).own.upper == Fraction(1, 10**6)
    assert plan(SampledEvent(PoissonSample(Fraction(1, 10)), approx)).own.upper == Fraction(
        1, 10**7
    )


def test_samples_of_fixed_size_have_a_pair_of_both_directions_and_a_lower_end_of_one() -> None:
    replaced = AdditiveNoise(
        DiscreteLaplace(2), Distance(Norm.L1, Fraction(1), Relation.REPLACE_ONE)
    )
    found = plan(SampledEvent(FixedSample(1, 10), replaced))
    inner = Atoms.discrete_laplace(0.5, 1)
    assert found.pairs == ((Replaced(inner, 0.1), 1),) and not found.reached
    assert found.one_way is not None and found.one_way.reached
    assert found.one_way.pairs == ((Sampled(inner, 0.1), 1),)
    assert plan(replaced).one_way is None


def test_samples_of_what_is_no_sum_have_no_lower_end() -> None:
    fixed = plan(SampledEvent(FixedSample(1, 10), RandomizedResponse(Fraction(1), 2)))
    assert fixed.pairs == ((Replaced(Atoms.pure(1.0), 0.1), 1),) and not fixed.one_way.reached


def test_samples_of_several_events_count_as_pure() -> None:
    several = SampledEvent(PoissonSample(Fraction(1, 10)), Repeated(LAPLACE, 2))
    assert plan(several).pairs == ((Atoms.pure(float(account(several).epsilon)), 1),)


def test_what_has_no_pair_is_left_to_exact_costs() -> None:
    far = AdditiveNoise(DiscreteGaussian(30), Distance(Norm.L2, Fraction(25)))
    assert FixedPlan.of(far) is None
    assert FixedPlan.of(Composed((far, LAPLACE))) is None and FixedPlan.of(Repeated(far, 2)) is None


def test_much_gaussian_noise_is_cut_into_pairs_that_floats_hold() -> None:
    parts = plan(ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(1, 100), L2)).parts()
    assert len(parts) == 1 and parts[0].times * parts[0].pair.mu ** 2 == pytest.approx(10**4)
