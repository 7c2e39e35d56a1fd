# SPDX-License-Identifier: Apache-2.0
"""The plain samplers, on which the fast ones lean: every path of choices is followed."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
import pytest
from flint import arb, ctx

from sfumato.noise import SYSTEM, Entropy, plain
from sfumato.noise.bernoulli import bernoulli_exp
from sfumato.noise.entropy import below
from sfumato.testing import Replay
from tests.noise import tallies
from tests.noise.truth import (
    PRECISION,
    GaussianTruth,
    LaplaceTruth,
    Restarted,
    Script,
    ball,
    every_path,
)

SCALES = [Fraction(text) for text in ("1/3", "2/3", "1", "2", "5/2", "7")]
VARIANCES = [Fraction(text) for text in ("1/9", "1/2", "1", "2", "16/3", "9")]
Sampler: TypeAlias = Callable[[Fraction, Entropy], int]


def coin(over: int, under: int, script: Script) -> bool:
    """A coin of e^-gamma, given; its own paths are followed in test_bernoulli."""
    return script.coin((-ball(Fraction(over, under))).exp())


def first_round(bound: int, script: Script) -> int:
    """A uniform integer, given; a second one means that the round was rejected."""
    script.rounds += 1
    if script.rounds > 1:
        raise Restarted
    return script.choose([(value, Fraction(1, bound)) for value in range(bound)])


def is_drawn_exactly(draw: Sampler, scale: Fraction, pmf: Callable[[int], arb]) -> bool:
    """Whether every outcome's share of the mass of a round that is not rejected is its probability,
    within 1e-25.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "below", first_round)
        patch.setattr(plain, "bernoulli_exp", coin)
        law, rest = every_path(partial(draw, scale), 1e-30)
    with ctx.workprec(PRECISION):
        accepted = sum(law.values(), ball(rest))
        errors = [abs(law.get(x, arb(0)) / accepted - pmf(x)) for x in range(-40, 41)]
        return float(rest) < 1e-25 and all(bool(error < 1e-25) for error in errors)


def geometric_pmf(scale: Fraction) -> Callable[[int], arb]:
    """(1 - g) g^x."""

    def pmf(x: int) -> arb:
        with ctx.workprec(PRECISION):
            return (1 - LaplaceTruth(scale).g) * (-ball(x / scale)).exp() if x >= 0 else arb(0)

    return pmf


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_plain_geometric_and_laplace_draws_have_their_very_probabilities(scale: Fraction) -> None:
    assert is_drawn_exactly(plain.geometric, scale, geometric_pmf(scale))
    assert is_drawn_exactly(plain.laplace, scale, LaplaceTruth(scale).pmf)


def counts_zero_twice(scale: Fraction, entropy: Entropy) -> int:
    """A broken Laplace sampler: minus zero is not rejected."""
    magnitude = plain.geometric(scale, entropy)
    return -magnitude if entropy.bits(1) else magnitude


def drops_the_rest(scale: Fraction, entropy: Entropy) -> int:
    """A broken geometric sampler: the fraction's denominator is forgotten."""
    return plain.geometric(Fraction(scale.numerator), entropy)


def test_the_very_probabilities_notice_a_broken_sampler() -> None:
    assert not is_drawn_exactly(counts_zero_twice, Fraction(2), LaplaceTruth(Fraction(2)).pmf)
    assert not is_drawn_exactly(drops_the_rest, Fraction(5, 2), geometric_pmf(Fraction(5, 2)))
    assert not is_drawn_exactly(
        lambda *args: plain.laplace(*args) // 2 * 2, Fraction(2), LaplaceTruth(Fraction(2)).pmf
    )


class Proposed(Exception):
    """A second proposal: the first was rejected."""


def mass_of_acceptance(draw: Sampler, variance: Fraction, candidate: int) -> arb:
    """P(propose ``candidate``) P(accept it), the proposal's law and the coins of e^-gamma being
    given.
    """
    scales: list[Fraction] = []

    def propose(scale: Fraction, entropy: Entropy) -> int:
        scales.append(scale)
        if len(scales) > 1:
            raise Proposed
        return candidate

    def once(script: Script) -> bool:
        scales.clear()
        try:
            return draw(variance, script) == candidate
        except Proposed:
            return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "laplace", propose)
        patch.setattr(plain, "bernoulli_exp", coin)
        law, _ = every_path(once, 0.0)
    with ctx.workprec(PRECISION):
        return ball(law[True]) * LaplaceTruth(scales[0]).pmf(candidate)


def is_accepted_exactly(draw: Sampler, variance: Fraction) -> bool:
    """Whether accepted masses stand to each other as the weights do, within 1e-50."""
    truth = GaussianTruth(variance)
    with ctx.workprec(PRECISION):
        base = mass_of_acceptance(draw, variance, 0) / truth.pmf(0)
        shares = [mass_of_acceptance(draw, variance, x) / base / truth.pmf(x) for x in range(-8, 9)]
        return all(bool(abs(share - 1) < 1e-50) for share in shares)


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_plain_gaussian_draws_are_accepted_with_their_very_weights(variance: Fraction) -> None:
    assert is_accepted_exactly(plain.gaussian, variance)


def forgets_the_centre(variance: Fraction, entropy: Entropy) -> int:
    """A broken Gaussian sampler: accepts with exp(-y^2 / (2 sigma^2)) whatever was proposed."""
    while True:
        candidate = plain.laplace(Fraction(2), entropy)
        rate = candidate * candidate / (2 * variance)
        if plain.bernoulli_exp(rate.numerator, rate.denominator, entropy):
            return candidate


def test_the_very_weights_notice_a_centre_that_is_left_out() -> None:
    assert not is_accepted_exactly(forgets_the_centre, Fraction(2))


def drawn(draw: Sampler, number: Fraction, entropy: Entropy) -> tallies.Draw:
    """Draws as an array."""
    return lambda count: np.array([draw(number, entropy) for _ in range(count)])


LAWS = [
    pytest.param(
        plain.geometric,
        Fraction(20, 3),
        tallies.case(tallies.geometric, 20 / 3, 9.0),
        id="geometric",
    ),
    pytest.param(
        plain.laplace, Fraction(20, 3), tallies.case(tallies.laplace, 20 / 3, 9.0), id="laplace"
    ),
    pytest.param(
        plain.laplace,
        Fraction(2**52),
        tallies.case(tallies.laplace, 2.0**52, 1.4 * 2**52),
        id="wide",
    ),
    pytest.param(
        plain.gaussian, Fraction(49, 9), tallies.case(tallies.gaussian, 7 / 3, 3.0), id="gaussian"
    ),
]


@pytest.mark.parametrize(("draw", "number", "case"), LAWS)
def test_plain_draws_follow_the_law(draw: Sampler, number: Fraction, case: tallies.Case) -> None:
    tallies.assert_draws_follow(case, drawn(draw, number, SYSTEM), 15_000)


def unsigned_zero(scale: Fraction, entropy: Entropy) -> int:
    """A broken Laplace sampler, written out."""
    while not bernoulli_exp(offset := below(scale.numerator, entropy), scale.numerator, entropy):
        pass
    turns = 0
    while bernoulli_exp(1, 1, entropy):
        turns += 1
    return (offset + scale.numerator * turns) // scale.denominator * (1 - 2 * entropy.bits(1))


def test_the_law_notices_a_broken_sampler() -> None:
    case = tallies.case(tallies.laplace, 2.0, 2.6)
    tallies.assert_draws_follow(case, drawn(plain.laplace, Fraction(2), Replay(1)), 15_000)
    for draw, scale in (
        (unsigned_zero, Fraction(2)),
        (plain.laplace, Fraction(12, 5)),
        (plain.laplace, Fraction(8, 5)),
    ):
        with pytest.raises(AssertionError, match="counts are"):
            tallies.assert_draws_follow(case, drawn(draw, scale, Replay(1)), 15_000)


def test_a_scale_beyond_any_float_is_drawn() -> None:
    draws = [plain.laplace(Fraction(10**400), Replay(seed)) for seed in range(20)]
    assert max(draws) > 10**398
    assert min(draws) < -(10**398)
