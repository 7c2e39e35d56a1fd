# SPDX-License-Identifier: Apache-2.0
"""Plans whose privacy curve once overflowed, ended in no number, or took minutes."""

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.decimals import ONE, log_above
from sfumato.accounting.loss import Atoms
from sfumato.accounting.loss import Sampled as SampledPair
from sfumato.errors import InvalidNumber
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Event,
    FixedSample,
    Norm,
    PoissonSample,
    PureEvent,
    Relation,
    Repeated,
    Sampled,
)

UNIT = Fraction(1)


def gaussian(sigma: str) -> Event:
    return ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(sigma), Distance(Norm.L2, UNIT))


def laplace(scale: str) -> Event:
    return ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(scale), Distance(Norm.L1, UNIT))


def sgd(sigma: str, rate: str, steps: int) -> Event:
    return Repeated(Sampled(PoissonSample(Fraction(rate)), gaussian(sigma)), steps)


@pytest.mark.parametrize(
    ("event", "delta", "most"),
    [
        (sgd("1.4", "0.000101", 100_000), "1e-12", 0.2),
        (sgd("1.0", "0.000117", 10_000), "1e-15", 0.8),
    ],
)
def test_a_tail_that_outweighs_the_body_overflows_nothing(
    event: Event, delta: str, most: float
) -> None:
    # the tilt was chosen by an outline that ended before the lattice did
    found = privacy_curve(event).epsilon(delta)
    assert 0 < found.lower <= found.upper < most


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (sgd("0.08", "0.011542", 3), "1e-13"),
        (sgd("0.2", "0.022806", 3), "1e-10"),
        (sgd("0.6", "0.01401", 5), "1e-15"),
        (sgd("1.0", "0.1", 10), "1e-40"),
        (sgd("0.140157", "0.178996", 85_972), "1e-6"),
        (Composed((gaussian("1"), laplace("2"))), "1e-60"),
    ],
)
def test_a_delta_too_small_for_rounding_has_an_epsilon_all_the_same(
    event: Event, delta: str
) -> None:
    found = privacy_curve(event).epsilon(delta)
    assert 0 <= found.lower <= found.upper < 1e9


@pytest.mark.parametrize("scale", ["6.5", "6.6", "6.61", "6.7", "0.2", "40"])
@pytest.mark.parametrize("uses", [2, 3, 17])
@pytest.mark.parametrize("delta", ["1e-4", "1e-8", "1e-14"])
def test_few_uses_of_laplace_noise_on_integers_divide_by_nothing(
    scale: str, uses: int, delta: str
) -> None:
    noise = AdditiveNoise(DiscreteLaplace(Fraction(scale)), Distance(Norm.L1, UNIT))
    found = privacy_curve(Repeated(noise, uses)).epsilon(delta)
    assert 0 <= found.lower <= found.upper <= uses / float(scale) * (1 + 1e-12)


@pytest.mark.parametrize(
    "event",
    [
        Repeated(laplace("0.3272"), 752_129),
        Repeated(laplace("0.05"), 10**7),
        Repeated(Sampled(PoissonSample(Fraction("0.457")), laplace("0.0857")), 521_583),
        Repeated(Composed((laplace("1"), BoundedRange(UNIT), gaussian("1"))), 836_379),
    ],
    ids=str,
)
def test_plans_that_hide_nothing_end_soon(event: Event) -> None:
    # their lattices had millions of points, for an epsilon of many thousands
    found = privacy_curve(event).epsilon("1e-9")
    assert 1000 < found.upper < 1e9


@pytest.mark.parametrize("sigma", [10**5, 10**6])
def test_wide_discrete_gaussians_are_not_gone_through_point_by_point(sigma: int) -> None:
    one = AdditiveNoise(DiscreteGaussian(sigma), Distance(Norm.L2, UNIT), cells=1)
    alone = privacy_curve(one).epsilon("1e-8")
    assert 0 <= alone.lower <= alone.upper < 1e-3
    assert alone.upper <= privacy_curve(Repeated(one, 100)).epsilon("1e-8").upper < 1e-2


def test_the_logarithm_of_one_has_few_digits() -> None:
    # next to 0 there is only a number of 10^9 digits
    assert log_above(ONE) == 0


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [(Repeated(laplace("1"), 10_000), 9999), (Repeated(PureEvent(UNIT), 3000), 2999)],
    ids=str,
)
def test_a_delta_that_floats_cannot_hold_is_not_said_to_be_zero(event: Event, epsilon: int) -> None:
    # all losses at their largest: below the pure sum some delta is left, however small
    found = privacy_curve(event).delta(epsilon)
    assert found.lower == 0.0 < found.upper < 1e-280


@pytest.mark.parametrize("sigma", ["1", "0.00001"])
def test_a_huge_epsilon_is_no_number_of_millions_of_digits(sigma: str) -> None:
    found = privacy_curve(gaussian(sigma)).delta(10**11)
    assert 0 <= found.lower < found.upper < 1e-300


@pytest.mark.parametrize("sigma", ["0.001", "0.00001"])
def test_gaussians_that_hide_nothing_have_their_epsilon(sigma: str) -> None:
    # delta = P(Z > t) up to e^-mu, t = 4.753424... the point of 1e-6; epsilon = mu^2/2 + mu t
    mu = 1 / Fraction(sigma)
    found, rough = (
        privacy_curve(gaussian(sigma)).epsilon("1e-6"),
        float(mu**2 / 2 + mu * Fraction("4.7534243088229")),
    )
    assert rough * (1 - 1e-5) < found.lower <= found.upper < rough * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [Fraction(1, 10**150), Fraction(1, 10**200)])
@pytest.mark.parametrize("more", [(), (laplace("1"),)])
def test_gaussians_beyond_all_floats_are_refused(sigma: Fraction, more: tuple[Event, ...]) -> None:
    noise = ContinuousNoise(ContinuousLaw.GAUSSIAN, sigma, Distance(Norm.L2, UNIT))
    with pytest.raises(InvalidNumber, match="hides"):
        privacy_curve(Composed((noise, *more)))


@pytest.mark.parametrize("norm", [Norm.L2, Norm.LINF])
def test_wide_noise_on_an_integer_that_cannot_move_has_a_curve(norm: Norm) -> None:
    still = AdditiveNoise(DiscreteGaussian(10**5), Distance(norm, UNIT / 2), cells=1)
    assert privacy_curve(still).epsilon("1e-6").upper < 1e-4


def test_a_fixed_sample_of_nearly_nothing_is_a_number() -> None:
    one = ContinuousNoise(
        ContinuousLaw.GAUSSIAN, UNIT, Distance(Norm.L2, UNIT, Relation.REPLACE_ONE)
    )
    found = privacy_curve(Sampled(FixedSample(1, 10**60), one)).delta(Fraction(1, 10**60))
    # a share of the Gaussian delta at ln 2, which is 0.1906
    assert 0 <= found.lower <= 1.906e-61 <= found.upper < 1e-50


@pytest.mark.parametrize(
    "event",
    [
        Repeated(PureEvent(Fraction(1, 10**320)), 1000),
        Repeated(Sampled(PoissonSample(Fraction(1, 10**200)), laplace("1e200")), 1000),
        Repeated(Sampled(PoissonSample(Fraction(1, 10**200)), gaussian("1")), 1000),
    ],
    ids=str,
)
def test_losses_that_floats_cannot_hold_have_a_curve(event: Event) -> None:
    curve = privacy_curve(event)
    for found in (curve.epsilon("1e-6"), curve.delta("0")):
        assert 0 <= (found.lower or 0) <= found.upper < 1e-8


@pytest.mark.parametrize("missing", ["1e-6", "7e-12", "3e-15"])
def test_what_is_stated_of_a_loss_holds_for_samples_of_nearly_all(missing: str) -> None:
    # the least loss is ln(1 - rate + ...), and 1 - rate is not what the float of the rate says
    rate, epsilon = 1 - Fraction(missing) / 3, 40
    pair = SampledPair(Atoms.pure(epsilon), float(rate))
    with ctx.workprec(200):
        exact = (1 - _ball(rate) + _ball(rate) * arb(-epsilon).exp()).log()
        assert abs(arb(float(pair.atoms()[0][0])) - exact) <= pair.rounding.at(
            float(abs(exact).upper())
        )


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))
