# SPDX-License-Identifier: Apache-2.0
"""The task of means: two steps of noise, and an origin from released numbers alone."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import mining as mn
from sfumato.errors import WrongUse
from sfumato.mining.means_task import MeansTask
from sfumato.mining.recipe import Asked
from tests.mining.scans import plan


def task(**given: Any) -> MeansTask:
    return mn.Means("scan", **given).planned(plan(), Asked(None, 1, None))


def test_a_tenth_of_the_cost_is_for_the_overall_mean() -> None:
    planned = task(by="ward")
    assert planned.cells == (3, 9) and planned.line == "Means of scan by ward"
    distance = planned.overall.bound**2
    costs = [
        distance / (2 * step.noise.sigma_squared)
        for step in planned.event.events  # type: ignore[union-attr]
    ]
    assert costs == [Fraction(1, 10), Fraction(9, 10)]
    assert planned.form != task(by="ward", length=3).form
    assert task(by="note", only=["red"]).cells == (3, 3)


def test_offsets_from_a_mean_at_an_end_fit_or_are_refused_before_the_charge() -> None:
    """With so many rows, offsets from the middle fit the integers, and those from an end do not."""
    recipe = mn.Means("scan", by="ward")
    task(by="ward").by_group((3, 3))
    with pytest.raises(WrongUse, match="300,000,000 of a person"):
        recipe.planned(plan(most=300_000_000), Asked(None, 1, None))


@pytest.mark.parametrize(
    ("offsets", "people", "expected"),
    # 0 is the middle of -3 to 3; a weight below one person counts as one
    [((2, -4), 2, (1, -2)), ((90, -90), 2, (3, -3)), ((1, 0), -5, (1, 0))],
)
def test_offsets_are_from_the_released_mean_within_the_bounds(
    offsets: Any, people: int, expected: Any
) -> None:
    planned = task(by="ward")
    first, seen = planned.overall, []

    class Scripted:
        charge = "0" * 32

        def measure(self, statistic: Any, mechanism: Any) -> Any:
            seen.append(statistic)
            sums = np.array([*(first.scale * each for each in offsets), people * first.weight])
            return sums if statistic is first else np.arange(9)

    facts = json.loads(planned.run(Scripted()))  # type: ignore[arg-type]
    assert seen == [first, planned.by_group(tuple(first.scale * each for each in expected))]
    assert facts["sums"] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert facts["labels"] == ["eye", "ear", None] and facts["ends"] == ["-3", "3"]
