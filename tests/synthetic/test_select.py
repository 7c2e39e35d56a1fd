# SPDX-License-Identifier: Apache-2.0
"""Scores against their proved distance, by exhaustive search over neighbouring tiny tables."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration
from sfumato.privacy.distance import Norm
from sfumato.synthetic.counts import BlockCounts
from sfumato.synthetic.select import Candidate, Discrepancies
from tests.synthetic.tiny import CELLS, cube, exact, units

PAIR = (("v", (0, 1, 2, 2)), ("s", (0, 1, 1)))
SINGLE = (("v", (1, 0, 0, 1)),)


def scores(relation=sf.AddRemove, weight=1, synthetic=None):
    """Two candidates; the synthetic rows have ten in each cell of the pair."""
    plan = cube(relation)
    one = plan.refinement
    filled = np.full(6, 10 * one) if synthetic is None else synthetic
    candidates = (
        Candidate(BlockCounts(plan, PAIR), filled, 7, weight),
        Candidate(BlockCounts(plan, SINGLE), np.array([0, 3 * one])),
    )
    return Discrepancies(plan, candidates, max(weight, 1))


def farthest(statistic, *, replaced):
    """The largest change of one score between neighbours; the other unit has up to one row."""
    found = 0
    for rest in units("b", 1):
        mine = [exact(statistic, rest + rows) for rows in units("a")]
        others = mine if replaced else [exact(statistic, rest)]
        for one, other in itertools.product(mine, others):
            found = max(found, int(np.abs(one - other).max()))
    return found


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize("weight", [1, 5])
def test_scores_move_by_at_most_their_proved_distance(relation, weight):
    statistic = scores(relation, weight)
    proved = statistic.distance(Norm.LINF).value
    # two rows of a unit count in full: T = 2, and 2T if it is replaced
    wide = 2 if relation is sf.ReplaceOne else 1
    assert proved == 2 * statistic.plan.refinement * weight * wide
    found = farthest(statistic, replaced=relation is sf.ReplaceOne)
    assert found <= proved
    if relation is sf.AddRemove:
        assert found == proved


def climbed(statistic, random, *, replaced):
    """The largest change of a score that a search uphill finds: it changes a row of the unit, or of
    another, and keeps what moves a score farther.
    """
    everybody = [{"who": f"b{place}", "v": 0, "s": "F"} for place in range(4)]
    mine, other = [[{"who": "a", "v": 2, "s": "M"}] * 2 for _ in range(2)]
    best = 0
    for _ in range(60):
        changed = [list(rows) for rows in (everybody, mine, other)]
        part = changed[random.integers(0, 3)]
        place = random.integers(0, len(part))
        value, sex = CELLS[random.integers(0, len(CELLS))]
        part[place] = {**part[place], "v": value, "s": sex}
        before = exact(statistic, changed[0] + changed[1])
        after = exact(statistic, changed[0] + (changed[2] if replaced else []))
        found = int(np.abs(before - after).max())
        if found >= best:
            best = found
            everybody, mine, other = changed
    return best


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_a_search_uphill_finds_no_score_that_moves_farther(relation):
    random = np.random.default_rng(7)
    statistic = scores(relation, 5, np.array([0, 10, 0, 0, 0, 0]) * cube(relation).refinement)
    proved = statistic.distance(Norm.LINF).value
    found = climbed(statistic, random, replaced=relation is sf.ReplaceOne)
    assert proved / 2 <= found <= proved


def test_a_search_uphill_notices_scores_that_move_farther(monkeypatch):
    """The mutant weighs twice what it states."""
    statistic = scores(weight=5)
    honest = Discrepancies.exact
    monkeypatch.setattr(
        Discrepancies, "exact", lambda self, opened: [2 * s for s in honest(self, opened)]
    )
    found = climbed(statistic, np.random.default_rng(7), replaced=False)
    assert found > statistic.distance(Norm.LINF).value


def test_the_bound_of_replaced_units_is_reached():
    """The rows leave a cell where the synthetic rows lack them and enter one that has too few."""
    plan = cube(sf.ReplaceOne)
    one = plan.refinement
    statistic = scores(sf.ReplaceOne, synthetic=np.array([0, 10, 0, 0, 0, 0]) * one)
    before = exact(statistic, [{"who": "a", "v": 0, "s": "F"}] * 2)
    after = exact(statistic, [{"who": "a", "v": 0, "s": "M"}] * 2)
    assert before[0] - after[0] == statistic.distance(Norm.LINF).value


def test_a_score_divided_by_entropies_is_noticed():
    """The mutant divides by the entropy of the column, as a released library does, and keeps its
    sensitivity: one row of a nearly constant column moves the score by far more.
    """
    plan = cube()
    statistic = scores(weight=0)
    proved = float(statistic.distance(Norm.LINF).value)

    def divided(rows):
        counts = exact(BlockCounts(plan, SINGLE), rows).astype(float)
        shares = counts[counts > 0] / max(counts.sum(), 1)
        entropy = -sum(share * math.log(share) for share in shares)
        return float(exact(statistic, rows)[1]) / max(entropy, 1e-3)

    usual = [{"who": f"b{place}", "v": 1, "s": "F"} for place in range(30)]
    mine = [{"who": "a", "v": 0, "s": "M"}]
    assert abs(divided(usual + mine) - divided(usual)) > 10 * proved


def test_weights_that_the_distance_does_not_know_are_refused():
    statistic = scores(weight=5)
    with pytest.raises(InvalidDeclaration):
        replace(statistic, heaviest=4)
    with pytest.raises(InvalidDeclaration):
        replace(statistic.candidates[0], weight=1001)
    with pytest.raises(InvalidDeclaration):
        replace(statistic.candidates[0], synthetic=np.zeros(5, np.int64))
    with pytest.raises(InvalidDeclaration):
        statistic.distance(Norm.L1)
    other = scores(sf.ReplaceOne).candidates
    with pytest.raises(InvalidDeclaration):
        replace(statistic, candidates=other)


def test_a_score_is_what_it_states():
    statistic = scores(weight=5)
    one = statistic.plan.refinement
    # the row is in the first cell of the pair: 9 + 5 x 10, and in block 1 of the single column
    found = exact(statistic, [{"who": "a", "v": 0, "s": "F"}])
    assert found.tolist() == [5 * (59 * one - 7), 2 * one]
