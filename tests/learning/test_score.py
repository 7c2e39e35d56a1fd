# SPDX-License-Identifier: Apache-2.0
"""Scores of models through a session: charged once, recalled, refused."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import BudgetExceeded, UnknownName, WrongUse
from sfumato.learning.features import Features, Listed
from sfumato.noise import DiscreteLaplace
from sfumato.query.interval import share_interval
from tests.learning.rows import SELECT, connected, frame

BUDGET = sf.Budget(10**4, "1e-5")
REST = SELECT + " WHERE age >= 50"


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with connected(tmp_path, frame(4000), BUDGET) as opened:
        yield opened


def fitted(session: sf.Session, **more: Any) -> ln.Model:
    return ln.fit(session, ln.NaiveBayes(), SELECT, label="ill", epsilon=20, **more)


def right_in(model: ln.Model, rows: Any) -> int:
    truth = [str(each) for each in rows["ill"].to_pylist()]
    return sum(one == other for one, other in zip(model.predict(rows), truth, strict=True))


@pytest.mark.parametrize("price", [{"epsilon": 30}, {"rho": 30}, {"epsilon": 5, "delta": "1e-6"}])
def test_a_score_is_the_noisy_share_of_right_predictions(session: Any, price: Any) -> None:
    model = fitted(session)
    found = ln.score(session, model, SELECT, label="ill", **price)
    right = right_in(model, frame(4000))
    # at these costs the noise is beyond 30 with probability below 1e-9
    assert abs(found.right - right) < 30 and abs(found.right + found.wrong - 4000) < 60
    assert found.low <= found.accuracy <= found.high
    assert found.low - 0.01 < right / 4000 < found.high + 0.01
    assert repr(found).startswith(f"accuracy {found.accuracy:.3f} [")


def test_the_same_score_again_is_free_and_another_model_is_another_charge(session: Any) -> None:
    model = fitted(session)
    first = ln.score(session, model, REST, label="ill", epsilon=1)
    spent = Fraction(session.budget.spent)
    again = ln.score(session, model, REST, label="ill", epsilon=1)
    assert again == first and Fraction(session.budget.spent) == spent
    other = replace(model, scores=model.scores * 2)
    assert ln.score(session, other, REST, label="ill", epsilon=1).charge != first.charge
    assert Fraction(session.budget.spent) == spent + 1
    assert session.verify().problems == ()


def test_a_saved_model_has_the_same_score(session: Any, tmp_path: Path) -> None:
    model = fitted(session)
    model.save(tmp_path / "m.sfm")
    first = ln.score(session, model, SELECT, label="ill", epsilon=1)
    assert ln.score(session, ln.load(tmp_path / "m.sfm"), SELECT, label="ill", epsilon=1) == first


def test_no_rows_give_the_whole_range(session: Any) -> None:
    model = fitted(session)
    nobody = SELECT + " WHERE age < 0"
    found = ln.score(session, model, nobody, label="ill", epsilon="0.01")
    # the noise is far above these counts of 0, so nothing can be told
    assert 0 <= found.low <= found.accuracy <= found.high <= 1


def test_what_cannot_be_scored_is_refused_before_a_charge(session: Any) -> None:
    model = fitted(session)
    spent = session.budget.spent
    asked: dict[str, Any] = {"label": "ill", "epsilon": 1}
    number = replace(model, classes=())
    damaged = replace(model, scores=model.scores[:, :3])
    backwards = replace(model, features=Features((Listed("age", 0, 2**70),)))
    for wrong, statement, more in (
        (number, SELECT, {}),
        (damaged, SELECT, {}),
        (backwards, SELECT, {}),
        ("model", SELECT, {}),
        (model, "SELECT city, age, pay, ill FROM people", {}),
        (model, "SELECT age, city, ill FROM people", {}),
        (model, "SELECT age, city, ill, pay FROM people", {"label": "city"}),
        (model, SELECT, {"confidence": 1}),
    ):
        with pytest.raises(WrongUse):
            ln.score(session, wrong, statement, **{**asked, **more})
    with pytest.raises(UnknownName):
        ln.score(session, model, SELECT, **{**asked, "label": "sick"})
    with pytest.raises(BudgetExceeded):
        ln.score(session, model, SELECT, **{**asked, "epsilon": 9990})
    assert session.budget.spent == spent


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_the_interval_is_that_of_the_noise(tmp_path: Path, relation: Any) -> None:
    with connected(tmp_path, frame(4000), BUDGET, relation=relation) as session:
        model = fitted(session)
        found = ln.score(session, model, SELECT, label="ill", epsilon="0.01", confidence="0.9")
    scale = 100 if relation is sf.AddRemove else 200
    ends = share_interval(found.right, found.wrong, DiscreteLaplace(scale), Fraction(1, 10))
    assert (found.low, found.high) == ends and found.confidence == Fraction(9, 10)
