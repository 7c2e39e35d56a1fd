# SPDX-License-Identifier: Apache-2.0
"""Scores of regressions through a session: near the truth, charged once, refused."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse

COLUMNS = {
    "age": sf.Integer(0, 99),
    "pay": sf.Real(0, 1000, step="0.5"),
    "ill": sf.Boolean(),
}
SELECT = "SELECT age, pay FROM people"


@pytest.fixture
def session(tmp_path):
    age = np.arange(1000) % 100
    rows = pa.table({"age": age, "pay": age * 5.0 + 100, "ill": age > 50})
    table = sf.Table(rows, columns=COLUMNS)
    budget = sf.Budget(10**4, "1e-5")
    with sf.connect(
        {"people": table}, dataset="d", budget=budget, ledger=tmp_path / "l.db"
    ) as opened:
        yield opened


def test_a_score_is_the_noisy_share_of_near_predictions_and_is_charged_once(session):
    model = ln.fit(session, ln.Ridge(), SELECT, label="pay", rho=1000)
    asked = {"label": "pay", "epsilon": 30}
    before = repr(session.budget)
    found = ln.score_within(session, model, SELECT, within=20, **asked)
    # noise at epsilon 30 is beyond 3 with probability below 1e-9 (two counts)
    assert abs(found.right - 1000) <= 3 and abs(found.wrong) <= 3
    after = repr(session.budget)
    assert ln.score_within(session, model, SELECT, within="20.0", **asked) == found
    assert repr(session.budget) == after != before
    # a model that always says 350 is within 100 for ages 30 to 70
    middle = replace(model, scores=np.array([[0.35, 0.35, 0.35]]))
    other = ln.score_within(session, middle, SELECT, within=100, **asked)
    assert abs(other.right - 410) <= 3 and other.charge != found.charge


def test_what_cannot_be_scored_is_refused_before_a_charge(session):
    model = ln.fit(session, ln.Ridge(), SELECT, label="pay", rho=1000)
    classes = ln.fit(session, ln.NaiveBayes(), "SELECT age, ill FROM people", label="ill", rho=9)
    spent = session.budget.spent
    wrong = [
        (classes, SELECT, "pay", 1),
        (model, "SELECT age, ill FROM people", "ill", 1),
        (model, "SELECT pay, age FROM people", "age", 1),
        (model, "SELECT ill, pay FROM people", "pay", 1),
        (model, SELECT, "pay", -1),
        (replace(model, scores=np.zeros((1, 99))), SELECT, "pay", 1),
    ]
    for given, statement, label, within in wrong:
        with pytest.raises(WrongUse):
            ln.score_within(session, given, statement, label=label, within=within, epsilon=1)
    with pytest.raises(WrongUse, match="score_within"):
        ln.score(session, model, SELECT, label="pay", epsilon=1)
    assert session.budget.spent == spent
