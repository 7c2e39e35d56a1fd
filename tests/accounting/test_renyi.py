# SPDX-License-Identifier: Apache-2.0
"""Renyi bounds of events against all outputs of small instances, and against published values."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from sfumato.accounting import renyi as module
from sfumato.accounting.renyi import epsilon_from_renyi, renyi
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase, Truncated
from sfumato.privacy import (
    AdditiveNoise,
    ApproxEvent,
    BestOf,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    FixedSample,
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
    Shuffled,
    SparseVector,
    Stream,
    WithReplacementSample,
)
from tests.accounting import laws
from tests.accounting.laws import PRECISION, SLACK, number

# exact in the 53 bits in which laws.renyi takes the order
ORDERS = st.integers(17, 160).map(lambda sixteenths: Fraction(sixteenths, 16))
WHOLE = st.integers(2, 12)
SCALES = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(8)])
RATES = st.sampled_from([Fraction(1, 100), Fraction(1, 5), Fraction(2, 3)])
EPSILONS = st.fractions(min_value=Fraction(1, 100), max_value=4)


def l1(value: int, relation: Relation = Relation.ADD_REMOVE) -> Distance:
    return Distance(Norm.L1, Fraction(value), relation)


def l2(value: int, relation: Relation = Relation.ADD_REMOVE) -> Distance:
    return Distance(Norm.L2, Fraction(value), relation)


def laplace(scale: Fraction, value: int, relation: Relation = Relation.ADD_REMOVE) -> AdditiveNoise:
    return AdditiveNoise(DiscreteLaplace(scale), l1(value, relation))


def gaussian(
    variance: Fraction, value: int = 1, relation: Relation = Relation.ADD_REMOVE
) -> AdditiveNoise:
    return AdditiveNoise(DiscreteGaussian(sigma_squared=variance), l2(value, relation))


def true(one: laws.Law, other: laws.Law, order: Fraction) -> arb:
    exact = Fraction(order)
    return laws.renyi(one, other, fmpq(exact.numerator, exact.denominator))


def holds(event: object, pair: tuple[laws.Law, laws.Law], order: Fraction) -> bool:
    """Whether the bound is above what this pair of neighbours loses."""
    with ctx.workprec(PRECISION):
        return bool(true(*pair, order) <= number(renyi(event, order)) + SLACK)


def exact(event: object, pair: tuple[laws.Law, laws.Law], order: Fraction) -> bool:
    with ctx.workprec(PRECISION):
        return bool(abs(true(*pair, order) - number(renyi(event, order))) < arb("1e-18"))


@given(SCALES, st.integers(1, 6), ORDERS)
@settings(deadline=None)
def test_laplace_has_its_exact_renyi_divergence(scale, shift, order):
    law = laws.laplace(scale)
    assert exact(laplace(scale, shift), (laws.shifted(law, 0), laws.shifted(law, shift)), order)


def test_several_cells_lose_no_more_than_one_that_takes_all():
    law = laws.laplace(Fraction(5, 2))
    for shifts in [(1, 2), (3, 0), (-1, 2)]:
        with ctx.workprec(PRECISION):
            parts = [
                true(laws.shifted(law, 0), laws.shifted(law, each), Fraction(3)) for each in shifts
            ]
            assert bool(parts[0] + parts[1] <= number(renyi(laplace(Fraction(5, 2), 3), 3)) + SLACK)
    each_moves = AdditiveNoise(DiscreteLaplace("2.5"), Distance(Norm.LINF, Fraction(3)), cells=2)
    assert renyi(each_moves, 3) == 2 * renyi(laplace(Fraction(5, 2), 3), 3)
    with pytest.raises(InvalidDeclaration):
        renyi(AdditiveNoise(DiscreteLaplace("2.5"), Distance(Norm.LINF, Fraction(3))), 3)


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(2), Fraction(7)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_continuous_laplace_is_the_integral(order, epsilon):
    event = ContinuousNoise(ContinuousLaw.LAPLACE, 1 / Fraction(str(epsilon)), l1(1))
    a = float(order)

    def density(y: float) -> float:
        return 0.5 * 2.718281828459045 ** (-a * abs(y) + (a - 1) * abs(y - epsilon))

    moment = sum(
        quad(density, *ends, epsabs=1e-13)[0] for ends in [(-60, 0), (0, epsilon), (epsilon, 60)]
    )
    assert float((a - 1) * renyi(event, order)) == pytest.approx(
        arb(moment).log().__float__(), abs=1e-9
    )


@given(EPSILONS, st.integers(2, 6), ORDERS)
@settings(deadline=None)
def test_randomised_response_has_its_exact_renyi_divergence(epsilon, categories, order):
    pair = laws.response(0, epsilon, categories), laws.response(1, epsilon, categories)
    assert exact(RandomizedResponse(epsilon, categories), pair, order)


@given(EPSILONS, ORDERS, st.booleans())
@settings(deadline=None)
def test_selection_is_bounded_by_its_range(rate, order, monotone):
    event = Selection(Rule.EXPONENTIAL, rate, Distance(Norm.LINF, Fraction(1)), monotone)
    after = (1, 0, 0) if monotone else (1, -1, -1)
    assert holds(event, (laws.exponential((0, 0, 0), rate), laws.exponential(after, rate)), order)
    assert renyi(event, order) == renyi(BoundedRange(rate * (1 if monotone else 2)), order)
    flip = Selection(Rule.PERMUTE_AND_FLIP, rate, Distance(Norm.LINF, Fraction(1)), monotone)
    assert holds(
        flip, (laws.permute_and_flip((0, 0, 0), rate), laws.permute_and_flip(after, rate)), order
    )


def poisson_pair(
    units: int, rate: Fraction, law: laws.Noise, step: int = 1
) -> tuple[laws.Law, laws.Law]:
    """A noisy sum over a Poisson sample, with a unit more and without; each unit adds ``step``."""
    return tuple(
        laws.poisson(each, rate, lambda size: laws.shifted(law, step * size))
        for each in (units + 1, units)
    )


@given(st.sampled_from([Fraction(1), Fraction(3), Fraction(10)]), RATES, ORDERS, st.integers(0, 2))
@settings(deadline=None)
def test_a_poisson_sample_costs_at_most_its_binomial_sum(variance, rate, order, units):
    event = Sampled(PoissonSample(rate), gaussian(variance))
    assert holds(event, poisson_pair(units, rate, laws.gaussian(variance)), order)
    event = Sampled(PoissonSample(rate), laplace(variance, 2))
    assert holds(event, poisson_pair(units, rate, laws.laplace(variance), 2), order)


@given(RATES, st.integers(2, 6))
@settings(deadline=None)
def test_the_binomial_sum_is_reached_by_one_unit(rate, order):
    # laws.laplace is cut at e^-100
    event = Sampled(PoissonSample(rate), laplace(Fraction(5, 2), 1))
    assert exact(event, poisson_pair(0, rate, laws.laplace(Fraction(5, 2))), Fraction(order))


@pytest.mark.parametrize("wrong", ["rate squared", "no growth"])
def test_a_wrong_binomial_sum_would_be_noticed(monkeypatch, wrong):
    real, moments = module._poisson, module._moments
    if wrong == "rate squared":
        monkeypatch.setattr(module, "_poisson", lambda rate, each: real(rate * rate, each))
    else:
        monkeypatch.setattr(
            module,
            "_moments",
            lambda event, order: moments(event, order)[:3] + [moments(event, 2)[2]] * (order - 2),
        )
    event = Sampled(PoissonSample(Fraction(1, 5)), gaussian(Fraction(1)))
    assert not holds(
        event, poisson_pair(0, Fraction(1, 5), laws.gaussian(Fraction(1))), Fraction(6)
    )


@given(st.sampled_from([Fraction(1), Fraction(3)]), st.integers(1, 3), ORDERS)
@settings(deadline=None)
def test_a_fixed_sample_costs_at_most_its_binomial_sum(variance, size, order):
    noisy = laws.gaussian(variance)
    pair = tuple(
        laws.fixed((0, 1, 0, 1, last), size, lambda total: laws.shifted(noisy, total))
        for last in (0, 1)
    )
    event = Sampled(FixedSample(size, 5), gaussian(variance, 1, Relation.REPLACE_ONE))
    assert holds(event, pair, order)
    noisy = laws.laplace(variance)
    pair = tuple(
        laws.fixed((0, 1, 0, 1, last), size, lambda total: laws.shifted(noisy, total))
        for last in (0, 1)
    )
    assert holds(
        Sampled(FixedSample(size, 5), laplace(variance, 1, Relation.REPLACE_ONE)), pair, order
    )


def test_a_fixed_sample_at_half_its_rate_would_be_noticed(monkeypatch):
    real = module._fixed
    lighter = Sampled(FixedSample(1, 50), gaussian(Fraction(1), 1, Relation.REPLACE_ONE))
    monkeypatch.setattr(module, "_fixed", lambda event, moments: real(lighter, moments))
    noisy = laws.gaussian(Fraction(1))
    pair = tuple(
        laws.fixed((0, 0, 0, 0, last), 2, lambda total: laws.shifted(noisy, total))
        for last in (0, 1)
    )
    event = Sampled(FixedSample(2, 5), gaussian(Fraction(1), 1, Relation.REPLACE_ONE))
    assert not holds(event, pair, Fraction(2))


@given(RATES, st.integers(2, 12), st.integers(1, 15))
@settings(deadline=None)
def test_an_order_between_two_integers_is_interpolated(rate, low, part):
    event = Sampled(PoissonSample(rate), gaussian(Fraction(4)))
    order = low + Fraction(part, 16)
    assert holds(event, poisson_pair(0, rate, laws.gaussian(Fraction(4))), order)
    ends = [(each - 1) * renyi(event, each) for each in (low, low + 1)]
    assert (order - 1) * renyi(event, order) <= ends[0] + (order - low) * (ends[1] - ends[0])


@given(EPSILONS, ORDERS, st.integers(1, 5))
@settings(deadline=None)
def test_renyi_divergences_of_a_composition_add(epsilon, order, times):
    parts = [RandomizedResponse(epsilon, 3), laplace(Fraction(2), 1, Relation.REPLACE_ONE)]
    assert renyi(Composed(tuple(parts)), order) == sum(renyi(each, order) for each in parts)
    assert renyi(Repeated(parts[0], times), order) == times * renyi(parts[0], order)
    assert renyi(Composed(()), order) == 0


def test_gaussian_noise_costs_its_order_times_its_rho_exactly():
    assert renyi(gaussian(Fraction(50)), 8) == Fraction(8, 100)
    assert renyi(ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(5), l2(1)), 8) == Fraction(8, 50)
    assert renyi(Stream(gaussian(Fraction(50), 4), steps=8, column=Fraction(4)), 8) == Fraction(
        32, 100
    )
    assert renyi(Repeated(gaussian(Fraction(50)), 10**12), 2) == 2 * 10**10


def test_what_has_no_sharper_rule_costs_as_randomised_response():
    linf = Distance(Norm.LINF, Fraction(1))
    sparse = SparseVector(DiscreteLaplace(4), DiscreteLaplace(8), linf, positives=1)
    stairs = AdditiveNoise(DiscreteStaircase("0.5", 1), linf, cells=1)
    assert renyi(sparse, 5) == renyi(PureEvent(Fraction(1, 2)), 5) == renyi(stairs, 5)
    report = RandomizedResponse(Fraction(1), 2)
    assert renyi(Shuffled(report, 100), 5) == renyi(report, 5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_group_is_bounded_by_the_better_of_two_ways(size):
    law = laws.gaussian(Fraction(9))
    pair = laws.shifted(law, 0), laws.shifted(law, size)
    assert holds(Group(gaussian(Fraction(9)), size), pair, Fraction(4))
    sampled = Group(Sampled(PoissonSample(Fraction(1, 10)), gaussian(Fraction(9))), size)
    rate = Fraction(1, 10)
    pair = tuple(
        laws.poisson(each, rate, lambda inside: laws.shifted(law, inside)) for each in (size, 0)
    )
    assert holds(sampled, pair, Fraction(4))
    assert renyi(sampled, 4) <= renyi(Group(gaussian(Fraction(9)), 4), 4)


def test_sampling_everything_is_the_whole_and_sampling_never_costs_more():
    whole = gaussian(Fraction(4))
    assert renyi(Sampled(PoissonSample(Fraction(1)), whole), 8) == renyi(whole, 8)
    for order in (2, 8, 100, 10**6):
        assert renyi(Sampled(PoissonSample(Fraction(99, 100)), whole), order) <= renyi(whole, order)
    pure = PureEvent(Fraction(1))
    assert renyi(Sampled(PoissonSample(Fraction(1, 100)), pure), 8) < renyi(pure, 8) / 100
    one = PureEvent(Fraction(1), Relation.REPLACE_ONE)
    assert renyi(Sampled(WithReplacementSample(1, 100), one), 8) < renyi(one, 8) / 10


def dp_sgd(rate: str, sigma: str, steps: int) -> Repeated:
    noise = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(sigma), l2(1))
    return Repeated(Sampled(PoissonSample(Fraction(rate)), noise), steps)


@pytest.mark.parametrize(
    ("rate", "sigma", "steps", "delta", "truth", "published"),
    [
        # truth: between the certified bounds of the notes; published: dp-accounting and Opacus, RDP
        ("0.01", "1.1", 10**3, "1e-6", 1.75297, 1.9767),
        ("0.01", "1.1", 10**4, "1e-6", 5.80693, 6.2300),
        ("256/60000", "1.1", 14062, "1e-5", 2.38159, 2.5966),
        # autodp
        ("16384/1281167", "2.5", 71589, "8e-7", 7.44014, 7.998),
    ],
)
def test_dp_sgd_costs_what_is_published(rate, sigma, steps, delta, truth, published):
    epsilon = float(epsilon_from_renyi(dp_sgd(rate, sigma, steps), delta))
    assert truth < epsilon
    assert epsilon == pytest.approx(published, rel=3e-3)


def test_a_fixed_batch_costs_less_than_is_published():
    # 5.2433 by dp-accounting and autodp for MNIST: 256 of 60000, sigma 1.1, 60 epochs, delta 1e-5
    run = Repeated(Sampled(FixedSample(256, 60000), _whole(Fraction("1.1"))), 14062)
    assert 2.4 < float(epsilon_from_renyi(run, "1e-5")) < 2.95


def _whole(sigma):
    return ContinuousNoise(ContinuousLaw.GAUSSIAN, sigma, l2(1, Relation.REPLACE_ONE))


# half the diagonal of the grid, and its step, in units of sigma
_FAR, _FINE = 16.0, 0.04


def _in_the_plane(sigma, rate, order):
    """The divergence where the unit, its replacement and those not drawn are at the corners of a
    triangle of equal sides.
    """
    along = np.arange(-_FAR, _FAR + 6 / sigma + _FINE, _FINE)
    x, y = np.meshgrid(along, along)

    def law(a, b):
        return np.exp(-((x - a / sigma) ** 2 + (y - b / sigma) ** 2) / 2) / (2 * np.pi)

    with_it, replaced = law(1, 0), law(0.5, 3**0.5 / 2)
    p, q = (1 - rate) * law(0, 0) + rate * with_it, (1 - rate) * law(0, 0) + rate * replaced
    return float(np.log((p * (p / q) ** (order - 1)).sum() * _FINE**2) / (order - 1))


@pytest.mark.parametrize(
    ("sigma", "rate", "order"),
    [
        (2, "1/20", 8),
        (2, "1/20", 3),
        (1, "1/10", 2),
        (1, "1/2", 5),
        (4, "1/10", 17),
        (5, "1/100", 40),
    ],
)
def test_a_fixed_sample_in_the_plane_costs_at_most_its_binomial_sum(sigma, rate, order):
    # a trapezoidal sum of entire, quickly falling functions is right to all digits of a float
    rate = Fraction(rate)
    bound = float(
        renyi(
            Sampled(FixedSample(rate.numerator, rate.denominator), _whole(Fraction(sigma))), order
        )
    )
    truth = _in_the_plane(sigma, float(rate), order)
    assert truth * (1 - 1e-9) <= bound <= 3 * truth


def test_a_triangle_taken_for_a_pair_is_noticed(monkeypatch):
    real = module._triples
    monkeypatch.setattr(
        module,
        "_triples",
        lambda event, order: {k: each / 2 for k, each in real(event, order).items()},
    )
    bound = float(renyi(Sampled(FixedSample(1, 10), _whole(Fraction(1))), 2))
    assert bound < _in_the_plane(1, 0.1, 2) * (1 - 1e-9)


@given(st.integers(2, 20), st.fractions(Fraction(1, 500), Fraction(1, 2)))
@settings(deadline=None)
def test_differences_are_the_means_of_powers_of_the_distance(order, rho):
    found = module._distances(rho, order)
    mu = (2 * float(rho)) ** 0.5
    for k in range(2, order + 1, 2):
        z = np.arange(-12 - 2 * mu, 12 + (k + 2) * mu, 0.01)
        log = (
            -z * z / 2
            - 0.5 * np.log(2 * np.pi)
            + k * np.log(np.abs(np.expm1(mu * z - mu * mu / 2)) + 1e-300)
        )
        assert float(found[k]) == pytest.approx(float(np.exp(log).sum() * 0.01), rel=1e-4)
    for k in range(3, order, 2):
        assert found[k] ** 2 >= found[k - 1] * found[k + 1] * Decimal("0.999999")


def test_a_thousand_laplace_queries_cost_less_than_their_sum():
    run = Repeated(laplace(Fraction(50), 1), 1000)
    # the truth for the continuous law is 2.9054
    assert 2.9 < float(epsilon_from_renyi(run, "1e-6")) < 3.13
    assert epsilon_from_renyi(laplace(Fraction(50), 1), "1e-6") <= Fraction(1, 50)


@pytest.mark.parametrize(
    "event",
    [
        ApproxEvent(Fraction(1), Fraction(1, 10**6)),
        AdditiveNoise(Truncated(DiscreteLaplace(5), -50, 50), l1(1)),
        Composed((PureEvent(Fraction(1)), PureEvent(Fraction(1), Relation.REPLACE_ONE))),
        Sampled(FixedSample(1, 5), gaussian(Fraction(1))),
        Sampled(WithReplacementSample(1, 5), gaussian(Fraction(1), 1, Relation.REPLACE_ONE)),
        "an event",
        Group(Sampled(PoissonSample(Fraction(1, 2)), gaussian(Fraction(1))), 10**6),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_has_no_renyi_divergence_raises(event):
    with pytest.raises(InvalidDeclaration):
        renyi(event, 4)


@pytest.mark.parametrize("order", [1, 0, -2, "0.5", float("nan"), float("inf")])
def test_an_order_must_be_above_one(order):
    with pytest.raises(InvalidNumber):
        renyi(PureEvent(Fraction(1)), order)


@pytest.mark.parametrize("delta", [0, -1, 2, float("nan")])
def test_a_delta_must_be_above_zero(delta):
    with pytest.raises(InvalidNumber):
        epsilon_from_renyi(PureEvent(Fraction(1)), delta)


@pytest.mark.parametrize("cost", [Fraction(10**200), Fraction(1, 10**200)])
def test_extreme_numbers_give_a_number(cost):
    events = [
        PureEvent(cost),
        BoundedRange(cost),
        laplace(1 / cost, 1),
        RandomizedResponse(cost, 3),
        gaussian(1 / cost),
    ]
    events += [
        Sampled(PoissonSample(Fraction(1, 10)), laplace(1 / cost, 1)),
        ContinuousNoise(ContinuousLaw.LAPLACE, 1 / cost, l1(1)),
    ]
    for event in events:
        assert 0 <= renyi(event, 2) <= 2 * cost
        assert epsilon_from_renyi(event, "1e-300") >= 0


# two laws that no reflection exchanges: losses of the one are not those of the other
LOPSIDED = [
    (Fraction(1, 5), Fraction(2, 5)),
    (Fraction(1, 100), Fraction(1, 40)),
    (Fraction(9, 10), Fraction(19, 20)),
]


def chance(of: Fraction) -> laws.Law:
    return {0: laws.number(of), 1: laws.number(1 - of)}


def sampled_pair(
    rate: Fraction, without: laws.Law, with_unit: laws.Law
) -> tuple[laws.Law, laws.Law]:
    return laws.mixed([(rate, with_unit), (1 - rate, without)]), without


@pytest.mark.parametrize(("low", "high"), LOPSIDED)
@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(2, 5)])
@pytest.mark.parametrize("order", [Fraction(2), Fraction(7, 2), Fraction(16)])
def test_a_poisson_sample_of_any_event_is_amplified(low, high, rate, order):
    # one selection loses at most the range of its losses, three of them the sum
    for one, other in ((low, high), (high, low)):
        eta = Fraction(
            math.nextafter(abs(math.log(one / other)) + abs(math.log((1 - one) / (1 - other))), 9)
        ) + Fraction(1, 10**12)
        without, with_unit = laws.together(*[chance(one)] * 3), laws.together(*[chance(other)] * 3)
        event = Repeated(BoundedRange(eta), 3)
        assert holds(
            Sampled(PoissonSample(rate), event), sampled_pair(rate, without, with_unit), order
        )
        if rate < Fraction(1, 10) and order == 2:
            assert renyi(Sampled(PoissonSample(rate), event), order) < rate * renyi(event, order)


def added_is_bound(added, order) -> bool:
    """Whether it bounds the mean of (1 - q + q r)^(1 - a) for ratios r of two values."""
    for low, rate, ratio in itertools.product(
        (0.2, 0.9), (Fraction(1, 20), Fraction(1, 100)), (2.0, 0.5, 1.1, 3.0)
    ):
        # with chance ``low`` the ratio is this, else what makes its mean 1
        other = (1 - low * ratio) / (1 - low)
        if other <= 0:
            continue
        values = ((low, ratio), (1 - low, other))
        moments = [Decimal(1), Decimal(1)] + [
            Decimal(max(sum(p * r**k for p, r in values), sum(p * r ** (1 - k) for p, r in values)))
            for k in range(2, order + 1)
        ]
        truth = sum(p * (1 - float(rate) + float(rate) * r) ** (1 - order) for p, r in values)
        if float(added(rate, moments)) < truth - 1e-14:
            return False
    return True


@pytest.mark.parametrize("order", [2, 5, 20])
def test_a_unit_that_is_added_has_both_bounds(order):
    assert added_is_bound(module._added, order)
    # of half the rate
    assert not added_is_bound(lambda rate, moments: module._added(rate / 2, moments), order)


# --- the best of several runs


def best_of_values(law: np.ndarray, shape: float, stop: float) -> np.ndarray:
    """The law of the largest of a number of runs, by its generating function's series."""
    weight, k, weights = 1 - stop, 1, []
    while weight > 1e-40:
        weights.append(weight)
        weight *= (1 - stop) * (k + shape) / (k + 1)
        k += 1
    series = np.array(weights) / math.fsum(weights)
    upto = np.minimum(np.concatenate([[0.0], np.cumsum(law)]), 1.0)
    powers = upto[:, np.newaxis] ** np.arange(1, k)
    return np.diff(powers @ series)


def divergence(one: np.ndarray, other: np.ndarray, order: float) -> float:
    """Of the outcomes that are not too rare for floats: what is left out only adds to it."""
    kept = (one > 1e-9) & (other > 1e-9)
    logs = order * np.log(one[kept]) + (1 - order) * np.log(other[kept])
    return float(np.logaddexp.reduce(logs)) / (order - 1)


@given(
    st.sampled_from([Fraction(0), Fraction(1), Fraction(-1, 2)]),
    st.sampled_from([Fraction(1, 8), Fraction(1, 40)]),
    st.sampled_from([Fraction(3, 2), Fraction(4), Fraction(20)]),
    st.integers(2, 12),
)
@settings(deadline=None)
def test_the_best_of_runs_costs_at_most_its_bound(
    shape: Fraction, stop: Fraction, order: Fraction, sigma: int
) -> None:
    """Runs that show a number with discrete Gaussian noise, and a neighbour's number is larger."""
    noise = DiscreteGaussian(sigma)
    base = AdditiveNoise(noise, Distance(Norm.L2, Fraction(1)))
    points = np.arange(-12 * sigma, 12 * sigma + 1)
    mass = np.exp(-(points.astype(float) ** 2) / (2 * sigma**2))
    mass /= mass.sum()
    one = best_of_values(mass[1:], float(shape), float(stop))
    other = best_of_values(mass[:-1], float(shape), float(stop))
    claimed = float(renyi(BestOf((base,), shape, stop), order))
    for pair in ((one, other), (other, one)):
        assert divergence(*pair, float(order)) <= claimed
        # the choice among runs costs something, beside the run itself
        assert claimed > float(renyi(base, order))


def test_a_bound_without_the_choice_among_runs_is_caught() -> None:
    """The cost of a single run is too small for the best of them."""
    noise, order = DiscreteGaussian(4), Fraction(4)
    base = AdditiveNoise(noise, Distance(Norm.L2, Fraction(1)))
    points = np.arange(-40, 41)
    mass = np.exp(-(points.astype(float) ** 2) / 32)
    mass /= mass.sum()
    one, other = (best_of_values(part, 0.0, 1 / 40) for part in (mass[1:], mass[:-1]))
    found = max(divergence(one, other, 4.0), divergence(other, one, 4.0))
    assert float(renyi(base, order)) < found < float(renyi(BestOf((base,), 0, "1/40"), order))


def test_the_best_of_pure_runs_is_bounded_by_its_pure_loss_too() -> None:
    best = BestOf((PureEvent(Fraction(1, 100)),), Fraction(0), Fraction(1, 1000))
    assert renyi(best, 2) <= 2 * Fraction(2, 100) ** 2 / 2
