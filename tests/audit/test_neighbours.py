# SPDX-License-Identifier: Apache-2.0
"""Pairs to compare are no further apart than claimed, and as far as that allows."""

import importlib
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit.neighbours import Neighbours, worst_neighbours
from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms import AdditiveMechanism, exponential, laplace, report_noisy_max, staircase
from sfumato.mechanisms.ladder import ladder
from sfumato.mechanisms.response import randomized_response
from sfumato.mechanisms.sparse import sparse_vector
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase
from sfumato.privacy import Distance, Norm, Relation, Repeated

NEIGHBOURS = importlib.import_module("sfumato.audit.neighbours")
NOISE = {
    Norm.L1: DiscreteLaplace(1),
    Norm.L2: DiscreteGaussian(1),
    Norm.LINF: DiscreteStaircase(1, 3),
}
VALUES = st.fractions(1, 40, max_denominator=6)


def pairs(mechanism, distance):
    return worst_neighbours(mechanism, mechanism.event(distance), distance)


def apart(pair: Neighbours, norm: Norm) -> int:
    moves = [abs(a - b) for a, b in zip(pair.one, pair.other, strict=True)]
    return {Norm.L1: sum(moves), Norm.L2: sum(move**2 for move in moves), Norm.LINF: max(moves)}[
        norm
    ]


def farthest(norm, value, cells=None):
    distance = Distance(norm, value)
    found = pairs(AdditiveMechanism(NOISE[norm], cells), distance)
    return max(apart(pair, norm) for pair in found), found


def largest(norm, value):
    """The largest distance of integer vectors within ``value``: of a single cell, for L2 a
    square.
    """
    return int(value) if norm is not Norm.L2 else max(k**2 for k in range(10) if k**2 <= value)


@given(st.sampled_from(Norm), VALUES, st.sampled_from([None, 1, 2, 3]))
@settings(deadline=None)
def test_neighbours_are_no_further_apart_than_the_distance(norm, value, cells):
    reach, found = farthest(norm, value, cells)
    assert largest(norm, value) <= reach <= value
    assert {len(pair.one) for pair in found} == ({cells} if cells else {1, 2})


def test_neighbours_too_far_apart_are_noticed(monkeypatch):
    monkeypatch.setattr(NEIGHBOURS, "_whole", lambda distance: int(distance.value) + 1)
    assert farthest(Norm.L1, Fraction(2))[0] > 2


def test_two_cells_move_in_both_ways():
    moves = {pair.other for pair in farthest(Norm.LINF, Fraction(2), 2)[1]}
    assert {(2, 2), (2, -2), (2, 0), (1, 0)} >= moves >= {(2, 2), (2, -2), (2, 0)}


@pytest.mark.parametrize("keys", [1, 2, 3])
@pytest.mark.parametrize("relation", Relation)
def test_counts_move_by_one_in_the_keys_of_a_unit(keys, relation):
    touched = keys * (2 if relation is Relation.REPLACE_ONE else 1)
    distance = Distance(Norm.LINF, Fraction(1), relation)
    found = pairs(ThresholdMechanism(DiscreteLaplace(1), 7, keys), distance)
    alone = set()
    for pair in found:
        one, other = dict(pair.one), dict(pair.other)
        moves = {key: one.get(key, 0) - other.get(key, 0) for key in {*one, *other}}
        assert len(moves) == touched and {abs(move) for move in moves.values()} == {1}
        # a unit is in at most so many keys: on each side it adds that many
        assert list(moves.values()).count(1) <= keys and list(moves.values()).count(-1) <= keys
        assert relation is Relation.REPLACE_ONE or set(moves.values()) == {1}
        alone.add(len({*one} - {*other}))
    assert {0, keys} <= alone


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("make", [exponential, report_noisy_max, sparse_vector])
def test_scores_and_answers_move_by_at_most_the_distance(make, monotone):
    distance = Distance(Norm.LINF, Fraction(2))
    more = {"threshold": 5, "positives": 1} if make is sparse_vector else {}
    found = pairs(make(distance, 1, monotone=monotone, **more), distance)
    for pair in found:
        moves = [b - a for a, b in zip(pair.one, pair.other, strict=True)]
        assert max(map(abs, moves)) == 2
        if monotone:
            assert min(moves) >= 0 or max(moves) <= 0
    wide = [{b - a for a, b in zip(pair.one, pair.other, strict=True)} for pair in found]
    assert monotone or all(each == {-2, 2} for each in wide)


def test_one_report_is_replaced():
    replaced = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)
    mechanism = randomized_response(1, 3)
    assert pairs(mechanism, replaced) == (Neighbours(0, 1),)
    one = mechanism.event(replaced)
    with pytest.raises(InvalidDeclaration, match="More than one report"):
        worst_neighbours(mechanism, one, Distance(Norm.L1, Fraction(4), Relation.REPLACE_ONE))


def test_other_events_need_named_neighbours():
    distance = Distance(Norm.L1, Fraction(1))
    mechanism = laplace(distance, 1)
    with pytest.raises(InvalidDeclaration, match="No worst neighbours are known for Repeated"):
        worst_neighbours(mechanism, Repeated(mechanism.event(distance), 2), distance)


def test_the_last_shifts_are_tried_too():
    distance = Distance(Norm.LINF, Fraction(10))
    mechanism = staircase(distance, 1)
    assert [pair.other for pair in pairs(mechanism, distance)] == [(1,), (8,), (9,), (10,)]


@pytest.mark.parametrize("steps", [1, 2])
def test_no_rung_of_a_pair_of_ladders_moves_further_than_the_distance(steps):
    distance = Distance(Norm.LINF, Fraction(steps))

    def rung(exact, width, integer):
        reach = at = 0
        while abs(integer - exact) > reach:
            at += 1
            reach += width + at - 1
        return at

    moves = set()
    for pair in pairs(ladder(distance, 1), distance):
        for integer in range(-40, 41):
            moves.add(abs(rung(*pair.one, integer) - rung(*pair.other, integer)))
    assert max(moves) == steps
