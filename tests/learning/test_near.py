# SPDX-License-Identifier: Apache-2.0
"""Counts of predictions of a number within a tolerance: by plain Python, and on neighbours."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import linear
from sfumato.learning.near import STEPS, NearOutcomes
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from tests.learning.test_outcomes import exact, reached

KINDS = {"x": sf.Integer(0, 64), "c": sf.Category("p", "q"), "y": sf.Integer(-100, 100)}
# a number near its prediction, two far away, and one that is missing
MINE = [
    {"who": "me", "x": x, "c": "p", "y": y} for x, y in ((0, -95), (64, -99), (0, 100), (9, None))
]
# the lower end of x says 0, the upper one 1; q adds a tenth
WEIGHTS = np.array([[0, STEPS, 0, 0, STEPS // 10, 0]])


def outcomes(most=1, relation=sf.AddRemove, tolerance=5):
    unit = sf.Unit("who", max_rows_total=most)
    table = sf.Table(pa.Table.from_pylist(MINE), unit=unit, columns=KINDS)
    found = Examples.of(Dataset("tiny", {"t": table}, relation), "SELECT x, c, y FROM t", "y")
    features = found.features(linear)
    return NearOutcomes(found.plan, found.label, features, found.places, WEIGHTS, tolerance)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_near_outcomes_move_by_at_most_their_proved_distance(relation, norm, monkeypatch):
    monkeypatch.setattr("tests.learning.test_outcomes.MINE", MINE)
    statistic = outcomes(3, relation)
    found = reached(statistic, norm, replaced=relation is sf.ReplaceOne)
    assert found == statistic.distance(norm).value


def errors_added_up(statistic, rows):
    """The mutant adds up absolute errors in place of counting near predictions."""
    codes = np.array([[row["x"], 0, row["y"] + 100] for row in rows if row["y"] is not None])
    far = np.abs(100 * codes[:, 0] // 32 - codes[:, 2]).sum() if len(codes) else 0
    return np.array([int(far), 0])


def test_a_mutant_that_adds_up_errors_moves_too_far(monkeypatch):
    monkeypatch.setattr("tests.learning.test_outcomes.MINE", MINE)
    monkeypatch.setattr("tests.learning.test_outcomes.exact", errors_added_up)
    monkeypatch.setattr("tests.learning.test_outcomes.REST", [{"x": 0, "y": None}])
    statistic = outcomes(3)
    assert reached(statistic, Norm.L1, replaced=False) > statistic.distance(Norm.L1).value


@pytest.mark.parametrize("tolerance", [0, 5, 200])
def test_counts_are_those_of_plain_python(tolerance):
    random = np.random.default_rng(5)
    rows, near = [], 0
    for place in range(200):
        x, c, y = int(random.integers(0, 65)), "pq"[place % 2], int(random.integers(-100, 101))
        rows.append({"who": str(place), "x": x, "c": c, "y": y})
        score = Fraction(x, 64) + Fraction(STEPS // 10, STEPS) * (c == "q")
        code = min(score, Fraction(1)) * 200
        near += abs(int(code + Fraction(1, 2)) - 100 - y) <= tolerance
    assert exact(outcomes(tolerance=tolerance), rows).tolist() == [near, 200 - near]


def test_what_has_no_score_is_refused():
    with pytest.raises(InvalidDeclaration):
        outcomes(tolerance=-1)
