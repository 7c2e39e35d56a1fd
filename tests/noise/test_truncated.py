# SPDX-License-Identifier: Apache-2.0
"""A truncated law is the law, given its support: what is drawn, and what is stated."""

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.noise import (
    SYSTEM,
    DiscreteGaussian,
    DiscreteLaplace,
    Entropy,
    Geometric,
    Truncated,
    truncated,
)
from sfumato.privacy import AdditiveNoise, Distance, Norm
from sfumato.privacy.event import event_from_json, event_to_json
from sfumato.testing import Replay, assert_follows
from tests.contracts.effort import examples
from tests.noise.truth import PRECISION, Script, ball, every_path, is_outward

Cut: TypeAlias = DiscreteLaplace | DiscreteGaussian | Geometric

LAPLACE, GAUSSIAN, GEOMETRIC = DiscreteLaplace, DiscreteGaussian, Geometric
CASES = [
    pytest.param(DiscreteLaplace(3), -5, 8, id="laplace"),
    pytest.param(DiscreteLaplace(3), 0, 200, id="laplace-one-side"),
    pytest.param(DiscreteLaplace("1/3"), -2, 9, id="laplace-small"),
    pytest.param(DiscreteLaplace(40), -20, 30, id="laplace-narrow"),
    pytest.param(DiscreteLaplace("1e40"), -6, 3, id="laplace-flat"),
    pytest.param(DiscreteGaussian("4.5"), -3, 20, id="gaussian"),
    pytest.param(DiscreteGaussian("1/4"), -2, 3, id="gaussian-small"),
    pytest.param(DiscreteGaussian(70), -60, 30, id="gaussian-narrow"),
    pytest.param(DiscreteGaussian(150), -300, 0, id="gaussian-stepped"),
    pytest.param(DiscreteGaussian("1e40"), -6, 3, id="gaussian-flat"),
    pytest.param(Geometric(7), 0, 30, id="geometric"),
    pytest.param(Geometric("33.3"), 0, 20, id="geometric-narrow"),
    pytest.param(DiscreteLaplace(5), 0, 0, id="one-point"),
]


class Truth:
    """The law worked out term by term, in 400 bits."""

    def __init__(self, law: Cut, lower: int, upper: int) -> None:
        self.lower, self.upper = lower, upper
        with ctx.workprec(PRECISION):
            self.weights = {x: (-energy(law, x)).exp() for x in range(lower, upper + 1)}
            self.total = sum(self.weights.values(), arb(0))

    def between(self, first: int, last: int) -> arb:
        """P(first <= X <= last)."""
        with ctx.workprec(PRECISION):
            inside = range(max(first, self.lower), min(last, self.upper) + 1)
            return sum((self.weights[x] for x in inside), arb(0)) / self.total

    def variance(self) -> arb:
        with ctx.workprec(PRECISION):
            mean = sum((x * weight for x, weight in self.weights.items()), arb(0)) / self.total
            return (
                sum(((x - mean) ** 2 * weight for x, weight in self.weights.items()), arb(0))
                / self.total
            )


def energy(law: Cut, x: int) -> arb:
    """-ln of the weight, from the definition of each law."""
    if isinstance(law, DiscreteGaussian):
        return ball(Fraction(x * x) / (2 * law.sigma_squared))
    return ball(abs(x) / law.scale)


def is_stated_outward(noise: Truncated, x: int, truth: Truth) -> bool:
    """Whether everything stated about ``x`` holds the truth."""
    everything = 10**9
    stated = [
        (noise.pmf(x), truth.between(x, x), None),
        (noise.cdf(x), truth.between(-everything, x), truth.between(x + 1, everything)),
        (noise.above(x), truth.between(x + 1, everything), truth.between(-everything, x)),
    ]
    far = abs(x)
    with ctx.workprec(PRECISION):
        outside = truth.between(-everything, -far - 1) + truth.between(far + 1, everything)
    stated.append((noise.tail(far), outside, truth.between(-far, far)))
    return all(is_outward(found.lower, true, found.upper, rest) for found, true, rest in stated)


@pytest.mark.parametrize(("law", "lower", "upper"), CASES)
def test_truncated_statements_are_outward_bounds(law: Cut, lower: int, upper: int) -> None:
    noise, truth = Truncated(law, lower, upper), Truth(law, lower, upper)
    points = {
        lower - 5,
        lower - 1,
        lower,
        lower + 1,
        -1,
        0,
        1,
        upper // 2,
        upper - 1,
        upper,
        upper + 1,
        upper + 9,
    }
    assert all(is_stated_outward(noise, x, truth) for x in points)
    spread = noise.variance
    assert is_outward(spread.lower, truth.variance(), spread.upper)


@pytest.mark.parametrize(("law", "lower", "upper"), CASES)
def test_truncated_statements_are_tight(law: Cut, lower: int, upper: int) -> None:
    noise = Truncated(law, lower, upper)
    close = 1.5e-4 if isinstance(law, DiscreteGaussian) and law.sigma_squared >= 128**2 else 5e-16
    for x in (lower, lower + 1, -1, 0, 1, upper - 1, upper):
        for stated in (noise.pmf(x), noise.cdf(x), noise.above(x), noise.tail(abs(x))):
            assert stated.width <= close * stated.upper + 5e-324


def test_the_bounds_notice_a_law_that_is_clamped_instead_of_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = DiscreteLaplace(3)
    truth = Truth(law, -5, 8)
    # all that is above 8 counted at 8: the mass of a law that is clamped
    monkeypatch.setattr(Truncated, "pmf", lambda noise, x: law.above(7) if x == 8 else law.pmf(x))
    assert not is_stated_outward(Truncated(law, -5, 8), 8, truth)
    assert not is_stated_outward(Truncated(law, -5, 8), 0, truth)


def test_the_bounds_notice_a_tail_left_uncut(monkeypatch: pytest.MonkeyPatch) -> None:
    law = DiscreteGaussian(4)
    monkeypatch.setattr(Truncated, "above", lambda noise, x: law.above(x))
    assert not is_stated_outward(Truncated(law, -9, 9), 5, Truth(law, -9, 9))


@pytest.mark.parametrize("law", [DiscreteLaplace(1), Geometric(1)])
def test_far_out_a_statement_keeps_its_digits(law: Cut) -> None:
    noise = Truncated(law, 0, 700)
    stated = noise.above(690)
    with ctx.workprec(PRECISION):
        g = (-ball(1)).exp()
        truth = (g**691 - g**701) / (1 - g**701)
    assert is_outward(stated.lower, truth, stated.upper)
    assert stated.width < 1e-15 * stated.upper


def test_beyond_the_support_is_nothing() -> None:
    noise = Truncated(DiscreteLaplace(2), -3, 5)
    assert (
        noise.pmf(6).upper
        == noise.pmf(-4).upper
        == noise.above(5).upper
        == noise.cdf(-4).upper
        == 0
    )
    assert noise.tail(5).upper == noise.tail(10**30).upper == 0
    assert noise.cdf(5).lower == noise.above(-4).lower == noise.tail(-1).lower == 1
    assert Truncated(DiscreteLaplace(2), 0, 0).variance.upper == 0


@given(
    st.fractions(min_value=Fraction(1, 20), max_value=60, max_denominator=100),
    st.integers(-40, 0),
    st.integers(0, 40),
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000)),
)
@settings(deadline=None)
def test_quantile_and_half_width_are_the_smallest(
    scale: Fraction, lower: int, upper: int, level: Fraction
) -> None:
    noise, truth = (
        Truncated(DiscreteLaplace(scale), lower, upper),
        Truth(DiscreteLaplace(scale), lower, upper),
    )
    x, h = noise.quantile(level), noise.half_width(level)
    with ctx.workprec(PRECISION):
        assert bool(truth.between(-99, x) >= ball(level))
        assert not bool(truth.between(-99, x - 1) > ball(level + Fraction(1, 2**50)))
        assert bool(truth.between(-h, h) >= ball(level))
        assert h == 0 or not bool(truth.between(1 - h, h - 1) > ball(level + Fraction(1, 2**50)))


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(10**9), DiscreteGaussian(10**9), DiscreteLaplace("1e30")]
)
def test_the_half_width_of_a_wide_law_is_soon_found(law: Cut) -> None:
    reach = 10**10
    noise = Truncated(law, -reach, reach)
    h = noise.half_width("0.95")
    assert noise.tail(h).upper <= 0.05
    assert noise.tail(h - h // 1000).lower > 0.05
    assert noise.quantile("0.5") in range(h // 1000)


def test_the_variance_of_a_wide_support_is_bracketed() -> None:
    for law in (DiscreteLaplace(10**9), DiscreteGaussian(10**9)):
        stated, whole = Truncated(law, -(10**11), 10**11).variance, law.variance
        assert 0.995 * whole.lower < stated.lower <= whole.upper
        assert whole.lower * (1 - 1e-9) <= stated.upper < 1.005 * whole.upper
    flat = Truncated(DiscreteGaussian("1e30"), -(10**6), 10**6).variance
    assert flat.lower <= (10**12 + 10**6) / 3 <= flat.upper * (1 + 1e-15)
    assert flat.width < 1e-12 * flat.upper


def cdf_of(law: Cut, lower: int, upper: int) -> Callable[[int], float]:
    """The law by adding up doubles, written down here."""
    scale = math.sqrt(law.sigma_squared) if isinstance(law, DiscreteGaussian) else float(law.scale)
    xs = np.arange(lower, upper + 1) / scale
    sums = np.cumsum(np.exp(-(xs**2) / 2 if isinstance(law, DiscreteGaussian) else -np.abs(xs)))
    return lambda x: 0.0 if x < lower else 1.0 if x >= upper else float(sums[x - lower] / sums[-1])


def flat_cdf(lower: int, upper: int) -> Callable[[int], float]:
    """The cdf of a uniform integer."""
    return lambda x: min(max((x - lower + 1) / (upper - lower + 1), 0.0), 1.0)


SOURCES = [pytest.param(SYSTEM, id="system"), pytest.param(Replay(2024), id="replay")]
DRAWN = [
    pytest.param(DiscreteLaplace(3), -5, 8, id="laplace"),
    pytest.param(DiscreteLaplace(30), -20, 28, id="laplace-narrow"),
    pytest.param(DiscreteGaussian("4.5"), -3, 20, id="gaussian"),
    pytest.param(DiscreteGaussian(50), -49, 45, id="gaussian-narrow"),
    pytest.param(Geometric(7), 0, 12, id="geometric"),
    pytest.param(Geometric("33.3"), 0, 20, id="geometric-narrow"),
]


def follows_its_law(noise: Truncated, draws: list[int]) -> None:
    """Fails unless the draws are from the stated law; sure to notice uniform ones."""
    law, lower, upper = noise.whole, noise.lower, noise.upper
    assert_follows(draws, cdf_of(law, lower, upper), notices=flat_cdf(lower, upper))


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize(("law", "lower", "upper"), DRAWN)
def test_truncated_draws_follow_the_stated_law(
    law: Cut, lower: int, upper: int, entropy: Entropy
) -> None:
    noise = Truncated(law, lower, upper)
    follows_its_law(noise, noise.sample(60_000, entropy).tolist())


@pytest.mark.parametrize(("law", "lower", "upper"), DRAWN[:3])
def test_single_draws_follow_the_stated_law(law: Cut, lower: int, upper: int) -> None:
    noise = Truncated(law, lower, upper)
    follows_its_law(noise, [noise.sample_one() for _ in range(8_000)])


@pytest.mark.parametrize("scale", [2**40, 2**52])
@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
def test_draws_of_a_wide_narrow_law_follow_it(make: Callable[[int], Cut], scale: int) -> None:
    reach = scale // 10 * 9
    noise = Truncated(make(scale), -reach, reach)
    # in 100 000 parts, within each of which the density is nearly one
    part = reach // 50_000
    draws = (noise.sample(100_000) // part).tolist()
    assert_follows(
        draws,
        cdf_of(make(Fraction(scale, part)), -50_000, 50_000),
        notices=flat_cdf(-50_000, 50_000),
    )


def clamped(noise: Truncated, count: int, entropy: Entropy) -> np.ndarray:
    """A broken sampler: what is outside is moved to the end."""
    return np.clip(noise.whole.sample(count, entropy), noise.lower, noise.upper)


def without_coins(noise: Truncated, count: int, entropy: Entropy) -> np.ndarray:
    """A broken sampler: every uniform proposal is kept."""
    return truncated.below_many(noise.upper - noise.lower + 1, count, entropy) + noise.lower


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize("broken", [clamped, without_coins])
@pytest.mark.parametrize("support", [(-5, 8), (-20, 28)])
def test_the_law_notices_a_broken_sampler(
    broken: Callable[..., np.ndarray],
    support: tuple[int, int],
    entropy: Entropy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Truncated, "_inside", broken)
    monkeypatch.setattr(Truncated, "_flat", broken)
    noise = Truncated(DiscreteLaplace(3 if support == (-5, 8) else 30), *support)
    with pytest.raises(AssertionError, match="from the stated law"):
        follows_its_law(noise, noise.sample(60_000, entropy).tolist())


@pytest.mark.parametrize(
    "noise",
    [
        Truncated(DiscreteLaplace(9), -4, 8),
        Truncated(DiscreteGaussian(7), -6, 2),
        Truncated(Geometric("5/2"), 0, 2),
    ],
)
def test_each_integer_is_kept_with_its_very_weight(
    noise: Truncated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(bound: int, script: Script) -> int:
        script.rounds += 1
        return (
            script.choose([(value, Fraction(1, bound)) for value in range(bound)])
            if script.rounds == 1
            else 10**6
        )

    def coin(over: int, under: int, script: Script) -> bool:
        return script.rounds > 1 or script.coin((-ball(Fraction(over, under))).exp())

    monkeypatch.setattr(truncated, "below", choose)
    monkeypatch.setattr(truncated, "bernoulli_exp", coin)
    law, _ = every_path(noise.sample_one, 1e-30)
    truth = Truth(noise.whole, noise.lower, noise.upper)
    with ctx.workprec(PRECISION):
        kept = {x: ball(mass) for x, mass in law.items() if noise.lower <= x <= noise.upper}
        total = sum(kept.values(), arb(0))
        assert set(kept) == set(range(noise.lower, noise.upper + 1))
        assert all(bool(abs(kept[x] / total - truth.between(x, x)) < 1e-50) for x in kept)


ANY_SCALE = st.fractions(
    min_value=Fraction(11, 10), max_value=2**52, max_denominator=10**6
) | st.just(Fraction(10**30))


@given(ANY_SCALE, st.sampled_from([DiscreteLaplace, DiscreteGaussian]), st.data())
@settings(deadline=None, max_examples=examples(2))
def test_energies_are_never_too_high_and_hardly_too_low(
    scale: Fraction, make: type, data: st.DataObject
) -> None:
    reach = data.draw(st.integers(1, min(math.ceil(scale) - 1, 2**62 - 1)))
    noise = Truncated(make(scale), -reach, reach)
    xs = [data.draw(st.integers(0, reach)), reach, reach - 1, reach // 2]
    ratios = [Fraction(*noise._energy(-x)) for x in xs]
    assert ratios == [
        Fraction(x) / scale if make is DiscreteLaplace else (x / scale) ** 2 / 2 for x in xs
    ]
    for found, ratio in zip(noise._energies(np.array(xs)).tolist(), ratios, strict=True):
        assert found <= 2**42 * ratio < found + 2**7


def test_the_energies_notice_too_few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    noise, x = Truncated(DiscreteLaplace(2**40), -(2**39), 2**39), 2**39 - 1
    exact = 2**42 * Fraction(x, 2**40)
    assert exact - 2**7 < int(noise._energies(np.array([x]))[0]) <= exact
    monkeypatch.setattr(truncated, "_PLACE_BITS", 25)
    assert int(noise._energies(np.array([x]))[0]) < exact - 2**7


@given(
    st.fractions(min_value=Fraction(1, 50), max_value=30, max_denominator=50),
    st.sampled_from([DiscreteLaplace, DiscreteGaussian, Geometric]),
    st.integers(0, 60),
)
@settings(deadline=None)
def test_one_proposal_in_six_is_kept(scale: Fraction, make: type, upper: int) -> None:
    law = make(scale)
    noise = Truncated(law, 0, upper)
    with ctx.workprec(PRECISION):
        weights = {x: (-energy(law, x)).exp() for x in range(upper + 1)}
        kept = sum(weights.values(), arb(0))
        if noise._is_narrow:
            rate = kept / (upper + 1)
        else:
            right = sum(((-energy(law, x)).exp() for x in range(2500)), arb(0))
            rate = kept / (right if make is Geometric else 2 * right - 1)
        assert bool(rate > ball(Fraction(196, 1000)))


@given(st.sampled_from(CASES), st.integers(0, 100), st.integers(0, 40))
@settings(deadline=None)
def test_a_draw_never_leaves_its_support(case: object, seed: int, size: int) -> None:
    law, lower, upper = case.values
    noise, entropy = Truncated(law, lower, upper), Replay(seed)
    drawn = noise.sample((size, 2), entropy)
    assert drawn.dtype == np.int64
    assert drawn.shape == (size, 2)
    assert all(lower <= x <= upper for x in [*drawn.ravel().tolist(), noise.sample_one(entropy)])


def test_draws_are_python_integers_only_where_an_int64_cannot_hold_them() -> None:
    narrow = Truncated(DiscreteLaplace("1e30"), -100, 100).sample(50)
    assert narrow.dtype == np.int64
    assert Truncated(DiscreteLaplace("1e30"), -100, 10**18).sample(50).dtype == np.int64
    wide = Truncated(DiscreteLaplace("1e30"), -(10**30), 10**29).sample(200)
    assert wide.dtype == object
    assert all(isinstance(x, int) and -(10**30) <= x <= 10**29 for x in wide)
    assert max(abs(x) for x in wide) > 2**63
    flat = Truncated(DiscreteGaussian("1e40"), 0, 10**30).sample(20)
    assert all(0 <= x <= 10**30 for x in flat)


def test_draws_repeat_under_replay_and_not_under_the_system() -> None:
    noise = Truncated(DiscreteLaplace(10**9), -(10**8), 10**10)
    assert np.array_equal(noise.sample(500, Replay(1)), noise.sample(500, Replay(1)))
    assert not np.array_equal(noise.sample(500), noise.sample(500))
    assert noise.sample(0).tolist() == []


@pytest.mark.parametrize(
    "noise", [Truncated(DiscreteLaplace(30), -20, 28), Truncated(DiscreteGaussian(5), -9, 9)]
)
def test_a_million_draws_take_little_memory_beside_the_result(noise: Truncated) -> None:
    noise.sample(10_000)
    tracemalloc.start()
    drawn = noise.sample(10**6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - drawn.nbytes < 8 << 20


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (1, 3),
        (-3, -1),
        (2, -2),
        (-1.0, 3),
        (0, 3.5),
        ("0", 3),
        (0, None),
        (False, True),
        (float("-inf"), 0),
    ],
)
def test_a_support_that_cannot_be_is_refused(lower: object, upper: object) -> None:
    with pytest.raises(InvalidNumber):
        Truncated(DiscreteLaplace(1), lower, upper)


def test_a_geometric_law_has_nothing_below_zero() -> None:
    with pytest.raises(InvalidNumber, match="lower = -1"):
        Truncated(Geometric(1), -1, 3)


@pytest.mark.parametrize("law", [None, 3, Truncated(DiscreteLaplace(1), -1, 1), DiscreteLaplace])
def test_a_law_that_cannot_be_cut_is_refused(law: object) -> None:
    with pytest.raises(InvalidDeclaration, match="truncated"):
        Truncated(law, 0, 3)


@pytest.mark.parametrize("shape", [-1, (2, -3), 2.5])
def test_a_shape_that_cannot_be_is_refused(shape: object) -> None:
    with pytest.raises(InvalidNumber, match="shape"):
        Truncated(DiscreteLaplace(1), -1, 1).sample(shape)


@pytest.mark.parametrize("law", [DiscreteLaplace("5/2"), DiscreteGaussian(3)])
def test_the_form_of_an_event_keeps_a_truncated_law(law: Cut) -> None:
    event = AdditiveNoise(Truncated(law, -3, 10**20), Distance(Norm.L1, Fraction(1)))
    assert event_from_json(event_to_json(event)) == event
