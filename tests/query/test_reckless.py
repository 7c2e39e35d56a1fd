# SPDX-License-Identifier: Apache-2.0
"""Reckless declarations are said; sound ones are not."""

import pytest

from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import AUTO, Unit
from sfumato.query.reckless import reckless


def said(budget: Budget | None = None, size: int | None = 1000, **limits: object) -> list[str]:
    unit = Unit("id", **limits) if limits else None  # type: ignore[arg-type]
    return list(reckless(Dataset("d", {"people": Table("p.csv", unit, size=size)}), budget))


@pytest.mark.parametrize(
    ("budget", "size", "count"),
    [
        (Budget(1, "1e-6"), 1000, 0), (Budget(1, "0.0009"), 1000, 0), (Budget(1, "0.001"), 1000, 1),
        (Budget(1, "0.5"), None, 0), (Budget(10), 1000, 0), (Budget("10.1"), None, 1),
        (Budget(10**6, "0.01"), 1000, 2), (None, 1000, 0),
    ],
)  # fmt: skip
def test_budgets(budget: Budget | None, size: int | None, count: int) -> None:
    assert len(said(budget, size)) == count


def test_the_factor_is_the_exponential_of_epsilon() -> None:
    [line] = said(Budget(11))
    assert "may change by a factor of 59,875." in line  # e^11 = 59874.14, rounded up


def test_a_budget_that_protects_nobody_is_called_so() -> None:
    [line] = said(Budget(10**6))
    assert line.startswith("epsilon = 1000000 protects nobody")
    assert "e^1000000." in line
    assert "e+" not in line


@pytest.mark.parametrize(
    ("limits", "size", "count"),
    [
        ({"max_rows": 1, "max_groups": 3}, 1000, 0),
        ({"max_rows": 1001, "max_groups": 1}, 1000, 1),
        ({"max_rows": 2}, None, 1),
        ({"max_rows": AUTO}, None, 1),
        ({"max_rows": 1001, "max_groups": 1}, None, 0),
        ({"max_rows": AUTO, "max_groups": AUTO, "max_rows_total": 5}, 1000, 0),
        ({"max_rows": 2, "max_groups": 3, "max_rows_total": 7}, 1000, 1),
        ({"max_rows": 2, "max_groups": 3, "max_rows_total": 6}, 1000, 0),
    ],
)
def test_limits(limits: dict[str, object], size: int | None, count: int) -> None:
    assert len(said(None, size, **limits)) == count


def test_the_size_of_a_public_table_says_nothing() -> None:
    table = Table("days.csv", public=True, size=2)
    assert reckless(Dataset("d", {"days": table}), Budget(1, "0.6")) == ()
