# SPDX-License-Identifier: Apache-2.0
"""The inverse of a trade-off curve is below the true one, and close to it."""

import math

import pytest
from scipy.special import ndtr, ndtri

from sfumato.accounting.approx_statement import family
from sfumato.audit.trade_off_inverse import inverse_of
from sfumato.privacy import ApproxDP, GaussianDP, PureDP

HITS = [10.0**power for power in range(-12, 0)] + [0.2, 0.5, 0.8, 0.99, 1 - 1e-6, 1.0]


@pytest.mark.parametrize("epsilon", [0, 1, 8])
def test_pure_claims_have_two_lines(epsilon):
    inverse = inverse_of(family(PureDP(epsilon)))
    odds = math.exp(epsilon)
    for hits in HITS:
        exact = max(hits / odds, 1 - odds * (1 - hits))
        assert exact * (1 - 1e-9) - 1e-9 * odds <= inverse(hits) <= exact


def test_a_delta_is_lost_at_small_hits():
    inverse = inverse_of(family(ApproxDP(1, "1e-3")))
    assert inverse(5e-4) == 0 and 0 < inverse(2e-3) <= 1e-3 / math.e


@pytest.mark.parametrize("mu", [0.25, 0.5, 2])
def test_no_test_has_fewer_false_alarms_than_the_inverse(mu):
    inverse = inverse_of(family(GaussianDP(mu**2)))
    for hits in HITS[:-1]:
        exact = float(ndtr(ndtri(hits) - mu))
        assert inverse(hits) <= exact * (1 + 1e-12)
        assert inverse(hits) >= 0.9 * exact - 1e-12
    assert inverse(1.0) <= 1
