# SPDX-License-Identifier: Apache-2.0
"""Recipes of models whose score is a sum: their noise and what they refuse."""

from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato.accounting import account
from sfumato.errors import WrongUse
from sfumato.learning.additive import Additive, LogisticRegression
from sfumato.learning.budget import Budgeted
from sfumato.learning.examples_of import Examples
from sfumato.learning.order import Poisson
from sfumato.metadata.dataset import Dataset
from tests.learning.rows import COLUMNS, SELECT, frame

TOWN = Dataset("town", {"people": sf.Table(frame(10), columns=COLUMNS)})
RHO = Budgeted(rho=Fraction(1, 50))


def examples(label: str = "ill", dataset: Dataset = TOWN) -> Examples:
    return Examples.of(dataset, SELECT, label)


@pytest.mark.parametrize("recipe", [Additive(), LogisticRegression(), Additive(steps=1000)])
def test_a_run_costs_at_most_its_rho_and_nearly_all_of_it(recipe: Any) -> None:
    run = recipe.training(examples(), RHO, [])
    cost = account(run.event).rho
    assert RHO.rho * Fraction(999, 1000) < cost <= RHO.rho
    # three features: the squared sensitivity is three squared examples
    counted = run.counted
    assert counted.squared == 3 * (counted.steps * counted.features.scale) ** 2


def test_a_number_is_no_class() -> None:
    assert not Additive().training(examples("pay"), RHO, []).logistic
    assert Additive().training(examples(), RHO, []).logistic
    with pytest.raises(WrongUse, match="3 classes"):
        Additive().training(examples("city"), RHO, [])


def test_bins_are_those_that_are_declared() -> None:
    run = Additive(edges={"age": [18, 65]}, bins=4).training(examples(), RHO, [])
    assert [part.width for part in run.counted.features.parts] == [4, 4, 5]
    lines = LogisticRegression().training(examples(), RHO, [])
    assert [part.width for part in lines.counted.features.parts] == [3, 4, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Additive(steps=0),
        lambda: Additive(steps=10**7),
        lambda: Additive(bins=1),
        lambda: Additive(checkpoints=0),
        lambda: LogisticRegression(steps=1.5),
        lambda: Additive(order="shuffled").training(examples(), RHO, []),
        lambda: Additive(order=Poisson("0.1")).training(
            examples(dataset=Dataset("town", TOWN.tables, sf.ReplaceOne)), RHO, []
        ),
    ],
)
def test_what_is_no_recipe_is_refused(make: Any) -> None:
    with pytest.raises(WrongUse):
        make()
