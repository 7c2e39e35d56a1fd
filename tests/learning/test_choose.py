# SPDX-License-Identifier: Apache-2.0
"""Choices among models through a session: what they find, what they cost, and bad input."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.accounting.account import account
from sfumato.errors import BudgetExceeded, WrongUse
from sfumato.learning.choose import Choosing
from sfumato.learning.examples_of import Examples
from sfumato.learning.outcomes import AddedRightCounts, RightCounts
from sfumato.learning.recipe import Asked
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import allowance
from tests.learning.rows import COLUMNS, SELECT, connected, frame

LIMIT = sf.Budget(10**4, "1e-5")


def models(session: sf.Session) -> list[Any]:
    """A good model between two bad ones, one of them a tree."""
    good = ln.fit(session, ln.NaiveBayes(), SELECT, label="ill", epsilon=50)
    tree = ln.fit(session, ln.DecisionTree(depth=1), SELECT, label="ill", epsilon=50)
    backwards = replace(tree, shares=tree.shares[:, ::-1].copy())
    return [backwards, good, replace(good, scores=-good.scores)]


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_the_model_with_most_right_predictions_is_chosen_for_one_epsilon(
    tmp_path: Path, relation: Any
) -> None:
    with connected(tmp_path, frame(2000), LIMIT, relation=relation) as session:
        listed = models(session)
        spent = Fraction(session.budget.spent)
        found = ln.choose(session, listed, SELECT, label="ill", epsilon=1)
        assert found.place == 1 and found.model is listed[1]
        assert Fraction(session.budget.spent) == spent + 1
        # twice the rows where a replaced unit moves counts both ways
        assert found.short == (3 if relation is sf.AddRemove else 7)
        assert repr(found).startswith(f"model 1 (within {found.short} rows")
        assert ln.choose(session, listed, SELECT, label="ill", epsilon=1).charge == found.charge
        assert Fraction(session.budget.spent) == spent + 1
        other = ln.choose(session, listed[::-1], SELECT, label="ill", epsilon=1)
        assert other.charge != found.charge and session.verify().problems == ()


def choosing(relation: Any, epsilon: object) -> Choosing:
    town = Dataset("town", {"people": sf.Table(frame(10), columns=COLUMNS)}, relation)
    examples = Examples.of(town, SELECT, "ill")
    task = ln.NaiveBayes().task(examples, allowance(epsilon=1))
    planned: Any = ln.NaiveBayes().planned(examples, Asked(epsilon=1), ())
    made = planned.made(bytes(8 * task.counted.width), None, "")
    kind = AddedRightCounts if relation is sf.AddRemove else RightCounts
    counts = kind((made.outcomes(examples), made.outcomes(examples)))
    return Choosing(counts, ("a", "b"), allowance(epsilon=epsilon))


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_a_choice_costs_what_was_asked(relation: Any) -> None:
    task = choosing(relation, "0.7")
    cost = account(task.event)
    assert cost.epsilon == Fraction(7, 10) and cost.rho == Fraction(49, 800)
    assert task.event.monotone is (relation is sf.AddRemove)


def test_equal_models_are_chosen_alike(tmp_path: Path) -> None:
    """Nothing of the data decides between them: not always the first."""
    with connected(tmp_path, frame(200), LIMIT) as session:
        good = ln.fit(session, ln.NaiveBayes(), SELECT, label="ill", epsilon=50)
        twins = [good, replace(good, scores=2 * good.scores)]
        places = Counter(
            ln.choose(session, twins, SELECT, label="ill", epsilon=1 + Fraction(k, 100)).place
            for k in range(40)
        )
    # one of them alone has probability 2^-39
    assert len(places) == 2


def test_what_cannot_be_chosen_is_refused_free(tmp_path: Path) -> None:
    with connected(tmp_path, frame(300), LIMIT) as session:
        listed = models(session)
        spent = session.budget.spent
        for wrong in ([], listed[0], ["model"], None):
            with pytest.raises(WrongUse, match="models="):
                ln.choose(session, wrong, SELECT, label="ill", epsilon=1)  # type: ignore[arg-type]
        fewer = "SELECT age, ill FROM people"
        with pytest.raises(WrongUse):
            ln.choose(session, listed, fewer, label="ill", epsilon=1)
        with pytest.raises(WrongUse):
            ln.choose(session, listed, SELECT, label="city", epsilon=1)
        with pytest.raises(BudgetExceeded):
            ln.choose(session, listed, SELECT, label="ill", epsilon=10**4)
        assert session.budget.spent == spent
