# SPDX-License-Identifier: Apache-2.0
"""Coins have their very bias: every path of choices is followed, and its mass is added up."""

from fractions import Fraction

import pytest
from flint import ctx

from sfumato.noise import SYSTEM, bernoulli
from sfumato.noise.bernoulli import bernoulli_exp
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import PRECISION, ball, every_path

GAMMAS = [(0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (5, 7), (3, 2), (5, 2), (3, 1), (13, 5)]


def has_bias_of_exp(numerator: int, denominator: int) -> bool:
    """Whether the mass of True is e^-gamma within 1e-25, given coins of exact rational bias."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            bernoulli, "bernoulli", lambda over, under, script: script.coin(Fraction(over, under))
        )
        law, rest = every_path(
            lambda script: bernoulli.bernoulli_exp(numerator, denominator, script), 1e-30
        )
    with ctx.workprec(PRECISION):
        truth = (-ball(Fraction(numerator, denominator))).exp()
        sure = ball(law.get(True, 0))
        return rest < 1e-25 and bool(sure <= truth) and bool(truth <= sure + ball(rest))


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(0, 1), (1, 1), (1, 2), (1, 3), (5, 8), (7, 11), (6, 6)]
)
def test_a_coin_has_exactly_its_bias(numerator: int, denominator: int) -> None:
    law, rest = every_path(
        lambda entropy: bernoulli.bernoulli(numerator, denominator, entropy), 2**-20
    )
    decided = 1 - rest
    # rejection restarts from nothing, so the decided mass is split in the exact ratio
    assert law.get(True, 0) == decided * Fraction(numerator, denominator)
    assert rest < Fraction(1, 100)


@pytest.mark.parametrize(("numerator", "denominator"), GAMMAS)
def test_a_coin_of_exp_has_exactly_its_bias(numerator: int, denominator: int) -> None:
    assert has_bias_of_exp(numerator, denominator)


def test_the_bias_notices_a_series_that_stops_one_term_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shifted(numerator: int, denominator: int, entropy: bernoulli.Entropy) -> bool:
        term = 2
        while bernoulli.bernoulli(numerator, denominator * term, entropy):
            term += 1
        return term % 2 == 0

    monkeypatch.setattr(bernoulli, "_bernoulli_exp_unit", shifted)
    assert not has_bias_of_exp(1, 2)


def test_the_bias_notices_a_ratio_above_one_taken_in_one_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bernoulli, "bernoulli_exp", bernoulli._bernoulli_exp_unit)
    assert has_bias_of_exp(1, 2)
    assert not has_bias_of_exp(3, 2)


@pytest.mark.parametrize("entropy", [SYSTEM, Replay(11)], ids=["system", "replay"])
def test_coins_of_the_operating_system_have_the_stated_bias(entropy: bernoulli.Entropy) -> None:
    tosses = [int(bernoulli_exp(1, 2, entropy)) for _ in range(20_000)]
    # e^-1/2 = 0.6065...; a linearised 1 - 1/2 is a tenth away
    assert_follows(tosses, coin_cdf(0.6065306597126334), notices=coin_cdf(0.5))


def coin_cdf(bias):
    """The cdf of a coin that shows 1 with a probability."""
    return lambda x: 0.0 if x < 0 else 1.0 if x >= 1 else 1 - bias


def test_a_ratio_far_above_one_is_false_at_once() -> None:
    assert not bernoulli_exp(10**30, 1, SYSTEM)
    assert bernoulli_exp(0, 10**30, SYSTEM)
