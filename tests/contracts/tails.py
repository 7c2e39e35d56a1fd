# SPDX-License-Identifier: Apache-2.0
"""Exact tails of weighted pairs of discrete noise, by enumeration in floats (error about 1e-12)."""

import math
from functools import lru_cache

import numpy as np

from sfumato.noise import DiscreteLaplace, Noise


@lru_cache(maxsize=32)
def weights(noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """The support that matters and its probabilities, from the textbook formulas."""
    if isinstance(noise, DiscreteLaplace):
        scale = float(noise.scale)
        x = np.arange(-int(40 * scale) - 2, int(40 * scale) + 3)
        g = math.exp(-1 / scale)
        return x, (1 - g) / (1 + g) * g ** np.abs(x)
    variance = float(noise.sigma_squared)
    reach = int(9 * math.sqrt(variance)) + 3
    x = np.arange(-reach, reach + 1)
    p = np.exp(-(x**2) / (2 * variance))
    return x, p / p.sum()


def exact_tail(noise: Noise, t: float, m: float) -> float:
    """P(|(1-m) X - m Y| >= t), X and Y independent."""
    x, p = weights(noise)
    statistic = np.abs((1 - m) * x[:, None] - m * x[None, :])
    return float((p[:, None] * p[None, :])[statistic >= t - 1e-9].sum())
