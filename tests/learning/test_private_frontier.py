# SPDX-License-Identifier: Apache-2.0
"""Frontiers on private rows: priced before a charge, each fit and each score charged once."""

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import BudgetExceeded, WrongUse
from tests.learning.rows import connected, frame

TRAIN = "SELECT age, city, ill FROM people WHERE pay < 50"
TEST = "SELECT age, city, ill FROM people WHERE pay >= 50"


def planned(session: sf.Session, **more: Any) -> ln.PrivateFrontier:
    asked: dict[str, Any] = {"label": "ill", "epsilons": ["0.001", 5], "score_epsilon": 10, **more}
    recipe, test = asked.pop("recipe", ln.NaiveBayes(bins=4)), asked.pop("test", TEST)
    return ln.private_frontier(session, recipe, TRAIN, test, **asked)


def test_the_price_is_said_first_and_is_what_is_charged(tmp_path: Path) -> None:
    with connected(tmp_path, frame(4000), sf.Budget(40)) as session:
        frontier = planned(session)
        assert repr(frontier) == "2 fits and 2 scores cost epsilon = 25.001; nothing was charged"
        assert session.budget.spent == "0"
        said: list[tuple[int, int]] = []
        found = frontier.measure(lambda done, of: said.append((done, of)))
        assert session.budget.spent == "25.001" and said == [(1, 2), (2, 2)]
        assert found.without is None and found.largest_class is None and found.folds == 1
        # the same again is free
        assert planned(session).measure() == found and session.budget.spent == "25.001"


def test_points_are_scores_on_rows_that_were_not_fitted_to(tmp_path: Path) -> None:
    with connected(tmp_path, frame(4000), sf.Budget(40)) as session:
        point = planned(session).measure().points[1]
        model = ln.fit(session, ln.NaiveBayes(bins=4), TRAIN, label="ill", epsilon=5)
        same = ln.score(session, model, TEST, label="ill", epsilon=10)
        assert (point.mean, point.low, point.high) == (same.accuracy, same.low, same.high)
        # about 2,000 rows are tested, with noise of a fifth of a row
        assert 0.7 < point.low <= point.mean <= point.high < 0.9
        assert session.budget.spent == "25.001"


def test_what_was_paid_is_kept_when_the_account_cannot_pay_for_all(tmp_path: Path) -> None:
    with connected(tmp_path, frame(500), sf.Budget(12)) as session:
        with pytest.raises(BudgetExceeded):
            planned(session).measure()
        assert session.budget.spent == "10.001"
        alone = planned(session, epsilons=["0.001"]).measure()
        assert len(alone.points) == 1 and session.budget.spent == "10.001"


def test_blocks_add_up_in_epsilon_and_delta(tmp_path: Path) -> None:
    with connected(tmp_path, frame(500), sf.Budget(5, "1e-5")) as session:
        recipe = ln.Additive(steps=2, checkpoints=1)
        asked: dict[str, Any] = {"epsilons": ["0.5", 1], "delta": "1e-6", "score_epsilon": "0.1"}
        frontier = planned(session, recipe=recipe, **asked)
        stated = "2 fits and 2 scores cost epsilon = 1.7, delta = 0.000002; nothing was charged"
        assert repr(frontier) == stated
        assert frontier.measure().delta == "0.000001"
        assert session.budget.spent == "1.7"


def test_its_table_and_picture_say_what_the_band_is(tmp_path: Path) -> None:
    with connected(tmp_path, frame(500), sf.Budget(40)) as session:
        found = planned(session).measure()
    assert repr(found).endswith("one fit each; least and greatest: the 95% interval of its score")
    drawn = found.plot().svg
    assert "band: 95% interval of its score" in drawn and "largest class" not in drawn
    assert found.to_json()["without_noise"] is None


@pytest.mark.parametrize(
    "more",
    [
        {"epsilons": []},
        {"epsilons": [2, 1]},
        {"recipe": ln.Ridge()},
        {"recipe": ln.Additive()},
        {"label": "city", "test": "SELECT age FROM people"},
        {"label": "pay", "test": "SELECT age, pay FROM people"},
    ],
    ids=str,
)
def test_what_cannot_be_measured_is_refused_before_a_charge(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    with connected(tmp_path, frame(50), sf.Budget(40)) as session:
        with pytest.raises(sf.SfumatoError):
            planned(session, **more)
        assert session.budget.spent == "0"


def test_a_score_without_cost_is_refused(tmp_path: Path) -> None:
    with connected(tmp_path, frame(50), sf.Budget(40)) as session:
        with pytest.raises(sf.SfumatoError):
            planned(session, score_epsilon=0)
        with pytest.raises(WrongUse):
            planned(session, epsilons=[3, 3])
