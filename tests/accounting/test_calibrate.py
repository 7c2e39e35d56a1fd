# SPDX-License-Identifier: Apache-2.0
"""A split loses nothing, and no other split errs notably less."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sfumato.accounting import split
from sfumato.privacy import Norm

WEIGHTS = st.lists(st.fractions(min_value=0, max_value=10**6), min_size=1, max_size=8).filter(any)
TOTALS = st.fractions(min_value=Fraction(1, 10**12), max_value=10**6)


@given(TOTALS, WEIGHTS, st.sampled_from((Norm.L1, Norm.L2)))
@settings(deadline=None)
def test_shares_sum_to_the_stated_cost(total, weights, norm):
    shares = split(total, weights, norm)
    assert sum(shares) == total
    assert len(shares) == len(weights)
    assert all(share > 0 for share in shares)


@given(TOTALS, WEIGHTS, st.sampled_from((Norm.L1, Norm.L2)))
@settings(deadline=None)
def test_a_heavier_part_never_gets_less(total, weights, norm):
    ranked = [share for _, share in sorted(zip(weights, split(total, weights, norm), strict=True))]
    assert ranked == sorted(ranked)


def variance(shares, weights, norm):
    """The sum of relative variances that is to be small."""
    if norm is Norm.L1:
        return sum((w / s) ** 2 for w, s in zip(weights, shares, strict=True))
    return sum(w / s for w, s in zip(weights, shares, strict=True))


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
@pytest.mark.parametrize("weights", [[1, 1], [1, 2, 5], [1, 30], [3, 4, 5, 6]])
def test_no_other_split_errs_less(weights, norm):
    shares = [float(each) for each in split(Fraction(1), [Fraction(w) for w in weights], norm)]
    start = [1 / len(weights)] * len(weights)
    best = minimize(
        lambda tried: variance(tried, weights, norm),
        start,
        bounds=[(1e-4, 1)] * len(weights),
        constraints={"type": "eq", "fun": lambda tried: sum(tried) - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert best.success
    assert variance(shares, weights, norm) <= best.fun * 1.0001
    # the even split, which is what one would do without thinking, is worse where weights differ
    assert len(set(weights)) == 1 or variance(start, weights, norm) > best.fun * 1.001


def test_a_single_part_gets_all():
    assert split(Fraction(1, 3), [Fraction(7)], Norm.L1) == [Fraction(1, 3)]
