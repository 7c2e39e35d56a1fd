# SPDX-License-Identifier: Apache-2.0
"""How far losses travel, against the law of a sum of sizes."""

import math

import numpy as np

from sfumato.accounting.loss import Gaussian, Sampled, discretise
from sfumato.accounting.loss.travel import travelled

OUTSIDE = 1e-18


def test_nearly_all_paths_travel_no_farther() -> None:
    x = discretise(Sampled(Gaussian(2.0), 0.05), 0.05, 1.0, outside=OUTSIDE)
    sizes, weights = np.abs(x.losses), x.weights / x.weights.sum()
    far = travelled([(x, 6)], 1e-3)
    # the law of the sum of six sizes, exactly
    steps = np.zeros(round(float(sizes.max()) / x.step) + 1)
    np.add.at(steps, np.rint(sizes / x.step).astype(int), weights)
    law = np.ones(1)
    for _ in range(6):
        law = np.convolve(law, steps)
    travels = np.arange(len(law)) * x.step
    assert float(law[travels > far].sum()) <= 1e-3
    assert far < x.travel * 6
    # without the price of a seldom path, more of them go farther
    assert float(law[travels > far + 6 * math.log(1e-3)].sum()) > 1e-3
