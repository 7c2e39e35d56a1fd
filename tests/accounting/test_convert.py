# SPDX-License-Identifier: Apache-2.0
"""Conversions agree with a direct optimisation, and never promise more than is true."""

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import approx_from_zcdp, convert, zcdp_from_pure
from sfumato.accounting.convert import (
    CONVERSIONS,
    approx_from_approx,
    approx_from_gaussian,
    approx_from_pure,
    approx_from_range,
    approx_from_renyi,
    gaussian_from_pure,
    gaussian_from_range,
    pure_from_range,
    range_from_pure,
    renyi_from_gaussian,
    renyi_from_pure,
    renyi_from_range,
    renyi_from_renyi,
    renyi_from_zcdp,
    tightest_zcdp_from_pure,
    zcdp_from_gaussian,
    zcdp_from_range,
)
from sfumato.accounting.zcdp import conversion_cost
from sfumato.errors import InvalidNumber
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from tests.accounting.laws import hockey_stick, number, renyi, response
from tests.noise.truth import PRECISION

DELTAS = st.sampled_from([Fraction(1, 10**power) for power in (2, 4, 6, 9, 12)])
KINDS = (PureDP, BoundedRangeDP, ApproxDP, ZeroConcentratedDP, RenyiDP, GaussianDP)
# what is not true, pair by pair: (0, delta)-DP lets everything be shown with probability delta,
# which no other kind allows; zCDP and Renyi let the loss be unbounded, and their curves are not
# those of a Gaussian
REFUSED = {
    (ApproxDP, PureDP),
    (ApproxDP, BoundedRangeDP),
    (ApproxDP, ZeroConcentratedDP),
    (ApproxDP, RenyiDP),
    (ApproxDP, GaussianDP),
    (ZeroConcentratedDP, PureDP),
    (ZeroConcentratedDP, BoundedRangeDP),
    (ZeroConcentratedDP, GaussianDP),
    (RenyiDP, PureDP),
    (RenyiDP, BoundedRangeDP),
    (RenyiDP, ZeroConcentratedDP),
    (RenyiDP, GaussianDP),
    (GaussianDP, PureDP),
    (GaussianDP, BoundedRangeDP),
}
SAME = {(kind, kind) for kind in KINDS} - {(ApproxDP, ApproxDP), (RenyiDP, RenyiDP)}
LOSSES = st.fractions(min_value=Fraction(1, 1000), max_value=8)
# laws.renyi takes the order as a ball of 53 bits: sixteenths are exact in it
ORDERS = st.integers(17, 960).map(lambda sixteenths: Fraction(sixteenths, 16))
SLACK = arb("1e-25")


def test_every_ordered_pair_has_its_conversion_or_is_refused():
    pairs = {(source, target) for source in KINDS for target in KINDS}
    assert set(CONVERSIONS) == pairs - REFUSED - SAME
    made = {name for name in vars(convert) if "_from_" in name}
    assert {rule.__name__ for rule in CONVERSIONS.values()} | {"zcdp_from_pure"} == made


@pytest.mark.parametrize(
    "pair", list(CONVERSIONS), ids=lambda pair: f"{pair[0].__name__}-{pair[1].__name__}"
)
def test_a_conversion_gives_the_kind_it_is_listed_under(pair):
    source, target = pair
    given = source(4, "0.5") if source in (RenyiDP, ApproxDP) else source(1)
    more = (
        []
        if (source, target) == (PureDP, ApproxDP)
        else [Fraction("0.7")]
        if target is ApproxDP
        else []
    )
    result = CONVERSIONS[pair](given, *([3] if target is RenyiDP else more))
    assert type(result) is target


def two_losses(eta: Fraction, top: Fraction) -> tuple[dict, dict]:
    """The pair whose loss is ``top`` or ``top - eta``: the extreme ones of a bounded range."""
    with ctx.workprec(PRECISION):
        high, low = number(top).exp(), number(top - eta).exp()
        q = (1 - low) / (high - low)
        return {0: q * high, 1: (1 - q) * low}, {0: q, 1: 1 - q}


def tops(eta: Fraction) -> list[Fraction]:
    return [eta * Fraction(step, 40) for step in range(1, 40)]


@given(LOSSES, ORDERS)
@settings(deadline=None)
def test_randomised_response_has_the_largest_renyi_divergence(epsilon, order):
    true = renyi(
        response(0, epsilon, 2), response(1, epsilon, 2), fmpq(order.numerator, order.denominator)
    )
    stated = number(renyi_from_pure(PureDP(epsilon), order).epsilon)
    with ctx.workprec(PRECISION):
        assert bool(stated > true - SLACK) and bool(stated - true < SLACK)
        # and every pair of losses within epsilon has less
        for top in tops(2 * epsilon)[::4]:
            if abs(top) <= epsilon and abs(top - 2 * epsilon) <= epsilon:
                pair = two_losses(2 * epsilon, top)
                assert bool(
                    renyi(*pair, fmpq(order.numerator, order.denominator)) <= stated + SLACK
                )


@given(LOSSES, ORDERS)
@settings(deadline=None)
def test_a_bounded_range_has_no_larger_renyi_divergence(eta, order):
    stated = number(renyi_from_range(BoundedRangeDP(eta), order).epsilon)
    exponent = fmpq(order.numerator, order.denominator)
    reached = [renyi(*two_losses(eta, top), exponent) for top in tops(eta)]
    with ctx.workprec(PRECISION):
        assert all(bool(each <= stated + SLACK) for each in reached)
        # tight: some split of the range comes within a hundredth
        assert any(bool(each > stated * arb("0.99")) for each in reached) or order * eta > 8
        assert bool(stated <= number(order * zcdp_from_range(BoundedRangeDP(eta)).rho) + SLACK)


def test_half_the_range_would_be_noticed():
    reached = renyi(*two_losses(Fraction(1), Fraction(1, 2)), fmpq(8))
    assert not bool(reached <= number(renyi_from_range(BoundedRangeDP("0.5"), 8).epsilon))


@given(LOSSES, ORDERS)
@settings(deadline=None)
def test_the_tightest_zcdp_is_above_every_order_of_randomised_response(epsilon, order):
    tightest = tightest_zcdp_from_pure(PureDP(epsilon))
    assert tightest.implies(zcdp_from_pure(PureDP(epsilon)))
    true = renyi(
        response(0, epsilon, 2), response(1, epsilon, 2), fmpq(order.numerator, order.denominator)
    )
    near_one = renyi(response(0, epsilon, 2), response(1, epsilon, 2), fmpq(2**20 + 1, 2**20))
    with ctx.workprec(PRECISION):
        assert bool(true <= number(order * tightest.rho) + SLACK)
        # and reached in the limit
        assert bool(near_one >= number(tightest.rho) * arb("0.9999"))


def trade_off(mu_squared: Fraction, alpha: arb) -> arb:
    """G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)."""
    root = arb(2).sqrt()
    point = -(2 * alpha - 1).erfinv() * root
    return ((number(mu_squared).sqrt() - point) / root).erfc() / 2


@given(st.fractions(min_value=Fraction(1, 100), max_value=12))
@settings(deadline=None)
def test_a_pure_loss_is_no_easier_to_see_than_its_gaussian(epsilon):
    mu_squared = gaussian_from_pure(PureDP(epsilon)).mu_squared
    with ctx.workprec(400):
        corner = 1 / (1 + number(epsilon).exp())
        # below the corner of randomised response, (c, c); convexity does the rest
        assert bool(trade_off(mu_squared, corner) <= corner)
        assert bool(trade_off(mu_squared * (1 - Fraction(1, 10**9)), corner) > corner)


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=12),
    st.fractions(min_value="1/1000", max_value="999/1000"),
)
@settings(deadline=None)
def test_a_bounded_range_is_no_easier_to_see_than_its_gaussian(eta, place):
    mu_squared = gaussian_from_range(BoundedRangeDP(eta)).mu_squared
    with ctx.workprec(400):
        alpha = number(place)
        logistic = (1 - alpha) / (1 + (number(eta).exp() - 1) * alpha)
        assert bool(trade_off(mu_squared, alpha) <= logistic + SLACK)


def test_a_smaller_mu_of_a_range_would_be_noticed():
    mu_squared = gaussian_from_range(BoundedRangeDP(2)).mu_squared * Fraction(99, 100)
    with ctx.workprec(400):
        alpha = 1 / (1 + arb(1).exp())
        assert not bool(
            trade_off(mu_squared, alpha) <= (1 - alpha) / (1 + (arb(2).exp() - 1) * alpha)
        )


def test_a_huge_loss_has_a_simple_mu():
    assert gaussian_from_pure(PureDP(20_000)).mu_squared == 160_000
    assert gaussian_from_pure(PureDP(10_000)).mu_squared < 80_000


@given(
    LOSSES,
    st.fractions(min_value=0, max_value=Fraction(1, 2)),
    st.fractions(min_value=0, max_value=1),
)
@settings(deadline=None)
def test_an_approximate_guarantee_holds_at_every_larger_delta(epsilon, own, part):
    delta = own + (1 - own) * part
    stated = approx_from_approx(ApproxDP(epsilon, own), delta)
    with ctx.workprec(PRECISION):
        leaky = {
            outcome: (1 - number(own)) * mass for outcome, mass in response(0, epsilon, 2).items()
        }
        other = {
            outcome: (1 - number(own)) * mass for outcome, mass in response(1, epsilon, 2).items()
        }
        pair = (leaky | {"first": number(own)}, other | {"second": number(own)})
        assert bool(hockey_stick(*pair, stated.epsilon) <= number(delta) + SLACK)
        if stated.epsilon > Fraction(1, 10**6):
            # tight: a little less loses more
            assert bool(
                hockey_stick(*pair, stated.epsilon * (1 - Fraction(1, 10**9))) > number(delta)
            )


def test_a_smaller_delta_does_not_follow():
    with pytest.raises(InvalidNumber):
        approx_from_approx(ApproxDP(1, "1e-6"), "1e-7")
    assert approx_from_approx(ApproxDP(1, "1e-6"), "1e-6") == ApproxDP(1, "1e-6")


@given(LOSSES, DELTAS)
@settings(deadline=None)
def test_a_bounded_range_keeps_its_delta(eta, delta):
    stated = approx_from_range(BoundedRangeDP(eta), delta)
    with ctx.workprec(PRECISION):
        for top in tops(eta):
            assert bool(
                hockey_stick(*two_losses(eta, top), stated.epsilon) <= number(delta) + SLACK
            )
    assert stated.implies(approx_from_pure(pure_from_range(BoundedRangeDP(eta)), delta))


def test_the_delta_of_a_range_is_reached():
    eta = Fraction(2)
    stated = approx_from_range(BoundedRangeDP(eta), Fraction(1, 100))
    less = stated.epsilon * Fraction(999, 1000)
    reached = [
        hockey_stick(*two_losses(eta, eta * Fraction(step, 400)), less) for step in range(1, 400)
    ]
    assert any(bool(each > number(Fraction(1, 100))) for each in reached)


def test_pure_and_range_go_through_each_other_at_twice_the_loss():
    assert range_from_pure(PureDP("0.1")) == BoundedRangeDP("0.2")
    assert pure_from_range(BoundedRangeDP("0.2")) == PureDP("0.2")


def test_a_thousand_thousandths_are_one_and_no_delta_is_no_infinity():
    assert approx_from_pure(PureDP(1000 * Fraction(1, 1000))) == ApproxDP(1, 0)
    assert approx_from_range(BoundedRangeDP(3)) == ApproxDP(3, 0)
    for rule, nothing in [
        (approx_from_zcdp, ZeroConcentratedDP(0)),
        (approx_from_gaussian, GaussianDP(0)),
    ]:
        assert rule(nothing, Fraction(0)) == ApproxDP(0, 0)
    assert approx_from_renyi(RenyiDP(2, 0), 0) == ApproxDP(0, 0)


@pytest.mark.parametrize("delta", [0, -1, "1.5", float("nan")])
@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        (approx_from_zcdp, ZeroConcentratedDP(1)),
        (approx_from_gaussian, GaussianDP(1)),
        (approx_from_renyi, RenyiDP(2, 1)),
    ],
)
def test_without_a_delta_no_epsilon_follows(rule, cost, delta):
    with pytest.raises(InvalidNumber):
        rule(cost, delta)


def test_everything_is_allowed_at_delta_one():
    for kind in (PureDP, BoundedRangeDP, ZeroConcentratedDP, GaussianDP):
        assert CONVERSIONS[kind, ApproxDP](kind(50), Fraction(1)) == ApproxDP(0, 1)
    assert approx_from_renyi(RenyiDP(2, 50), 1) == ApproxDP(0, 1)


def gaussian_delta(mu_squared: Fraction, epsilon: Fraction) -> arb:
    """Balle and Wang (2018), Theorem 8, in 2000 bits."""
    with ctx.workprec(2000):
        mu, loss, root = number_of(mu_squared).sqrt(), number_of(epsilon), arb(2).sqrt()
        near, far = (
            ((loss / mu - mu / 2) / root).erfc() / 2,
            ((loss / mu + mu / 2) / root).erfc() / 2,
        )
        return near - loss.exp() * far


def number_of(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


@given(st.fractions(min_value=Fraction(1, 10**5), max_value=400), DELTAS)
@settings(deadline=None)
def test_the_gaussian_curve_is_never_exceeded(mu_squared, delta):
    stated = approx_from_gaussian(GaussianDP(mu_squared), delta).epsilon
    with ctx.workprec(2000):
        assert bool(gaussian_delta(mu_squared, stated) <= number_of(delta))
        if stated > 0:
            assert bool(
                gaussian_delta(mu_squared, stated * (1 - Fraction(1, 10**12))) > number_of(delta)
            )


def test_a_wrong_normal_tail_would_be_noticed(monkeypatch):
    real = convert.normal_tail
    monkeypatch.setattr(
        convert, "normal_tail", lambda x: tuple(each * Fraction(99, 100) for each in real(x))
    )
    stated = approx_from_gaussian(GaussianDP(1), "1e-6").epsilon
    assert not bool(gaussian_delta(Fraction(1), stated) <= number_of(Fraction(1, 10**6)))


@pytest.mark.parametrize(
    ("epsilon", "sigma"),
    [("0.01", 243.8), ("0.1", 30.75), ("1", 3.7306), ("5", 0.892), ("10", 0.4999), ("20", 0.290)],
)
def test_the_gaussian_curve_has_the_published_noise(epsilon, sigma):
    # the least sigma at delta = 1e-5 (Balle and Wang 2018; computed by their released code)
    stated = approx_from_gaussian(GaussianDP(1 / Fraction(str(sigma)) ** 2), "1e-5").epsilon
    assert float(stated) == pytest.approx(float(epsilon), rel=3e-3)


def test_a_million_gaussians_of_sigma_hundred():
    # 96.7173: the notes' truth, which two other libraries bracket
    assert (
        round(
            float(approx_from_gaussian(GaussianDP(10**6 * Fraction(1, 10**4)), "1e-6").epsilon), 4
        )
        == 96.7173
    )


def test_what_is_gaussian_is_concentrated_by_half():
    assert zcdp_from_gaussian(GaussianDP("0.5")) == ZeroConcentratedDP("0.25")
    assert renyi_from_gaussian(GaussianDP("0.5"), 8) == RenyiDP(8, 2)
    assert renyi_from_zcdp(ZeroConcentratedDP("0.25"), 8) == RenyiDP(8, 2)


def test_a_renyi_order_goes_down_only():
    assert renyi_from_renyi(RenyiDP(8, 1), 3) == RenyiDP(3, 1)
    with pytest.raises(InvalidNumber):
        renyi_from_renyi(RenyiDP(8, 1), 9)


def test_the_improved_renyi_conversion_has_its_published_value():
    # alpha = 8, epsilon = 0.3, delta = 1e-5: 1.945 by Mironov (2017), 1.514 by Canonne, Kamath,
    # Steinke (2020)
    closed = Fraction("0.3") + conversion_cost(Fraction(1, 10**5), Fraction(8))
    assert round(float(closed), 3) == 1.514
    assert approx_from_renyi(RenyiDP(8, "0.3"), "1e-5").epsilon < closed


@pytest.mark.parametrize("cost", [Fraction(10**300), Fraction(1, 10**300), Fraction(10**6)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**300), Fraction(1, 2)])
def test_extreme_numbers_give_a_number(cost, delta):
    for kind in (PureDP, BoundedRangeDP, ZeroConcentratedDP, GaussianDP):
        for (source, target), rule in CONVERSIONS.items():
            if source is kind:
                extra = [delta] if target is ApproxDP else [5] if target is RenyiDP else []
                assert type(rule(kind(cost), *extra)) is target
    assert approx_from_renyi(RenyiDP(cost + 1, cost), delta).epsilon >= 0


@pytest.mark.parametrize(
    ("order", "divergence", "delta"), [("8", "1", "0.5"), ("100", "3", "0.02"), ("2", "0.1", "0.7")]
)
def test_at_a_large_delta_the_whole_answer_is_the_worst_set(order, divergence, delta):
    # the pair (1, 0), (e^-r, 1 - e^-r) has divergence r at every order, and shows 1 - e^(epsilon -
    # r)
    stated = approx_from_renyi(RenyiDP(order, divergence), delta).epsilon
    with ctx.workprec(PRECISION):
        shown = 1 - (number(stated) - number(Fraction(divergence))).exp()
        assert bool(shown <= number(Fraction(delta)) + SLACK)
        if stated > 0:
            assert bool(shown > number(Fraction(delta)) - arb("1e-9"))
