# SPDX-License-Identifier: Apache-2.0
"""A recipe of one's own is fitted like those of the house."""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import InvalidNumber, WrongUse
from sfumato.learning.examples_of import Examples
from sfumato.learning.recipe import Asked, OneRelease, Planned
from sfumato.privacy.distance import Norm
from sfumato.query.cost import Cost
from tests.learning.rows import SELECT, connected, frame


@dataclass(frozen=True, slots=True)
class Tally(ln.Recipe[tuple[int, str, str]]):
    """The number of bytes of noisy counts, with what they cost."""

    def planned(
        self, examples: Examples, asked: Asked, orders: Collection[Fraction]
    ) -> Planned[tuple[int, str, str]]:
        task = ln.NaiveBayes().task(examples, asked.allowance)

        def made(body: bytes, cost: Cost, charge: str) -> tuple[int, str, str]:
            return len(body), cost.epsilon, charge

        return OneRelease(task, task.counted.width, task.noise, made)


def test_a_recipe_of_ones_own_is_charged_once(tmp_path: Path) -> None:
    with connected(tmp_path, frame(20), sf.Budget(3)) as session:
        found = ln.fit(session, Tally(), SELECT, label="ill", epsilon=1)
        assert found[:2] == (8 * 2 * (17 + 4 + 17), "1")
        assert ln.fit(session, Tally(), SELECT, label="ill", epsilon=1) == found
        assert session.budget.spent == "1"
        with pytest.raises(WrongUse, match="recipe="):
            ln.fit(session, Tally, SELECT, label="ill", epsilon=1)  # type: ignore[arg-type]


def test_what_is_asked_is_a_price_of_one_release_or_of_gaussian_ones() -> None:
    assert Asked(rho="0.5").allowance.norm is Norm.L2
    assert Asked(epsilon=1, delta="1e-6").budget.block == (1, Fraction(1, 10**6))
    with pytest.raises(WrongUse, match="pure epsilon"):
        _ = Asked(epsilon=1).budget
    with pytest.raises(InvalidNumber, match="rho with a delta"):
        _ = Asked(rho=1, delta="1e-6").budget
