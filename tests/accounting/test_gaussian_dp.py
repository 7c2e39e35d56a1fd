# SPDX-License-Identifier: Apache-2.0
"""The mu of events: below every corner of the exact trade-off curve of small instances."""

from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import gaussian_dp
from sfumato.accounting.convert import gaussian_from_pure
from sfumato.accounting.gaussian_dp import mu_squared
from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    ApproxEvent,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Group,
    Norm,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Relation,
    Repeated,
    Rule,
    Sampled,
    Selection,
    Stream,
)
from sfumato.privacy.guarantee import PureDP
from tests.accounting import laws
from tests.accounting.laws import number

EPSILONS = st.fractions(min_value=Fraction(1, 10), max_value=4)
BITS = 600


def corners(one: laws.Law, other: laws.Law) -> list[tuple[arb, arb]]:
    """False positives and false negatives of the best tests (Neyman and Pearson)."""
    pairs = [(one.get(x, laws.NOTHING), other.get(x, laws.NOTHING)) for x in {*one, *other}]
    pairs = sorted(
        ((p, q) for p, q in pairs if float(p + q) > 1e-25),
        key=lambda each: float(each[1] / (each[0] + each[1])),
    )
    found, alpha, missed = [], arb(0), arb(1)
    for p, q in reversed(pairs):
        alpha, missed = alpha + p, missed - q
        found.append((alpha, missed))
    return found[:-1]


def dominated(event: object, one: laws.Law, other: laws.Law) -> bool:
    """Whether G_mu is below every corner, hence below the convex curve through them."""
    root, mu = arb(2).sqrt(), number(mu_squared(event)).sqrt()
    with ctx.workprec(BITS):
        for alpha, missed in corners(one, other):
            if bool(alpha < arb("1e-15")) or bool(missed < arb("1e-15")):
                continue
            shift = -(2 * alpha - 1).erfinv() * root - mu
            if not bool((-shift / root).erfc() / 2 <= missed + arb("1e-14")):
                return False
    return True


@given(EPSILONS, st.integers(2, 5), st.sampled_from([Fraction(1), Fraction(3)]))
@settings(deadline=None)
def test_no_event_is_easier_to_see_than_its_mu_says(epsilon, categories, scale):
    report = RandomizedResponse(epsilon, categories)
    assert dominated(
        report, laws.response(0, epsilon, categories), laws.response(1, epsilon, categories)
    )
    choice = Selection(Rule.EXPONENTIAL, epsilon / 2, Distance(Norm.LINF, Fraction(1)))
    assert dominated(
        choice, laws.exponential((0, 0, 0), epsilon / 2), laws.exponential((1, -1, 0), epsilon / 2)
    )
    noise = AdditiveNoise(DiscreteLaplace(scale), Distance(Norm.L1, Fraction(2)))
    assert dominated(
        noise, laws.shifted(laws.laplace(scale), 0), laws.shifted(laws.laplace(scale), 2)
    )


def test_a_mu_of_epsilon_would_be_noticed(monkeypatch):
    monkeypatch.setattr(
        gaussian_dp,
        "gaussian_from_pure",
        lambda one: gaussian_from_pure(PureDP(one.epsilon * Fraction(8, 10))),
    )
    assert not dominated(
        RandomizedResponse(Fraction(1), 2),
        laws.response(0, Fraction(1), 2),
        laws.response(1, Fraction(1), 2),
    )


def test_discrete_gaussian_noise_is_easier_to_see_than_sensitivity_over_sigma(monkeypatch):
    noise = AdditiveNoise(DiscreteGaussian(sigma_squared=1), Distance(Norm.L2, Fraction(1)))
    with pytest.raises(InvalidDeclaration):
        mu_squared(noise)
    # what a rule that takes it for the continuous law would promise
    monkeypatch.setitem(
        gaussian_dp._RULES,
        AdditiveNoise,
        lambda event: event.distance.value / event.noise.sigma_squared,
    )
    law = laws.gaussian(Fraction(1))
    assert not dominated(noise, laws.shifted(law, 0), laws.shifted(law, 1))


def test_squares_add_exactly():
    noise = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(20), Distance(Norm.L2, Fraction(1)))
    assert mu_squared(Repeated(noise, 400)) == 1
    assert mu_squared(Composed((noise, noise))) == Fraction(2, 400)
    assert mu_squared(Group(noise, 20)) == 1
    assert mu_squared(Stream(noise, steps=1, column=Fraction(1))) == Fraction(1, 400)
    assert mu_squared(Composed(())) == 0
    assert mu_squared(BoundedRange(Fraction(2))) == mu_squared(PureEvent(Fraction(1)))
    flip = Selection(Rule.PERMUTE_AND_FLIP, Fraction(1), Distance(Norm.LINF, Fraction(1)))
    assert mu_squared(flip) == mu_squared(PureEvent(Fraction(2)))
    both = ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(2), Distance(Norm.L1, Fraction(1)))
    assert mu_squared(both) == mu_squared(PureEvent(Fraction(1, 2)))


@pytest.mark.parametrize(
    "event",
    [
        ApproxEvent(Fraction(1), Fraction(1, 10**6)),
        Sampled(
            PoissonSample(Fraction(1, 2)),
            ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(20), Distance(Norm.L2, Fraction(1))),
        ),
        Composed((PureEvent(Fraction(1)), PureEvent(Fraction(1), Relation.REPLACE_ONE))),
        "an event",
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_has_no_proved_mu_raises(event):
    with pytest.raises(InvalidDeclaration):
        mu_squared(event)
