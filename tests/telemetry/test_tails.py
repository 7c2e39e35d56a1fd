# SPDX-License-Identifier: Apache-2.0
"""The half width against the exact law of sums of coins."""

import numpy as np
import pytest
from scipy import stats

from sfumato.telemetry.tails import half_width


@pytest.mark.parametrize("count", [1, 10, 300, 5000])
@pytest.mark.parametrize("chance", [0.5, 0.1, 0.001])
@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-6])
def test_a_bounded_sum_stays_within_its_half_width(count, chance, miss):
    variance = count * chance * (1 - chance)
    reach = half_width(variance, variance, 1.0, miss)
    middle = count * chance
    outside = stats.binom.cdf(np.ceil(middle - reach) - 1, count, chance)
    outside += stats.binom.sf(np.floor(middle + reach), count, chance)
    assert outside <= miss + 1e-12


def test_it_is_near_the_normal_one_for_many_small_terms():
    assert 1.95996 < half_width(1.0, 1.0, 1e-4, 0.05) < 1.965
    # and never above that of Bernstein
    assert half_width(1.0, 1e-9, 1e-4, 0.05) == pytest.approx((2 * 3.6888794541) ** 0.5, rel=1e-3)
