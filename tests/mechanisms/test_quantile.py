# SPDX-License-Identifier: Apache-2.0
"""Quantiles: the exact law on every point, what a row can move, and how far off in ranks."""

import math
from collections import Counter
from fractions import Fraction
from importlib import import_module
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms.quantile import Quantile, Quantiles, median, quantile, quantiles
from sfumato.metadata import Integer
from sfumato.noise import SYSTEM
from sfumato.privacy import Composed, Distance, Norm, Relation, Rule, Selection
from sfumato.testing import Replay, assert_at_most, assert_follows

# the room exports a function of the same name
module = import_module("sfumato.mechanisms.quantile")

ROW = Distance(Norm.L1, Fraction(1))
REPLACED = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)
LEVELS = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50)
ROWS = st.lists(st.integers(-5, 9), max_size=9)


def rank_error(rows, point, q):
    """By its definition, row by row."""
    less, more = sum(row < point for row in rows), sum(row > point for row in rows)
    return max(Fraction(0), less - q * len(rows), q * len(rows) - (len(rows) - more))


def law(rows, points, q, rate):
    """The exponential mechanism on every point, by its definition."""
    weights = [math.exp(-rate * rank_error(rows, point, q)) for point in points]
    return [weight / sum(weights) for weight in weights]


def errors_of_points(rows, ends, q):
    """The rank error of every point, as the pieces say it."""
    starts, widths, errors = module._pieces(np.sort(np.array(rows, np.int64)), ends, q)
    return {
        int(start) + offset: Fraction(int(error), q.denominator)
        for start, width, error in zip(starts, widths, errors, strict=True)
        for offset in range(width)
    }


# --- one quantile ----------------------------------------------------------------------


@given(ROWS, LEVELS)
@example([], Fraction(1, 2))
@example([-5, -5, 9, 9], Fraction(1, 2))
def test_the_pieces_are_every_point_once_with_its_rank_error(rows, q):
    expected = {point: rank_error(rows, point, q) for point in range(-5, 10)}
    assert errors_of_points(rows, (-5, 9), q) == expected
    assert sum(module._pieces(np.sort(np.array(rows, np.int64)), (-5, 9), q)[1]) == 15


TIED = [1, 1, 1, 3, 12]


def follows(mechanism, rows, points, wrong):
    """Fails if draws are not from the law of the definition; sure to notice ``wrong``."""
    entropy = Replay(11)
    drawn = [mechanism.release(rows, entropy) for _ in range(2000)]
    right = law(rows, points, mechanism.q, float(mechanism.rate))
    assert_follows(drawn, cdf_of(points, right), notices=cdf_of(points, wrong))


def cdf_of(points, probabilities):
    sums = dict(zip(points, accumulate(probabilities), strict=True))
    return lambda x: sums.get(x, 0.0 if x < points[0] else 1.0)


def other_score(rows, points, q, rate):
    """The law for the score |(1-q) less - q more|, which misjudges a point that holds many rows."""
    score = [
        abs((1 - q) * sum(row < point for row in rows) - q * sum(row > point for row in rows))
        for point in points
    ]
    weights = [math.exp(-rate * each) for each in score]
    return [weight / sum(weights) for weight in weights]


def widths_left_out(mechanism, rows):
    """The law of the mutant below, on the points from 0 to 12: every piece equally wide."""
    starts, widths, errors = module._pieces(np.sort(rows), (0, 12), mechanism.q)
    weights = np.exp(-float(mechanism.rate / mechanism.q.denominator) * errors) / widths
    spread = np.zeros(13)
    for start, width, weight in zip(starts, widths, weights, strict=True):
        spread[start : start + width] = weight
    return (spread / spread.sum()).tolist()


SHARP = Quantile(Integer(0, 12), Fraction(1, 3), Fraction(1, 2))


def test_a_quantile_follows_the_exponential_mechanism_on_every_point():
    follows(SHARP, TIED, range(13), widths_left_out(SHARP, TIED))


def test_the_draws_notice_pieces_without_their_widths(monkeypatch):
    wrong, pieces = widths_left_out(SHARP, TIED), module._pieces
    monkeypatch.setattr(
        module,
        "_pieces",
        lambda *given: (*(found := pieces(*given))[:1], found[1] * 0 + 1, found[2]),
    )
    with pytest.raises(AssertionError, match="stated law"):
        follows(SHARP, TIED, range(13), wrong)


def test_a_value_that_holds_many_rows_is_their_quantile():
    # the other score would prefer the empty point 1, ninety-nine times out of a hundred
    rows = [0] * 1000 + [100] * 800
    assert other_score(rows, range(101), Fraction(1, 2), 0.05)[1] > 0.009
    assert other_score(rows, range(101), Fraction(1, 2), 0.05)[0] < 1e-6
    assert median(ROW, 1, lower=0, upper=100).release(rows) == 0


def moves(rows, row, q):
    """The largest move of a rank error by one more row."""
    return max(abs(rank_error([*rows, row], v, q) - rank_error(rows, v, q)) for v in range(-5, 10))


@given(ROWS, st.integers(-5, 9), LEVELS)
def test_a_row_moves_a_rank_error_by_at_most_q_or_one_minus_q(rows, row, q):
    assert (
        moves(rows, row, q)
        <= Quantile(Integer(-5, 9), q, Fraction(1)).event(ROW).distance.value
        == max(q, 1 - q)
    )


def test_no_smaller_bound_would_do():
    for q in (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)):
        assert moves([-5, 9] * 20, -5 if q < 0.5 else 9, q) == max(q, 1 - q)


def largest_loss(laws, neighbours):
    """The largest log ratio of two neighbours' laws."""
    return max(
        abs(math.log(a / b))
        for one, other in neighbours
        for a, b in zip(laws[one], laws[other], strict=True)
    )


def datasets(points, size):
    """Every dataset of at most ``size`` rows, in order, and every pair that one row more tells
    apart.
    """
    all_data = [
        data
        for n in range(size + 1)
        for data in product(points, repeat=n)
        if list(data) == sorted(data)
    ]
    pairs = [
        (data, tuple(sorted([*data, row])))
        for data in all_data
        if len(data) < size
        for row in points
    ]
    return all_data, pairs


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 5), Fraction(9, 10)])
def test_no_pair_of_neighbours_costs_more_than_the_event(q):
    everything, pairs = datasets(range(4), 4)
    mechanism = quantile(ROW, 2, q=q, lower=0, upper=3)
    laws = {
        data: normal(
            [math.exp(-mechanism.rate * errors_of_points(data, (0, 3), q)[v]) for v in range(4)]
        )
        for data in everything
    }
    assert largest_loss(laws, pairs) <= account(mechanism.event(ROW)).epsilon + 1e-12
    replaced = [(one, other) for base, one in pairs for also, other in pairs if base == also]
    assert largest_loss(laws, replaced) <= account(mechanism.event(REPLACED)).epsilon + 1e-12
    # a score twice as far apart, or a sensitivity said to be half, is noticed
    assert largest_loss(laws, pairs) > account(mechanism.event(ROW)).epsilon / 2


def normal(weights):
    return [weight / sum(weights) for weight in weights]


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=100),
    LEVELS,
    st.integers(1, 9),
    st.sampled_from(Relation),
)
def test_a_quantile_buys_exactly_its_epsilon(epsilon, q, k, relation):
    distance = Distance(Norm.L1, Fraction(k), relation)
    mechanism = quantile(distance, epsilon, q=q, lower=0, upper=9)
    event = mechanism.event(distance)
    assert event == Selection(
        Rule.EXPONENTIAL, mechanism.rate, Distance(Norm.LINF, k * max(q, 1 - q), relation)
    )
    assert account(event).epsilon == epsilon
    assert account(event).rho == epsilon**2 / 8
    assert median(distance, epsilon, lower=0, upper=9) == quantile(
        distance, epsilon, q="0.5", lower=0, upper=9
    )


def too_far(mechanism, reach, rows):
    """Draws that are further off in ranks than ``reach``.

    Sure to notice three of ten for the stated one.
    """
    entropy = Replay(5)
    far = sum(
        rank_error(rows, mechanism.release(rows, entropy), mechanism.q) > reach for _ in range(1200)
    )
    assert_at_most(far, 1200, 0.1, notices=0.3)


def worst_rows(mechanism, reach):
    """All rows at one point: every other point is just further off than ``reach``."""
    return [mechanism.within.lower_code] * (2 * reach + 2)


def test_the_rank_error_is_as_stated():
    mechanism = median(ROW, "0.2", lower=0, upper=100)
    reach = mechanism.error("0.9")
    assert reach == math.ceil(math.log(100 / 0.1) / 0.2)
    too_far(mechanism, reach, worst_rows(mechanism, reach))


def test_half_the_rank_error_is_noticed():
    mechanism = median(ROW, "0.2", lower=0, upper=100)
    reach = mechanism.error("0.9") // 2
    with pytest.raises(AssertionError, match="was stated"):
        too_far(mechanism, reach, worst_rows(mechanism, reach))


def test_rows_are_clipped_and_missing_ones_dropped():
    mechanism = median(ROW, 500, lower=0, upper=10)
    assert mechanism.release([-(10**30), 3, None, math.nan, math.inf]) == 3
    assert mechanism.release(np.array([200] * 9)) == 10
    assert {mechanism.release([None]) for _ in range(300)} == set(range(11))


def test_the_widest_bounds_and_finest_ranks_stay_integers():
    mechanism = quantile(ROW, 1000, q="0.999999", lower=-(2**52), upper=2**52)
    assert mechanism.release([2**52] * 2000) == 2**52
    assert mechanism.release([2**52] + [-(2**52)] * 1000) == 2**52


# --- several ---------------------------------------------------------------------------

QS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


class Scripted:
    """Stands in for the choice of a point: takes the next of a script, and keeps its
    probability.
    """

    def __init__(self, script):
        self.script, self.probability = list(script), 1.0

    def __call__(self, rows, ends, q, rate, entropy):
        errors = errors_of_points(rows, ends, q)
        wanted = self.script.pop(0)
        weights = {point: math.exp(-rate * error) for point, error in errors.items()}
        self.probability *= weights.get(wanted, 0.0) / sum(weights.values())
        return wanted


def joint_law(mechanism, data, monkeypatch, labels):
    """The probability of each outcome, through the very recursion, with the labels as given."""
    outcomes = {}
    ends = (mechanism.within.size << module._LABELS) - 1
    for script in product(range(ends + 1), repeat=len(mechanism.q)):
        chosen = Scripted(script)
        monkeypatch.setattr(module, "_choose", chosen)
        monkeypatch.setattr(
            module, "words", lambda count, entropy: np.array(labels, np.uint64)[:count]
        )
        answer = mechanism.release(data, SYSTEM)
        outcomes[answer] = outcomes.get(answer, 0.0) + chosen.probability
    return outcomes


def expected_law(mechanism, data):
    """The recursion by its definition, for three quantiles and rows that need no labels."""
    q1, q2, q3 = mechanism.q
    low, high = mechanism.within.lower_code, mechanism.within.upper_code
    outcomes = {}
    for v in range(low, high + 1):
        first = law(data, range(low, high + 1), q2, float(mechanism.rate))[v - low]
        below = law(
            [row for row in data if row < v], range(low, v + 1), q1 / q2, float(mechanism.rate)
        )
        above = law(
            [row for row in data if row > v],
            range(v, high + 1),
            (q3 - q2) / (1 - q2),
            float(mechanism.rate),
        )
        for (i, p), (j, r) in product(enumerate(below), enumerate(above)):
            outcomes[(low + i, v, v + j)] = first * p * r
    return outcomes


def small(q=QS):
    return quantiles(ROW, 3, q=q, lower=0, upper=3)


def joint_laws(mechanism, everything, monkeypatch):
    monkeypatch.setattr(module, "_LABELS", 0)
    return {data: joint_law(mechanism, data, monkeypatch, [0] * 9) for data in everything}


def test_several_quantiles_follow_the_recursion(monkeypatch):
    everything, _ = datasets(range(4), 3)
    for data, outcomes in joint_laws(small(), everything, monkeypatch).items():
        expected = expected_law(small(), data)
        possible = {outcome: p for outcome, p in outcomes.items() if p > 0}
        assert possible.keys() == expected.keys()
        assert all(
            math.isclose(possible[outcome], expected[outcome], rel_tol=1e-9) for outcome in expected
        )


def test_several_draws_follow_the_recursion():
    mechanism, entropy = quantiles(ROW, 3, q=QS, lower=0, upper=3), Replay(21)
    drawn = [number(mechanism.release([], entropy)) for _ in range(3000)]
    right = Counter()
    for outcome, probability in expected_fine(8).items():
        right[number(outcome)] += probability
    # each choice from all points, as if it did not know the ends of its part
    wrong = cdf_of(range(64), [1 / 64] * 64)
    assert_follows(drawn, cdf_of(range(64), [right[x] for x in range(64)]), notices=wrong)


def number(outcome):
    return outcome[0] * 16 + outcome[1] * 4 + outcome[2]


def expected_fine(bits):
    """Without rows: the middle is uniform, each other one between it and a bound.

    With 2^bits labels.
    """
    size = 4 << bits
    outcomes = {}
    for v in range(size):
        below, above = np.arange(v + 1) >> bits, np.arange(v, size) >> bits
        for low, n in Counter(below.tolist()).items():
            for high, m in Counter(above.tolist()).items():
                key = (low, v >> bits, high)
                outcomes[key] = outcomes.get(key, 0.0) + n * m / (len(below) * len(above) * size)
    return outcomes


def loss_of(laws, pairs):
    """The largest log ratio over all outcomes; infinite where only one of two can happen."""
    worst = 0.0
    for one, other in pairs:
        for outcome in laws[one].keys() | laws[other].keys():
            a, b = laws[one].get(outcome, 0.0), laws[other].get(outcome, 0.0)
            if a or b:
                worst = max(worst, math.inf if not (a and b) else abs(math.log(a / b)))
    return worst


def test_a_row_has_a_say_in_one_choice_a_level(monkeypatch):
    everything, pairs = datasets(range(4), 3)
    mechanism = small((Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)))
    assert mechanism.event(ROW) == Composed(
        tuple(
            Selection(Rule.EXPONENTIAL, mechanism.rate, Distance(Norm.LINF, reach))
            for reach in (Fraction(1, 2), Fraction(3, 5))
        )
    )
    laws = joint_laws(mechanism, everything, monkeypatch)
    assert loss_of(laws, pairs) <= account(mechanism.event(ROW)).epsilon + 1e-9
    replaced = [(one, other) for base, one in pairs for also, other in pairs if base == also]
    assert loss_of(laws, replaced) <= account(mechanism.event(REPLACED)).epsilon + 1e-9


def loss_of_one(monkeypatch, mechanism, one, other, outcome):
    """How far apart two datasets are at one outcome."""
    probabilities = []
    for data in (one, other):
        chosen = Scripted(outcome)
        monkeypatch.setattr(module, "_choose", chosen)
        mechanism.release(data, SYSTEM)
        probabilities.append(chosen.probability)
    return abs(math.log(probabilities[0] / probabilities[1]))


def test_rows_that_are_not_split_are_noticed(monkeypatch):
    monkeypatch.setattr(module, "_LABELS", 0)
    mechanism = quantiles(ROW, 2, q=QS, lower=0, upper=400)
    # the new row draws all choices to itself: from one in N to as many as e^rate in N
    given = mechanism, [199], [199, 200], (200, 200, 200)
    assert 0.9 < loss_of_one(monkeypatch, *given) <= 2

    def not_split(rows, ends, levels, rate, entropy):
        if len(levels) == 2:
            return []
        at, share = module._middle(levels)
        found = module._choose(np.clip(rows, *ends), ends, share, rate, entropy)
        before = not_split(rows, (ends[0], found), levels[: at + 1], rate, entropy)
        return [*before, found, *not_split(rows, (found, ends[1]), levels[at:], rate, entropy)]

    monkeypatch.setattr(module, "_halve", not_split)
    assert loss_of_one(monkeypatch, *given) > 2.3


def test_labels_of_equal_rows_cost_nothing(monkeypatch):
    """Averaged over all labels of one bit, no pair of neighbours is further apart than the
    event.
    """
    monkeypatch.setattr(module, "_LABELS", 1)
    everything, pairs = datasets(range(2), 3)
    mechanism = quantiles(ROW, 3, q=[Fraction(1, 3), Fraction(2, 3)], lower=0, upper=1)
    laws = {}
    for data in everything:
        laws[data] = {}
        for bits in product((0, 1), repeat=len(data)):
            drawn = joint_law(mechanism, data, monkeypatch, [bit << 63 for bit in bits])
            for outcome, probability in drawn.items():
                laws[data][outcome] = laws[data].get(outcome, 0.0) + probability / 2 ** len(data)
    assert loss_of(laws, pairs) <= account(mechanism.event(ROW)).epsilon + 1e-9


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=100),
    st.lists(LEVELS, min_size=1, max_size=7, unique=True),
    st.sampled_from(Relation),
)
@settings(deadline=None)
def test_several_quantiles_buy_exactly_their_epsilon(epsilon, levels, relation):
    if math.lcm(*(level.denominator for level in levels)) > 10**6:
        levels = [Fraction(index + 1, len(levels) + 1) for index in range(len(levels))]
    distance = Distance(Norm.L1, Fraction(2), relation)
    mechanism = quantiles(distance, epsilon, q=sorted(levels), lower=0, upper=9)
    event = mechanism.event(distance)
    assert account(event).epsilon == epsilon
    assert len(event.events) == len(levels).bit_length()


def test_answers_are_in_order_whatever_the_rows():
    mechanism = quantiles(ROW, "0.01", q=[i / 10 for i in range(1, 10)], lower=-5, upper=10**6)
    for rows in ([], [3], [0, 10**6] * 50, range(1000)):
        answers = mechanism.release(rows)
        assert list(answers) == sorted(answers)
        assert all(-5 <= answer <= 10**6 for answer in answers)


def test_ties_may_be_several_quantiles():
    rows = [0] * 600 + [5] * 100 + [9] * 300
    found = quantiles(ROW, 20, q=["0.1", "0.5", "0.65", "0.8"], lower=0, upper=9).release(rows)
    assert found == (0, 0, 5, 9)


def worst_of(mechanism, rows, entropy):
    """The largest rank error of the answers, and 0 if there is none."""
    answers = mechanism.release(rows, entropy)
    return max(rank_error(rows, answer, q) for answer, q in zip(answers, mechanism.q, strict=True))


def several_too_far(mechanism, reach, rows):
    entropy = Replay(8)
    far = sum(worst_of(mechanism, rows, entropy) > reach for _ in range(600))
    assert_at_most(far, 600, 0.1, notices=0.4)


@pytest.mark.parametrize(
    "rows", [[0] * 400, [0, 1] * 150, list(range(300)), [7, 100] * 90 + [50] * 120]
)
def test_several_rank_errors_are_as_stated(rows):
    mechanism = quantiles(ROW, 1, q=QS, lower=0, upper=300)
    several_too_far(mechanism, mechanism.error("0.9"), rows)


def test_a_fifth_of_the_rank_errors_is_noticed():
    mechanism = quantiles(ROW, "0.25", q=QS, lower=0, upper=300)
    with pytest.raises(AssertionError, match="was stated"):
        several_too_far(mechanism, mechanism.error("0.9") // 5, [0] * 110)


def test_the_stated_rank_errors_are_the_bound_of_the_proof():
    mechanism = quantiles(ROW, 1, q=QS, lower=0, upper=300)
    one = math.ceil(math.log((301 * 2**20 - 1) * 3 / 0.1) / mechanism.rate)
    assert mechanism.error("0.9") == 2 * one + 1


# --- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize("q", [0, 1, -0.5, 2, "nan", "0.0000001", None, Fraction(1, 3 * 10**6)])
def test_a_quantile_outside_the_open_unit_is_refused(q):
    with pytest.raises(InvalidNumber, match="q"):
        quantile(ROW, 1, q=q, lower=0, upper=9)
    with pytest.raises(InvalidNumber, match="q"):
        quantiles(ROW, 1, q=[q], lower=0, upper=9)


@pytest.mark.parametrize(
    "q", [[], ["0.5", "0.5"], ["0.5", "0.25"], ["0", "0.5"], [Fraction(1, 997), Fraction(2, 1009)]]
)
def test_quantiles_that_do_not_increase_or_share_no_grid_are_refused(q):
    with pytest.raises(InvalidNumber):
        quantiles(ROW, 1, q=q, lower=0, upper=9)
    with pytest.raises(InvalidNumber):
        Quantiles(Integer(0, 9), tuple(map(Fraction, q)), Fraction(1))


@pytest.mark.parametrize(("lower", "upper"), [(5, 5), (9, 0), (0.5, 3), (0, 2**60)])
def test_bounds_that_are_none_are_refused(lower, upper):
    for build in (median, lambda *given, **bounds: quantiles(*given, q=["0.5"], **bounds)):
        with pytest.raises(InvalidDeclaration):
            build(ROW, 1, lower=lower, upper=upper)


def test_several_quantiles_refuse_a_range_whose_labels_do_not_fit():
    with pytest.raises(InvalidDeclaration, match="42"):
        quantiles(ROW, 1, q=["0.5"], lower=0, upper=2**42)
    assert quantiles(ROW, 1, q=["0.5"], lower=1, upper=2**42).release([2**42] * 500) == (2**42,)


def test_a_cost_or_distance_that_is_none_is_refused():
    for epsilon in (0, -1, math.inf, math.nan, "x"):
        with pytest.raises(InvalidNumber, match="epsilon"):
            median(ROW, epsilon, lower=0, upper=9)
    for norm in (Norm.L2, Norm.LINF):
        with pytest.raises(InvalidDeclaration, match=norm.value):
            median(Distance(norm, Fraction(1)), 1, lower=0, upper=9)
        with pytest.raises(InvalidDeclaration, match=norm.value):
            quantiles(Distance(norm, Fraction(1)), 1, q=["0.5"], lower=0, upper=9)
    with pytest.raises(InvalidNumber, match="rate"):
        Quantile(Integer(0, 9), Fraction(1, 2), Fraction(0))
    with pytest.raises(InvalidNumber, match="confidence"):
        median(ROW, 1, lower=0, upper=9).error(1)
