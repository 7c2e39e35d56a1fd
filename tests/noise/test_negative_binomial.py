# SPDX-License-Identifier: Apache-2.0
"""NegativeBinomial: what is drawn is what is stated, and what is stated is outward."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import geom, logser

from sfumato.errors import InvalidNumber
from sfumato.noise import NegativeBinomial, negative_binomial
from sfumato.testing import Replay, assert_counts_follow
from tests.noise.truth import PRECISION, ball

SHAPES = st.fractions(Fraction(-9, 10), 1, max_denominator=20)
STOPS = st.fractions(Fraction(1, 12), Fraction(99, 100), max_denominator=100)


def weights(shape: Fraction, stop: Fraction) -> list[arb]:
    """The probabilities by their series, each from the one before; what is left is below 2^-200."""
    found, k, left = [], 1, ball(1 - stop)
    while bool(left > arb(2) ** -200 * ball(stop)):
        found.append(left)
        left *= ball((1 - stop) * (k + shape) / (k + 1))
        k += 1
    total = sum(found, arb(0))
    return [each / total for each in found]


@given(SHAPES, STOPS, st.integers(1, 12))
@settings(deadline=None)
def test_negative_binomial_statements_are_outward_bounds(
    shape: Fraction, stop: Fraction, x: int
) -> None:
    law = NegativeBinomial(shape, stop)
    with ctx.workprec(PRECISION):
        truth = weights(shape, stop)
        mean = sum((k * each for k, each in enumerate(truth, start=1)), arb(0))
        near = arb(2) ** -150
        stated = law.mean
        assert bool(ball(stated.lower) <= mean + near) and bool(mean <= ball(stated.upper) + near)
        assert bool(ball(stated.upper) - ball(stated.lower) < mean * arb(2) ** -100)
        if x <= len(truth):
            stated_pmf = law.pmf(x)
            # a law of one term is exact, and what the series leaves out is not
            assert bool(ball(stated_pmf.lower) <= truth[x - 1] + near)
            assert bool(truth[x - 1] <= ball(stated_pmf.upper) + near)
            assert stated_pmf.width <= 4e-16 * stated_pmf.upper
    assert law.pmf(0).upper == law.pmf(-3).upper == 0


@pytest.mark.parametrize("shape", ["1e-12", "-1e-12", "0", "1", "-0.999999"])
@pytest.mark.parametrize("stop", [1 - Fraction(1, 10**12), Fraction(1, 10**300)])
def test_the_mean_is_between_its_bounds_at_the_ends(shape: str, stop: Fraction) -> None:
    law = NegativeBinomial(shape, stop)
    with ctx.workprec(4000):
        odds, power = ball(1 / stop - 1), ball(1 / stop) ** ball(law.shape)
        mean = odds / ball(1 / stop).log()
        if law.shape:
            mean = odds * ball(law.shape) * power / (power - 1)
        # the balls of 400 bits lose 40 where 1 is subtracted from nearly 1
        near = mean * arb(2) ** -340
        stated = law.mean
        assert bool(ball(stated.lower) <= mean + near) and bool(mean <= ball(stated.upper) + near)
        assert bool(ball(stated.upper) < mean * ball(Fraction(10**15 + 1, 10**15)))


def test_statements_agree_with_scipy() -> None:
    for stop in (0.02, 0.3):
        for k in (1, 2, 30):
            assert NegativeBinomial(1, stop).pmf(k).upper == pytest.approx(geom.pmf(k, stop))
            assert NegativeBinomial(0, stop).pmf(k).upper == pytest.approx(logser.pmf(k, 1 - stop))
        assert float(NegativeBinomial(0, stop).mean.upper) == pytest.approx(logser.mean(1 - stop))


class Scripted:
    """Entropy that answers the coins of a script, and says how probable its answers were."""

    def __init__(self, falls: tuple[bool, ...]) -> None:
        self.falls, self.used, self.chance = falls, 0, Fraction(1)

    def coin(self, bias: Fraction, entropy: object) -> bool:
        if self.used == len(self.falls):
            raise StopIteration
        fell = self.falls[self.used]
        self.used += 1
        self.chance *= bias if fell else 1 - bias
        return fell


@pytest.mark.parametrize("shape", ["0", "1", "-1/2", "1/3"])
def test_a_pass_ends_with_a_number_by_its_weight(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way in which the coins of one pass can fall, and what it returns."""
    law = NegativeBinomial(shape, "1/5")
    chances: dict[int, Fraction] = {}
    for length in range(1, 11):
        for falls in itertools.product((True, False), repeat=length):
            script = Scripted(falls)
            monkeypatch.setattr(negative_binomial, "_coin", script.coin)
            try:
                drawn = law.sample_one()
            except (StopIteration, RuntimeError):
                continue
            # a pass that returns k uses 2 k - 1 coins; longer scripts began again
            if script.used == length == 2 * drawn - 1:
                chances[drawn] = chances.get(drawn, Fraction(0)) + script.chance
    ratios = {k: float(chances[k] / chances[1]) for k in (2, 3, 4, 5)}
    for k, ratio in ratios.items():
        assert ratio == pytest.approx(law.pmf(k).upper / law.pmf(1).upper, rel=1e-12)


@pytest.mark.parametrize(("shape", "stop"), [(0, "1/10"), (1, "1/5"), ("-1/2", "1/8")])
def test_negative_binomial_draws_follow_the_stated_law(shape: object, stop: str) -> None:
    law = NegativeBinomial(shape, stop)
    wrong = NegativeBinomial(Fraction(shape) - Fraction(1, 3), stop)
    drawn = Counter(np.minimum(law.sample(6000, Replay(7)), 9).tolist())

    def masses(of: NegativeBinomial) -> list[float]:
        first = [of.pmf(k).upper for k in range(1, 9)]
        return [*first, 1 - math.fsum(first)]

    counts = [drawn[k] for k in range(1, 10)]
    assert_counts_follow(counts, masses(law), notices=masses(wrong))


def test_the_same_bits_give_the_same_numbers() -> None:
    law = NegativeBinomial(0, "1/10")
    assert law.sample((3, 4), Replay(1)).tolist() == law.sample((3, 4), Replay(1)).tolist()
    assert law.sample(50).min() >= 1


@pytest.mark.parametrize(
    ("shape", "stop"),
    [
        (-1, "1/2"),
        ("11/10", "1/2"),
        (0, 0),
        (0, 1),
        ("nan", "1/2"),
        (0, -1),
        # with these the bounds of the mean were a tenth of it, and less: runs cost less than none
        ("1e-20", 1 - Fraction(1, 10**30)),
        ("-1e-40", "1/2"),
        (1, 1 - Fraction(1, 10**13)),
    ],
)
def test_other_numbers_are_refused(shape: object, stop: object) -> None:
    with pytest.raises(InvalidNumber):
        NegativeBinomial(shape, stop)
