# SPDX-License-Identifier: Apache-2.0
"""How much the time of a draw tells of its size: measured and reported, not asserted.

Jin, McMurtry, Rubinstein and Ohrimenko (2022) read the noise off the time that a sampler takes.
Noise for a charge is drawn before the data are read (RULES 25), all cells at once. What an
observer could see is then the time of a whole vector; single draws are measured for comparison,
and the plain samplers, which show what the attack lives on.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import spearmanr

from sfumato.noise import (
    SYSTEM,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Geometric,
    Law,
    plain,
)

DRAWS, VECTORS, CELLS = 30_000, 6000, 64
LAWS = [
    *(DiscreteLaplace(scale) for scale in (1, 16, 100, 10**6)),
    *(DiscreteGaussian(sigma) for sigma in (1, 16, 100, 10**6)),
    Geometric(16),
    DiscreteStaircase("0.7", 1000),
]
PLAIN = [
    ("plain Laplace of scale 16", partial(plain.laplace, Fraction(16), SYSTEM)),
    ("plain Gaussian of sigma 16", partial(plain.gaussian, Fraction(256), SYSTEM)),
]


def timed(draw: Callable[[], object], times: int) -> tuple[np.ndarray, np.ndarray]:
    """The size of each draw, a vector's as the sum of its sizes, and the nanoseconds that it
    took.
    """
    sizes, took = np.empty(times), np.empty(times, np.int64)
    clock = time.perf_counter_ns
    for place in range(times):
        begun = clock()
        drawn = draw()
        took[place] = clock() - begun
        sizes[place] = np.abs(np.asarray(drawn, np.float64)).sum()
    return sizes, took


def told(sizes: np.ndarray, took: np.ndarray) -> str:
    """Spearman's correlation, and by how much the largest twentieth takes longer in the median."""
    spearman = spearmanr(sizes, took).statistic if np.ptp(sizes) else 0.0
    large = took[sizes >= np.quantile(sizes, 0.95)]
    return f"Spearman {spearman:+.3f}, largest 5% {np.median(large) - np.median(took):+.0f} of {np.median(took):.0f} ns"


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_what_the_time_tells_of_the_noise(noise: Law, report: Callable[[str], None]) -> None:
    for _ in range(100):
        noise.sample_one()
        noise.sample(CELLS)
    report(f"{noise}, one by one: {told(*timed(noise.sample_one, DRAWS))}")
    report(f"{noise}, vectors of {CELLS}: {told(*timed(lambda: noise.sample(CELLS), VECTORS))}")
    report(
        f"{noise}, vectors of {CELLS**2}: {told(*timed(lambda: noise.sample(CELLS**2), VECTORS // 10))}"
    )


@pytest.mark.parametrize(("name", "draw"), PLAIN)
def test_what_the_time_of_the_plain_samplers_tells(
    name: str, draw: Callable[[], int], report: Callable[[str], None]
) -> None:
    report(f"{name}, one by one: {told(*timed(draw, DRAWS))}")
