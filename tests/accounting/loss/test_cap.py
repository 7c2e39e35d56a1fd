# SPDX-License-Identifier: Apache-2.0
"""Capped losses: closed forms of one step, uncapped lattices of many, mutants."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.accounting.loss import Gaussian, Lattice, Sampled, delta_at, discretise, power
from sfumato.accounting.loss.cap import Capped, cappable, with_cap
from sfumato.accounting.loss.lattice import Cap
from tests.accounting.loss import oracle

OUTSIDE = 1e-30
MU, RATE = Fraction(5, 3), Fraction(1, 10_000)
PAIR = Sampled(Gaussian(float(MU)), float(RATE))
# more steps than one, whose sum often falls below what a low cap asks for
WIDE, TIMES = Sampled(Gaussian(1.0), 0.05), 400


def summed(
    pair: Sampled, top: float, step: float, times: int, epsilon: float, tilt: float
) -> Lattice:
    """So many capped losses."""
    capped = Capped.at(pair, top, OUTSIDE).on(step, OUTSIDE)
    one = discretise(capped, step, tilt, outside=OUTSIDE)
    return with_cap(power(one, times, 1e-9), capped, [one], times, epsilon)


def plain(times: int, epsilon: float) -> float:
    """Delta without a cap, to a relative 1e-3."""
    found = delta_at(power(discretise(WIDE, 1e-4, 2.0, outside=OUTSIDE), times, 1e-9), epsilon)
    assert found.width < 1e-3 * found.upper
    return found.lower


@pytest.mark.parametrize("top", [0.02, 0.1, 1.0])
def test_a_cap_keeps_the_mass_of_both_laws(top: float) -> None:
    capped = Capped.at(PAIR, top, OUTSIDE)
    # what P has at infinity is its delta at the cap, in closed form
    infinite = oracle.sampled_gaussian_delta(MU, RATE, top, added=False)
    assert capped.least <= infinite <= capped.most
    assert capped.most - capped.least <= 1e-9 * capped.most
    q, m, x = oracle.number(RATE), oracle.number(MU), oracle.number(top).exp()
    tail = oracle.normal_tail(((x - 1 + q) / q).log() / m + m / 2)
    assert capped.mass == pytest.approx(float(tail.mid()), rel=1e-11)
    assert tail * x + infinite <= capped.above


@pytest.mark.parametrize("epsilon", [0.0, 0.001, 0.012, 0.019])
@pytest.mark.parametrize("top", [0.02, 0.5])
def test_losses_below_the_cap_stay_as_they_are(epsilon: float, top: float) -> None:
    found = delta_at(summed(PAIR, top, 1e-5, 1, epsilon, 10.0), epsilon)
    truth = oracle.sampled_gaussian_delta(MU, RATE, epsilon, added=False)
    assert found.lower <= truth <= found.upper
    assert found.width <= 2e-3 * found.upper


def test_the_cap_moves_to_the_next_point_of_a_lattice() -> None:
    capped = Capped.at(PAIR, 0.1, OUTSIDE)
    moved = capped.on(0.03, OUTSIDE)
    assert moved.top == 0.03 * 4 and moved.most < capped.most
    assert moved.on(0.03, OUTSIDE) == moved
    assert moved.reach(OUTSIDE).upper == moved.worst == moved.top


@pytest.mark.parametrize("distance", [-0.2, 0.0, 0.1, 0.3, 1.0, 2.0])
def test_a_capped_sum_is_too_large_only_where_the_others_fall_low(distance: float) -> None:
    epsilon = 1.0
    truth = plain(TIMES, epsilon)
    found = delta_at(summed(WIDE, epsilon + distance, 1e-4, TIMES, epsilon, 2.0), epsilon)
    assert found.lower <= truth * (1 + 1e-3) and truth <= found.upper
    if distance == 2.0:
        assert found.width < 1e-3 * found.upper


def _without(change: Callable[[Lattice], Lattice]) -> bool:
    """Whether, of a low cap, the bounds still hold the truth."""
    truth, x = plain(TIMES, 1.0), change(summed(WIDE, 0.3, 1e-4, TIMES, 1.0, 2.0))
    found = delta_at(x, 1.0)
    return found.lower <= truth * (1 + 1e-3) and truth <= found.upper


def _known(x: Lattice) -> Cap:
    assert x.cap is not None
    return x.cap


def test_a_lower_end_that_forgets_what_a_cap_adds_is_noticed() -> None:
    assert _without(lambda x: x)
    assert not _without(lambda x: replace(x, cap=replace(_known(x), log_chance=-math.inf)))


def test_an_upper_end_that_forgets_infinity_is_noticed() -> None:
    epsilon, top = 0.012, 0.02
    truth = oracle.sampled_gaussian_delta(MU, RATE, epsilon, added=False)
    x = summed(PAIR, top, 1e-5, 1, epsilon, 10.0)
    assert not truth <= delta_at(replace(x, hidden=0.0), epsilon).upper
    twice = replace(x, cap=replace(_known(x), infinite=2 * _known(x).infinite))
    assert not delta_at(twice, epsilon).lower <= truth


def test_only_sampled_gaussians_are_capped() -> None:
    assert cappable(PAIR) and not cappable(Gaussian(1.0))
