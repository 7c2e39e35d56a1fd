# SPDX-License-Identifier: Apache-2.0
"""Quantiles on a grid: exact law, what a unit moves, cost, error; mutants."""

import math
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import grid
from sfumato.mechanisms.grid import (
    GridQuantiles,
    concentrated_grid_quantiles,
    end_runs,
    end_shift,
    grid_quantiles,
)
from sfumato.mechanisms.rank_runs import rank_runs
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.testing import Replay, assert_at_most, assert_follows

LEVELS = [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10), Fraction(2, 3)]
WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def rank_error(weights, level, leaf):
    """By its definition: the distance of q N from the ranks that the leaf takes."""
    total, before = sum(weights), sum(weights[:leaf])
    low, high = Fraction(before), Fraction(before + weights[leaf])
    at = level * total
    return max(low - at, at - high, Fraction(0))


def sparse(weights):
    """The leaves that have a weight, and the weights."""
    leaves = np.flatnonzero(np.array(weights, object))
    kind = np.int64 if max(weights) < 2**62 else object
    return leaves, np.array([weights[leaf] for leaf in leaves], kind)


def released(mechanism, weights, *entropy):
    return mechanism.release(*sparse(weights), len(weights), *entropy)


def spread_out(runs, size):
    """The error of each leaf, of runs."""
    errors = [None] * size
    for start, width, error in zip(*(part.tolist() for part in runs), strict=True):
        for leaf in range(start, start + width):
            assert errors[leaf] is None
            errors[leaf] = error
    return errors


def rank_scores(weights, level):
    runs = rank_runs(*sparse(weights), (0, len(weights) - 1), level)
    return [-error for error in spread_out(runs, len(weights))]


def end_scores(sign, shift, weights, level):
    """The scores of the leaves for an end, and of the end of the range."""
    *runs, beyond = zip(
        *end_runs(*sparse(weights), (0, len(weights) - 1), level, sign * shift), strict=True
    )
    leaves = spread_out([np.array(part) for part in zip(*runs, strict=True)], len(weights))
    assert beyond[:2] == ((0 if sign < 0 else len(weights) - 1), 1)
    return [-error for error in (*leaves, beyond[2])]


def moves(scores, weights, level, amount):
    """The largest change of a score when a unit adds at most ``amount`` to any leaves."""
    changes = []
    for added in product(range(amount + 1), repeat=len(weights)):
        if sum(added) <= amount:
            after = scores([one + other for one, other in zip(weights, added, strict=True)], level)
            changes += [
                abs(one - other) for one, other in zip(scores(weights, level), after, strict=True)
            ]
    return Fraction(max(changes), level.denominator)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("weights", [[0, 0, 0], [3, 0, 1], [0, 5, 2], [1, 1, 1]])
def test_a_weight_moves_a_rank_error_by_at_most_q_or_one_minus_q(weights, level):
    assert moves(rank_scores, weights, level, 3) <= max(level, 1 - level) * 3
    for sign, shift in product((-1, 1), (1, 4)):
        scores = partial(end_scores, sign, shift)
        assert moves(scores, weights, level, 3) <= max(level, 1 - level) * 3


def test_an_end_of_the_range_at_a_fixed_rank_moves_more_and_is_noticed():
    def at_rank_zero(weights, level):
        """The mutant: the target is cut at 0, so that some leaf always has no error."""
        shift = min(Fraction(4), level * sum(weights))
        return [
            -level.denominator * rank_error(weights, level - shift / max(sum(weights), 1), leaf)
            for leaf in range(len(weights))
        ]

    assert moves(at_rank_zero, [3, 0, 1], Fraction(1, 10), 3) > Fraction(9, 10) * 3


def test_a_score_by_the_middle_alone_moves_more_and_is_noticed():
    def middle(weights, level):
        """The mutant: the rank of the middle of the leaf, which the unit moves together with q
        N.
        """
        total = sum(weights)
        return [
            -level.denominator * abs(2 * sum(weights[:leaf]) + 2 * weight - level * 2 * total)
            for leaf, weight in enumerate(weights)
        ]

    assert moves(middle, [3, 0, 1], Fraction(9, 10), 3) > Fraction(9, 10) * 3


def test_a_leaf_follows_the_exponential_mechanism():
    weights, level, rate = [2, 0, 5, 1], Fraction(1, 3), Fraction(1, 2)

    def cdf(at_rate):
        likely = [math.exp(-at_rate * rank_error(weights, level, leaf)) for leaf in range(4)]
        return lambda leaf: sum(likely[: max(leaf + 1, 0)]) / sum(likely)

    # at a level of a third a weight moves two thirds
    mechanism, entropy = GridQuantiles((level,), rate * Fraction(2, 3)), Replay(11)
    draws = [released(mechanism, weights, entropy)[0] for _ in range(6_000)]
    assert_follows(draws, cdf(float(rate)), notices=cdf(float(rate) * 4))


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("groups", [1, 5])
def test_the_cost_is_what_was_asked_for(relation, groups):
    weight = Distance(Norm.LINF, Fraction(7), relation)
    pure = grid_quantiles(weight, groups, "0.3", ["0.5", "0.9"])
    assert account(pure.event(weight, groups)).epsilon == Fraction(3, 10)
    concentrated = concentrated_grid_quantiles(weight, groups, "0.01", ["0.5", "0.9"])
    rho = account(concentrated.event(weight, groups)).rho
    assert Fraction(1, 100) - Fraction(1, 10**12) < rho <= Fraction(1, 100)


@pytest.mark.parametrize("weights", [[4, 1, 0], [0, 0, 3]])
def test_neighbours_are_within_the_pure_loss(weights):
    """The exact law of two levels: no unit of weight 2 makes an output e^epsilon times likelier."""
    weight = Distance(Norm.LINF, Fraction(2))
    mechanism = grid_quantiles(weight, 1, 1, ["0.5", "0.75"])

    def law(held):
        per_level = []
        for level in mechanism.levels:
            rate = mechanism.rate / max(level, 1 - level)
            likely = [math.exp(-rate * rank_error(held, level, leaf)) for leaf in range(3)]
            per_level.append([each / sum(likely) for each in likely])
        return [one * other for one in per_level[0] for other in per_level[1]]

    for added in product(range(3), repeat=3):
        if sum(added) <= 2:
            after = [one + other for one, other in zip(weights, added, strict=True)]
            ratios = [one / other for one, other in zip(law(weights), law(after), strict=True)]
            assert max(*ratios, *(1 / each for each in ratios)) <= math.exp(1) * (1 + 1e-9)


def test_the_rank_error_of_a_leaf_is_as_stated():
    weights = [1] * 200
    mechanism = grid_quantiles(Distance(Norm.LINF, Fraction(1)), 1, "0.5", ["0.5"])
    (reach,) = mechanism.error("0.9", leaves=200)
    entropy = Replay(5)
    misses = sum(
        rank_error(weights, Fraction(1, 2), released(mechanism, weights, entropy)[0]) > reach
        for _ in range(4_000)
    )
    assert_at_most(misses, 4_000, 0.1, notices=0.21)


# nine rows at either end, one in the middle, and one that goes from the one end to the other
LEAVES = [10, *[0] * 9, 1, *[0] * 9, 9], [9, *[0] * 9, 1, *[0] * 9, 10]


def loss_of_a_replaced_row(level, make, cost):
    """The exact pure and zCDP loss (at several orders) of a row that stays in its group, over what
    is booked.
    """
    weight = Distance(Norm.LINF, Fraction(1), Relation.REPLACE_ONE)
    mechanism = make(weight, 1, cost, [level])
    booked = account(mechanism.event(weight, 1))
    (rate,), laws = mechanism.rates, []
    for held in LEAVES:
        likely = [
            math.exp(-rate * rank_error(held, mechanism.levels[0], leaf))
            for leaf in range(len(held))
        ]
        laws.append([each / sum(likely) for each in likely])
    one, other = laws
    pure = max(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))
    orders = (1.001, 1.5, 2, 4, 16)
    moments = [
        sum(a**order * b ** (1 - order) for a, b in zip(one, other, strict=True))
        for order in orders
    ]
    concentrated = [
        math.log(moment) / (order - 1) / order
        for moment, order in zip(moments, orders, strict=True)
    ]
    return pure / float(booked.epsilon), max(concentrated) / float(booked.rho)


@pytest.mark.parametrize("cost", [Fraction(1, 100), Fraction(1)])
@pytest.mark.parametrize("make", [grid_quantiles, concentrated_grid_quantiles])
@pytest.mark.parametrize("level", ["0.1", "0.3", "0.4", "0.5", "0.6", "0.7", "0.71", "0.8"])
def test_a_unit_that_is_replaced_may_stay_in_its_group(level, make, cost):
    assert max(loss_of_a_replaced_row(level, make, cost)) <= 1 + 1e-9


def test_two_selections_for_the_one_that_a_replaced_unit_moves_are_noticed(monkeypatch):
    monkeypatch.setattr(grid, "_selections", lambda level, groups, relation: (2 * groups, 1))
    _, concentrated = loss_of_a_replaced_row("0.5", concentrated_grid_quantiles, Fraction(1, 100))
    assert concentrated > 1.8


@pytest.mark.parametrize("make", [grid_quantiles, concentrated_grid_quantiles])
def test_every_level_costs_the_same_and_is_as_exact_as_alone(make):
    weight = Distance(Norm.LINF, Fraction(7))
    levels = ["0.5", "0.9", "0.99"]
    together = make(weight, 5, Fraction(3, 10), levels)
    for level, rate in zip(levels, together.rates, strict=True):
        (alone,) = make(weight, 5, Fraction(1, 10), [level]).rates
        assert float(rate) == pytest.approx(float(alone))


def test_a_mechanism_at_twice_the_rate_costs_twice_as_much(monkeypatch):
    weight = Distance(Norm.LINF, Fraction(3))
    monkeypatch.setattr(grid, "_selections", lambda level, groups, relation: (Fraction(1, 2), 1))
    broken = grid_quantiles(weight, 1, 1, ["0.5"])
    monkeypatch.undo()
    assert account(broken.event(weight, 1)).epsilon > 1


@pytest.mark.parametrize("levels", [[], [0], [1], ["1.5"], [Fraction(1, 10**7 + 1)]])
def test_what_is_no_level_is_refused(levels):
    with pytest.raises(InvalidNumber):
        GridQuantiles(tuple(levels), Fraction(1))


def test_weights_and_distances_that_are_none_are_refused():
    mechanism = grid_quantiles(Distance(Norm.LINF, Fraction(1)), 1, 1, ["0.5"])
    for leaves, weights in (([0], [-1]), ([0], [0]), ([1, 0], [1, 1]), ([9], [1]), ([0], [1, 1])):
        with pytest.raises(InvalidDeclaration):
            mechanism.release(np.array(leaves), weights, 9)
    with pytest.raises(InvalidNumber):
        mechanism.release(np.array([0]), [Fraction(3, 2)], 9)
    with pytest.raises(InvalidDeclaration):
        mechanism.release(np.zeros(0, np.int64), [], 0)
    with pytest.raises(InvalidDeclaration):
        mechanism.event(Distance(Norm.L1, Fraction(1)), 1)
    with pytest.raises(InvalidNumber):
        mechanism.event(Distance(Norm.LINF, Fraction(1)), 0)


@pytest.mark.parametrize("make", [grid_quantiles, concentrated_grid_quantiles])
@pytest.mark.parametrize("relation", Relation)
def test_ends_share_the_cost(make, relation):
    weight = Distance(Norm.LINF, Fraction(7), relation)
    levels = ["0.5", "0.9"]
    with_ends = make(weight, 5, Fraction(3, 10), levels, ends=True)
    alone = make(weight, 5, Fraction(1, 10), levels)
    assert [*map(float, with_ends.rates)] == pytest.approx([*map(float, alone.rates)])
    cost = account(with_ends.event(weight, 5))
    paid = cost.epsilon if make is grid_quantiles else cost.rho
    assert Fraction(3, 10) - Fraction(1, 10**12) < paid <= Fraction(3, 10)
    assert len(with_ends.event(weight, 5).events) == 3 * len(alone.event(weight, 5).events)


@given(WEIGHTS, st.sampled_from(LEVELS), st.integers(1, 9), st.sampled_from([-1, 1]))
def test_the_score_of_an_end_is_the_error_of_its_rank(weights, level, shift, sign):
    total, at = sum(weights), level * sum(weights) + sign * shift
    expected = []
    for leaf, weight in enumerate(weights):
        before = sum(weights[:leaf])
        expected.append(max(before - at, at - before - weight, Fraction(0)))
    # before all weights or after them, with as many ranks as needed
    expected.append(max(at, Fraction(0)) if sign < 0 else max(total - at, Fraction(0)))
    scores = end_scores(sign, shift, weights, level)
    assert scores == [-level.denominator * error for error in expected]
    assert max(scores) == 0


@pytest.mark.parametrize("place", [1, 2])
def test_the_ends_of_an_interval_follow_the_exponential_mechanism(place, monkeypatch):
    weights, level, sign = [3, 8, 0, 6, 9, 7, 7], Fraction(1, 2), 2 * place - 3
    mechanism, entropy = GridQuantiles((level,), Fraction(1, 20), ends=True), Replay(12)
    # near enough that both the leaves and the end of the range are drawn
    monkeypatch.setattr(grid, "end_shift", lambda rate, leaves: 15)
    draws = [released(mechanism, weights, entropy)[place] for _ in range(2_500)]
    scores = end_scores(sign, 15, weights, level)

    def cdf(rate):
        likely = [math.exp(rate * score) for score in scores]
        beyond = likely.pop()
        likely[0 if sign < 0 else -1] += beyond
        return lambda leaf: sum(likely[: max(leaf + 1, 0)]) / sum(likely)

    # a tenth per rank, as a weight moves half a rank of the median; scores are doubled
    assert_follows(draws, cdf(1 / 20), notices=cdf(1 / 5))


def test_an_interval_contains_the_quantile():
    """Of a few rows and of many, at a level near the end of the range."""
    mechanism = grid_quantiles(Distance(Norm.LINF, Fraction(1)), 1, 3, ["0.9"], ends=True)
    entropy = Replay(6)
    misses = 0
    for times in (1, 40):
        weights = [0] * 3 + [times] * 30 + [0] * 3
        at = Fraction(9, 10) * sum(weights)
        for _ in range(500):
            _, low, high = released(mechanism, weights, entropy)
            # of every value that is the quantile
            misses += not (sum(weights[:low]) < at < sum(weights[: high + 1]))
    # the two ends have two thirds of 1%
    assert_at_most(misses, 1_000, 0.01, notices=0.22)


def test_ends_at_the_rank_of_the_level_itself_miss_it_and_are_noticed(monkeypatch):
    monkeypatch.setattr(grid, "end_shift", lambda rate, leaves: 1)
    mechanism = grid_quantiles(Distance(Norm.LINF, Fraction(1)), 1, 3, ["0.5"], ends=True)
    entropy, weights = Replay(7), [1] * 60
    misses = sum(
        not (sum(weights[:low]) < 30 < sum(weights[: high + 1]))
        for _, low, high in (released(mechanism, weights, entropy) for _ in range(200))
    )
    # a quarter of them, where one in a hundred is allowed
    assert misses > 20


@pytest.mark.parametrize("leaves", [1, 2, 1000, 10**7])
def test_an_end_misses_with_a_third_of_1_percent(leaves):
    rate = Fraction(1, 50)
    shift = end_shift(rate, leaves)
    # two ends and the level: three selections of which each misses by a third of 1%
    assert leaves * math.exp(-rate * shift) <= 0.01 / 3 < leaves * math.exp(-rate * (shift - 1))


def test_a_range_of_a_million_values_is_selected_from_as_one_of_a_thousand():
    """The law by runs, of more leaves than could be listed."""
    leaves, weights = np.array([5 * 10**11, 10**12 - 2]), [400, 1]
    mechanism = grid_quantiles(Distance(Norm.LINF, Fraction(1)), 1, 1, ["0.5"])
    assert mechanism.release(leaves, weights, 10**12, Replay(1)) == (5 * 10**11,)
    assert mechanism.release(leaves[:0], [], 10**12, Replay(1))[0] > 10**9
