# SPDX-License-Identifier: Apache-2.0
"""Representative record and mode: scores of public candidates, what a row moves, what it costs."""

import math
from collections import Counter
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms.representative import Mode, Representative, mode, representative
from sfumato.mechanisms.selection import SelectionMechanism
from sfumato.privacy import Distance, Norm, Relation, Rule, Selection
from sfumato.testing import Replay, assert_follows

ROW = Distance(Norm.L1, Fraction(1))
PLACES = [(0, 0), (0, 5), (4, 4), (9, 1)]
ROWS = st.lists(st.tuples(st.integers(-3, 12), st.integers(-3, 12)), max_size=8)


def far(one, other):
    """Manhattan distance."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def medoid(**given):
    return representative(ROW, 1, PLACES, far, cap=6, **given)


class Seen(Exception):
    """Carries the scores that were handed to the selection."""


def scores_of(mechanism, rows):
    """The scores that are selected by."""

    def seen(selection, scores, entropy):
        raise Seen(list(scores))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SelectionMechanism, "release", seen)
        with pytest.raises(Seen) as caught:
            mechanism.release(rows)
    return caught.value.args[0]


@given(ROWS)
def test_the_scores_are_the_summed_capped_distances(rows):
    assert scores_of(medoid(), rows) == [
        -sum(min(far(place, row), 6) for row in rows) for place in PLACES
    ]


@given(ROWS, ROWS)
def test_a_row_moves_a_summed_distance_by_at_most_the_cap(rows, more):
    moved = [
        a - b
        for a, b in zip(scores_of(medoid(), rows), scores_of(medoid(), rows + more), strict=True)
    ]
    bound = medoid().event(Distance(Norm.L1, Fraction(max(len(more), 1)))).distance
    assert bound == Distance(Norm.LINF, Fraction(6 * max(len(more), 1)))
    assert max(map(abs, moved)) <= bound.value


def test_distances_without_a_cap_are_noticed(monkeypatch):
    mechanism = medoid()
    monkeypatch.setattr(
        Representative, "_distance", lambda self, candidate, row: self.far(candidate, row)
    )
    assert -min(scores_of(mechanism, [(1000, 0)])) > mechanism.event(ROW).distance.value


@given(ROWS, ROWS)
def test_monotone_scores_move_together(rows, more):
    for mechanism in (medoid(monotone=True), mode(ROW, 1, PLACES, monotone=True)):
        before, after = scores_of(mechanism, rows), scores_of(mechanism, rows + more)
        moves = {(a > b) - (a < b) for a, b in zip(before, after, strict=True)} - {0}
        assert len(moves) <= 1
        assert mechanism.event(ROW).monotone


def test_a_replaced_row_is_not_monotone():
    before, after = scores_of(medoid(), [(0, 0)]), scores_of(medoid(), [(9, 1)])
    assert {(a > b) for a, b in zip(before, after, strict=True)} == {True, False}
    replaced = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)
    for build in (
        lambda: representative(replaced, 1, PLACES, far, cap=6, monotone=True),
        lambda: medoid_of(replaced),
    ):
        with pytest.raises(InvalidDeclaration, match="replace-one"):
            build()
    assert not medoid().event(replaced).monotone


def medoid_of(distance):
    return mode(distance, 1, PLACES, monotone=True)


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=100),
    st.integers(1, 9),
    st.integers(1, 9),
    st.booleans(),
)
def test_a_choice_buys_exactly_its_epsilon(epsilon, k, cap, monotone):
    distance = Distance(Norm.L1, Fraction(k))
    chosen = representative(distance, epsilon, PLACES, far, cap=cap, monotone=monotone)
    assert account(chosen.event(distance)).epsilon == epsilon
    often = mode(distance, epsilon, PLACES, monotone=monotone)
    assert account(often.event(distance)).epsilon == epsilon
    assert often.event(distance) == Selection(
        Rule.EXPONENTIAL,
        epsilon / (k * (1 if monotone else 2)),
        Distance(Norm.LINF, Fraction(k)),
        monotone,
    )


def follows(mechanism, rows, scores, wrong):
    """Fails if the choices are not proportional to exp(rate x score).

    Sure to notice other scores.
    """
    entropy = Replay(13)
    drawn = [mechanism.candidates.index(mechanism.release(rows, entropy)) for _ in range(2500)]
    cdfs = [cdf(each, float(mechanism.selection.rate)) for each in (scores, wrong)]
    assert_follows(drawn, cdfs[0], notices=cdfs[1])


def cdf(scores, rate):
    weights = [math.exp(rate * score) for score in scores]
    sums = [0.0, *accumulate(weight / sum(weights) for weight in weights)]
    return lambda x: sums[min(max(x + 1, 0), len(scores))]


def test_a_representative_follows_the_exponential_mechanism():
    rows = [(0, 1), (0, 2), (50, 50), None]
    # distances 1 2 6 6, 4 3 6 6, 7->6 6 6 6, 9->6 6 6 6
    follows(
        representative(ROW, 6, PLACES, safe_far, cap=6),
        rows,
        [-15, -19, -24, -24],
        [-15, -15, -15, -15],
    )


def safe_far(one, other):
    return far(one, other) if other is not None else math.inf


def test_the_nearest_rather_than_the_likeliest_is_noticed(monkeypatch):
    monkeypatch.setattr(
        SelectionMechanism, "release", lambda self, scores, entropy: scores.index(max(scores))
    )
    with pytest.raises(AssertionError, match="stated law"):
        test_a_representative_follows_the_exponential_mechanism()


def test_a_mode_follows_the_exponential_mechanism():
    rows = ["a"] * 3 + ["c"] * 5 + ["d"] * 100
    follows(mode(ROW, 1, "abc"), rows, [3, 0, 5], [0, 0, 0])


@given(
    st.lists(st.sampled_from("abcde"), max_size=9), st.lists(st.sampled_from("abcde"), max_size=4)
)
def test_a_row_moves_a_frequency_by_at_most_one(rows, more):
    mechanism = mode(ROW, 1, "abc")
    before, after = scores_of(mechanism, rows), scores_of(mechanism, rows + more)
    assert before == [Counter(rows)[letter] for letter in "abc"]
    assert max(b - a for a, b in zip(before, after, strict=True)) <= len(more)
    assert mechanism.event(ROW).distance == Distance(Norm.LINF, Fraction(1))


def test_a_row_that_counts_twice_is_noticed():
    before, after = (scores_of(mode(ROW, 1, "abc"), rows * 2) for rows in ([], ["a"]))
    assert after[0] - before[0] > mode(ROW, 1, "abc").event(ROW).distance.value


@pytest.mark.parametrize(
    "answer", [None, math.nan, math.inf, 2.0, "3", -5, 10**30, np.int8(2), True]
)
def test_whatever_a_distance_answers_is_an_integer_up_to_the_cap(answer):
    mechanism = representative(ROW, 1, [0], lambda candidate, row: answer, cap=4)
    expected = {-5: 0, 10**30: 4, True: 1, np.int8(2): 2}.get(
        answer if isinstance(answer, int | np.int8) else "", 4
    )
    assert scores_of(mechanism, ["row"]) == [-expected]


def test_rows_that_are_no_candidate_count_for_none():
    mechanism = mode(ROW, 1, [1, "a", None])
    assert scores_of(mechanism, [[], {}, math.nan, 2, ([],), None, 1.0, "a", "a"]) == [1, 2, 1]
    assert {mechanism.release([]) for _ in range(200)} == {1, "a", None}
    assert {medoid().release([]) for _ in range(200)} == set(PLACES)


def test_no_pair_of_neighbours_costs_more_than_the_event():
    values = range(4)
    mechanism = representative(ROW, 2, values, lambda c, r: abs(c - r), cap=3)
    counted = mode(ROW, 2, values)
    for data in product(values, repeat=3):
        for made in (mechanism, counted):
            laws = [probabilities(made, rows) for rows in (data, data[:-1])]
            worst = max(abs(math.log(a / b)) for a, b in zip(*laws, strict=True))
            assert worst <= account(made.event(ROW)).epsilon + 1e-12


def probabilities(mechanism, rows):
    weights = [math.exp(mechanism.selection.rate * score) for score in scores_of(mechanism, rows)]
    return [weight / sum(weights) for weight in weights]


def test_the_error_is_that_of_the_selection():
    assert medoid().error("0.9") == medoid().selection.error("0.9", 4)
    assert representative(ROW, 1, [0], far, cap=6).error("0.9") == 0


@pytest.mark.parametrize("cap", [0, -1, True, 2.5, "3", None])
def test_a_cap_that_is_none_is_refused(cap):
    with pytest.raises(InvalidDeclaration, match="cap"):
        representative(ROW, 1, PLACES, far, cap=cap)
    with pytest.raises(InvalidDeclaration, match="cap"):
        Representative(tuple(PLACES), far, cap, medoid().selection)


def test_no_candidates_or_one_twice_are_refused():
    for build in (
        lambda given: representative(ROW, 1, given, far, cap=1),
        lambda given: mode(ROW, 1, given),
    ):
        with pytest.raises(InvalidDeclaration, match="candidates"):
            build([])
    with pytest.raises(InvalidDeclaration, match="candidates"):
        Mode((), medoid().selection)
    with pytest.raises(InvalidDeclaration, match="twice"):
        mode(ROW, 1, ["a", "b", "a"])


def test_a_cost_or_distance_that_is_none_is_refused():
    for epsilon in (0, -1, math.inf, "x"):
        with pytest.raises(InvalidNumber, match="epsilon"):
            mode(ROW, epsilon, "ab")
        with pytest.raises(InvalidNumber, match="epsilon"):
            representative(ROW, epsilon, PLACES, far, cap=1)
    for norm in (Norm.L2, Norm.LINF):
        with pytest.raises(InvalidDeclaration, match=norm.value):
            mode(Distance(norm, Fraction(1)), 1, "ab")
        with pytest.raises(InvalidDeclaration, match=norm.value):
            representative(Distance(norm, Fraction(1)), 1, PLACES, far, cap=1)


def test_candidates_that_cannot_be_counted_are_refused():
    with pytest.raises(InvalidDeclaration, match="dictionary key"):
        mode(ROW, 1, [["a"], ["b"]])
