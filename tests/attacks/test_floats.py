# SPDX-License-Identifier: Apache-2.0
"""Attacks on noise in floating point: each breaks a textbook sampler; integers leave it nothing to
look at.

The attacker knows that the exact answer is 0 or 1, sees the noisy one, and asks which of the two
can have given it. A single output that only one of them can give breaks any epsilon.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.exact.rounding import exp_up
from sfumato.noise import SYSTEM, DiscreteGaussian, DiscreteLaplace, Law
from sfumato.noise.entropy import words
from tests.noise import tallies

Outputs: TypeAlias = NDArray[np.float64]
Possible: TypeAlias = Callable[[Outputs, float], NDArray[np.bool_]]

TRIALS = 20_000
FINEST = 2.0**-53
# A step of our lattice, far coarser than the last place of any output: sums on it are exact.
STEP = 2.0**-20


def fair(count: int) -> Outputs:
    """Multiples of 2^-53 in (0, 1], and their signs in the last bit of another word."""
    return ((words(count, SYSTEM) >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * FINEST


def signs(count: int) -> Outputs:
    """+1 and -1."""
    return 1.0 - 2.0 * (words(count, SYSTEM) >> np.uint64(63)).astype(np.float64)


def identified(outputs: Outputs, exact: float, possible: Possible) -> float:
    """The share of the outputs that the attacker attributes for certain, and rightly."""
    assert possible(outputs, exact).all()
    return float((~possible(outputs, 1.0 - exact)).mean())


# ---------------------------------------------------------------- Mironov 2012: holes


def textbook(multiples: Outputs, sign: Outputs) -> Outputs:
    """Laplace noise of scale 1 by inversion, as it is in textbooks."""
    return -sign * np.log(multiples)


def is_no_hole(outputs: Outputs, exact: float) -> NDArray[np.bool_]:
    """Whether the textbook noise can turn ``exact`` into each output: some multiple near the
    inverse gives it.
    """
    noise = outputs - exact
    near = np.rint(np.exp(-np.abs(noise)) / FINEST)
    found = np.zeros(len(outputs), np.bool_)
    for away in range(-8, 9):
        multiples = np.clip(near + away, 1, 2**53) * FINEST
        found |= exact + textbook(multiples, np.sign(noise)) == outputs
    return found


@pytest.mark.parametrize("exact", [0.0, 1.0])
def test_holes_in_textbook_noise_give_the_answer_away(exact: float) -> None:
    assert identified(exact + textbook(fair(TRIALS), signs(TRIALS)), exact, is_no_hole) > 0.5


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(1), DiscreteLaplace(10), DiscreteGaussian(3)], ids=str
)
def test_ours_has_no_holes(noise: Law) -> None:
    """Every output near the answers is given by both of them."""
    reach = noise.half_width("0.99") - 1
    zero, one = set(noise.sample(10**6).tolist()), set((noise.sample(10**6) + 1).tolist())
    assert set(range(-reach, reach + 1)) <= zero & one


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10), Fraction(1, 10**6)], ids=str)
def test_no_output_tells_more_than_epsilon(epsilon: Fraction) -> None:
    """Not the rarest either: its probabilities under both answers are stated as brackets, and
    compared.
    """
    noise = DiscreteLaplace(1 / epsilon)
    for place in (-700, -30, -3, -1, 0, 1, 2, 30, 700):
        for output in range(int(place / epsilon) - 2, int(place / epsilon) + 3):
            zero, one = noise.pmf(output), noise.pmf(output - 1)
            assert Fraction(zero.lower) <= exp_up(epsilon) * Fraction(one.upper)
            assert Fraction(one.lower) <= exp_up(epsilon) * Fraction(zero.upper)
            assert zero.upper > 0 and one.upper > 0


def test_holes_in_the_low_bits_of_wide_noise_are_found_in_rounded_doubles_and_not_in_ours() -> None:
    wide = 2**50
    law = tallies.low_bits_of_laplace(float(wide))
    tallies.assert_low_bits_follow(law, DiscreteLaplace(wide).sample, 8_000_000)

    def rounded(count: int) -> tallies.Integers:
        return np.rint(wide * textbook(fair(count), signs(count))).astype(np.int64)

    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_low_bits_follow(law, rounded, 8_000_000)


# ---------------------------------------------------------------- Haney et al. 2022: precision


def seamless(count: int) -> Outputs:
    """Laplace noise without holes near zero: an exponential whose last places go on below 2^-53."""
    leading = np.maximum(words(count, SYSTEM).astype(np.float64), 1.0) * 2.0**-64
    exponential = np.where(
        leading < 0.5, -np.log1p(-leading), -np.log(np.maximum(1 - leading, FINEST))
    )
    return exponential * signs(count)


def is_as_coarse_as_the_sum(outputs: Outputs, exact: float) -> NDArray[np.bool_]:
    """Whether ``exact`` plus some double is the output, to judge by how fine the output is.

    With exact = 1 and an output in (0, 1/2) the noise is in (-1, -1/2), a multiple of 2^-53, and
    so is the sum. With exact = 0 it is any double.
    """
    multiple = np.rint(outputs / FINEST) * FINEST == outputs
    return multiple | (outputs <= 0) | (outputs >= 0.5) | (exact == 0)


def test_the_precision_of_a_sum_gives_the_answer_away() -> None:
    # 20% of the outputs lie in (0, 1/2), and two thirds of those are too fine to be 1 plus a double
    assert identified(0.0 + seamless(TRIALS), 0.0, is_as_coarse_as_the_sum) > 0.1


@pytest.mark.parametrize(
    "possible",
    [is_as_coarse_as_the_sum, lambda outputs, exact: np.rint(outputs / STEP) * STEP == outputs],
)
@pytest.mark.parametrize("exact", [0.0, 1.0])
def test_ours_is_as_coarse_whatever_the_answer(exact: float, possible: Possible) -> None:
    noise = DiscreteLaplace(1 / Fraction(STEP))
    outputs = (int(exact / STEP) + noise.sample(TRIALS)).astype(np.float64) * STEP
    assert identified(outputs, exact, possible) == 0
