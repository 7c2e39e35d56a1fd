# SPDX-License-Identifier: Apache-2.0
"""At least 1e8 draws of each law against its exact probabilities.

Each test raises a false alarm with probability at most 1e-9, and misses the wrong law that it
names with at most 1e-9: a scale off by 0.1% wherever a law of that scale can show it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from sfumato.noise import (
    SYSTEM,
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Geometric,
    Law,
    Skellam,
    Truncated,
)
from sfumato.noise.curves import Exponential, Parabola
from sfumato.noise.rejection_sampler import Cells
from tests.noise import tallies
from tests.noise.tallies import Case, Floats, Tails, added_up, case

Report = Callable[[str], None]


@dataclass(frozen=True)
class Proof:
    """A law, its cells, how many draws, and in words what is noticed."""

    noise: Law
    case: Case
    draws: int
    notices: str

    def __str__(self) -> str:
        return str(self.noise)


def scaled(
    noise: Law, law: Callable[[float], Tails], width: float, draws: int, off: float = 0.001
) -> Proof:
    """A law whose scale is off by a share."""
    return Proof(noise, case(law, width, width * (1 + off)), draws, f"a scale off by {off:.1%}")


def staircase(epsilon: float) -> Tails:
    """e^(-epsilon k) on the k-th stair; the first is 414 long, the others 1000."""
    return added_up(
        lambda x: np.exp(-epsilon * np.where(abs(x) < 414, 0, 1 + (abs(x) - 414) // 1000)), 60_000
    )


def cut(law: Callable[[Floats], Floats], lower: int, upper: int) -> Tails:
    """A weight on an interval."""
    return added_up(
        lambda x: np.where((x >= lower) & (x <= upper), law(x), 0.0), max(-lower, upper)
    )


def skellam(rate: float) -> Tails:
    """e^(-2 rate) I_|x|(2 rate), the Bessel function scaled."""
    return added_up(lambda x: special.ive(abs(x), 2 * rate), 400)


def binomial(probability: float) -> Tails:
    """1000 coins."""
    return lambda e: (
        stats.binom.cdf(e - 1, 1000, probability),
        stats.binom.sf(e - 1, 1000, probability),
    )


LAPLACE = [("1", 1.0), ("16", 16.0), ("100", 100.0), ("1e6", 1e6), (str(2**52), 2.0**52)]
PROOFS = [
    *(
        scaled(DiscreteLaplace(text), tallies.laplace, width, 800_000_000)
        for text, width in LAPLACE
    ),
    # of scale 0.1 one draw in 11,000 is not zero
    scaled(DiscreteLaplace("0.1"), tallies.laplace, 0.1, 800_000_000, off=0.01),
    *(
        scaled(DiscreteGaussian(text), tallies.gaussian, width, 400_000_000)
        for text, width in LAPLACE
    ),
    # of sigma 0.1 no draw but zero is ever seen; of 0.2 one in 130,000
    scaled(DiscreteGaussian("0.1"), tallies.gaussian, 0.1, 100_000_000, off=1.0),
    scaled(Geometric(16), tallies.geometric, 16.0, 800_000_000),
    scaled(Geometric(10**6), tallies.geometric, 1e6, 800_000_000),
    Proof(
        DiscreteStaircase("0.7", 1000, 414),
        Case(staircase(0.7), staircase(0.7 * 1.005), 2, 12_000),
        100_000_000,
        "an epsilon off by 0.5%",
    ),
    Proof(
        Truncated(DiscreteLaplace(100), -150, 170),
        Case(
            cut(lambda x: np.exp(-abs(x) / 100), -150, 170),
            cut(lambda x: np.exp(-abs(x) / 101), -150, 170),
            0,
            175,
        ),
        200_000_000,
        "a scale off by 1%",
    ),
    Proof(
        Truncated(DiscreteGaussian(300), -200, 900),
        Case(
            cut(lambda x: np.exp(-x * x / 180_000), -200, 900),
            cut(lambda x: np.exp(-x * x / 180_000 / 1.01**2), -200, 900),
            0,
            905,
        ),
        200_000_000,
        "a sigma off by 1%",
    ),
    Proof(
        Binomial(1000, "0.3"),
        Case(binomial(0.3), binomial(0.3003), 0, 600),
        200_000_000,
        "a coin off by 0.1%",
    ),
    Proof(
        Skellam(50), Case(skellam(50), skellam(50.25), 0, 200), 200_000_000, "a rate off by 0.5%"
    ),
]


@pytest.mark.parametrize("proof", PROOFS, ids=str)
def test_a_hundred_million_draws_follow_the_law(proof: Proof, report: Report) -> None:
    started = time.process_time()
    tallies.assert_draws_follow(proof.case, proof.noise.sample, proof.draws)
    seconds = time.process_time() - started
    report(
        f"{proof}: {proof.draws:.1e} draws follow it, sure to notice {proof.notices} ({seconds:.0f} s)"
    )


@pytest.mark.parametrize("off", ["1.001", "0.999"])
def test_a_scale_off_by_a_thousandth_is_noticed(off: str) -> None:
    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_draws_follow(
            case(tallies.laplace, 100.0, 100.1),
            DiscreteLaplace(100 * Fraction(off)).sample,
            800_000_000,
        )


LOW_BITS = [
    (DiscreteLaplace(10**5), tallies.low_bits_of_laplace(1e5)),
    (DiscreteLaplace(2**52), tallies.low_bits_of_laplace(2.0**52)),
    (DiscreteGaussian(10**5), tallies.low_bits_of_gaussian(1e5)),
    (DiscreteGaussian(2**52), tallies.low_bits_of_gaussian(2.0**52)),
    (Geometric(10**6), tallies.low_bits_of_geometric(1e6)),
]


@pytest.mark.parametrize(
    ("noise", "law"), LOW_BITS, ids=lambda each: "" if isinstance(each, np.ndarray) else str(each)
)
def test_the_low_bits_of_a_hundred_million_draws_follow_the_law(noise: Law, law: Floats) -> None:
    tallies.assert_low_bits_follow(law, noise.sample, 200_000_000)


@pytest.mark.parametrize(
    ("noise", "law", "width"),
    [
        (DiscreteLaplace(16), tallies.laplace, 16.0),
        (DiscreteGaussian(10**6), tallies.gaussian, 1e6),
    ],
    ids=["laplace", "gaussian"],
)
def test_ten_million_single_draws_follow_the_law(
    noise: Law, law: Callable[[float], Tails], width: float
) -> None:
    def singly(count: int) -> tallies.Integers:
        return np.fromiter((noise.sample_one() for _ in range(count)), np.int64, count)

    tallies.assert_draws_follow(case(law, width, 1.01 * width), singly, 10_000_000)


@pytest.mark.parametrize(
    ("table", "law", "width"),
    [
        (
            Cells(
                Exponential(Fraction(30), two_sided=True, reach=1),
                bits=7,
                fineness=8,
                height_bits=1,
            ),
            tallies.laplace,
            30.0,
        ),
        (
            Cells(Parabola(Fraction(300**2), reach=1), bits=7, fineness=8, height_bits=1),
            tallies.gaussian,
            300.0,
        ),
    ],
    ids=["laplace", "gaussian"],
)
def test_a_million_draws_in_forced_doubt_follow_the_law(
    table: Cells, law: Callable[[float], Tails], width: float
) -> None:
    def draw(count: int) -> tallies.Integers:
        out = np.empty(count, np.int64)
        table.fill(out, SYSTEM)
        return out

    tallies.assert_draws_follow(case(law, width, 1.03 * width), draw, 1_000_000)
