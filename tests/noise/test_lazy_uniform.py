# SPDX-License-Identifier: Apache-2.0
"""A uniform number is below a real with the probability of the real: every path of bits is
followed.
"""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.exact.exponential import exp_scaled
from sfumato.noise import SYSTEM, lazy_uniform
from sfumato.noise.lazy_uniform import Bounds, is_below
from sfumato.testing import Replay, assert_counts_follow
from tests.noise.truth import ball, every_path

REALS = st.fractions(min_value=-2, max_value=3, max_denominator=1000)


def bounds_of(a: Fraction, slack: int = 0) -> Bounds:
    """The floor and the ceiling of 2^p a, loosened by ``slack``."""

    def bounds(precision: int) -> tuple[int, int]:
        scaled = a * 2**precision
        return scaled.__floor__() - slack, scaled.__ceil__() + slack

    return bounds


def law_of(
    below: Callable[..., bool], a: Fraction, slack: int = 0, **begun: int
) -> tuple[Fraction, Fraction]:
    """The mass of yes, and that of the paths not yet decided after about 2^-12.

    Three bits a step.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy_uniform, "_STEP", 3)
        law, rest = every_path(lambda entropy: below(bounds_of(a, slack), entropy, **begun), 2**-12)
    return law.get(True, Fraction(0)), rest


def has_the_probability(below: Callable[..., bool], a: Fraction, slack: int = 0) -> bool:
    """Whether yes has the mass of the real, up to the undecided."""
    yes, rest = law_of(below, a, slack)
    chance = min(max(a, Fraction(0)), Fraction(1))
    return yes <= chance <= yes + rest and rest < Fraction(1, 20)


@given(REALS, st.integers(0, 2))
@settings(deadline=None)
def test_a_uniform_number_is_below_a_real_with_the_probability_of_the_real(
    a: Fraction, slack: int
) -> None:
    assert has_the_probability(is_below, a, slack)


@given(REALS, st.integers(1, 5), st.data())
@settings(deadline=None)
def test_bits_that_are_known_are_drawn_on(a: Fraction, known: int, data: st.DataObject) -> None:
    prefix = data.draw(st.integers(0, 2**known - 1))
    yes, rest = law_of(is_below, a, prefix=prefix, known=known)
    chance = min(max(a * 2**known - prefix, Fraction(0)), Fraction(1))
    assert yes <= chance <= yes + rest


def guesses(
    bounds: Bounds, entropy: lazy_uniform.Entropy, *, prefix: int = 0, known: int = 0
) -> bool:
    """A broken comparison: undecided is taken for a yes."""
    prefix, known = (
        prefix << lazy_uniform._STEP | entropy.bits(lazy_uniform._STEP),
        known + lazy_uniform._STEP,
    )
    return prefix < bounds(known)[1]


def forgets(
    bounds: Bounds, entropy: lazy_uniform.Entropy, *, prefix: int = 0, known: int = 0
) -> bool:
    """A broken comparison: each round draws a new number."""
    while True:
        prefix = entropy.bits(lazy_uniform._STEP)
        lower, upper = bounds(lazy_uniform._STEP)
        if prefix + 1 <= lower or prefix >= upper:
            return prefix + 1 <= lower


@pytest.mark.parametrize("broken", [guesses, forgets])
def test_the_probability_notices_a_broken_comparison(broken: Callable[..., bool]) -> None:
    assert has_the_probability(is_below, Fraction(1, 3))
    assert not has_the_probability(broken, Fraction(1, 3))


def test_the_bits_are_asked_for_a_word_at_a_time() -> None:
    class Counting:
        def __init__(self) -> None:
            self.asked: list[int] = []

        def bits(self, count: int) -> int:
            self.asked.append(count)
            return 0

    entropy = Counting()
    assert is_below(bounds_of(Fraction(1, 2**70)), entropy)
    assert entropy.asked == [64, 64]


@pytest.mark.parametrize("entropy", [SYSTEM, Replay(5)], ids=["system", "replay"])
def test_a_coin_of_e_to_the_minus_one_half_has_its_bias(entropy: lazy_uniform.Entropy) -> None:
    yes = sum(
        is_below(lambda precision: exp_scaled(1, 2, precision), entropy) for _ in range(20_000)
    )
    bias = float(ball(Fraction(-1, 2)).exp())
    # a linearised 1 - 1/2 is a tenth away
    assert_counts_follow([20_000 - yes, yes], [1 - bias, bias], notices=[0.5, 0.5])
