# SPDX-License-Identifier: Apache-2.0
"""What the accountants are asked, alike for every system."""

import math
from dataclasses import dataclass
from random import Random

DELTA = 1e-6


@dataclass(frozen=True, slots=True)
class Sgd:
    """DP-SGD: ``steps`` steps with Gaussian noise of ``sigma`` clipping norms on Poisson samples of ``rate``."""

    rate: float
    sigma: float
    steps: int
    delta: float


SGD = {
    "a million steps": Sgd(1e-3, 0.6, 10**6, DELTA),
    "a million steps, delta 1e-12": Sgd(1e-3, 0.6, 10**6, 1e-12),
    # Abadi et al. (2016): batches of 256 of 60,000, here for 60 epochs
    "MNIST": Sgd(256 / 60_000, 1.1, 14_062, 1e-5),
}
# a million of these: the standard deviation of the noise, and the epsilon of each
GAUSSIAN_SIGMA, LAPLACE_EPSILON, MANY = 1000.0, 6e-4, 10**6
# the noise of so many steps at this rate is calibrated to (1, DELTA)
CALIBRATED = Sgd(0.01, math.nan, 10**4, DELTA)
# each question of a sequence, of how much
QUESTION = 1e-4


def grid(count: int) -> list[Sgd]:
    """So many settings of DP-SGD: rates 1e-6 to 1, sigmas .3 to 100, 1 to 10^7 steps, deltas 1e-3 to 1e-15."""
    random = Random(16)  # noqa: S311
    found = []
    for _ in range(count):
        rate, sigma, steps, delta = (
            10 ** random.uniform(low, high)
            for low, high in ((-6, 0), (math.log10(0.3), 2), (0, 7), (-15, -3))
        )
        # one in twenty without a sample
        rate = 1.0 if random.random() < 0.05 else rate
        rate, sigma, delta = (float(f"{each:.3g}") for each in (rate, sigma, delta))
        found.append(Sgd(rate, sigma, int(steps), delta))
    return found


def mix(count: int) -> list[tuple[str, float]]:
    """So many different mechanisms: a kind, and its epsilon (Gaussian: 1 / sigma)."""
    # the same in every process; nothing is protected by it
    random = Random(7)  # noqa: S311
    kinds = ("laplace", "gaussian", "geometric", "response", "exponential")
    low, high = math.log(2e-3), math.log(2e-2)
    return [(kinds[each % 5], math.exp(random.uniform(low, high))) for each in range(count)]
