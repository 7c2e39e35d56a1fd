# SPDX-License-Identifier: Apache-2.0
"""Warns the owner of declarations that are allowed, but promise less than they seem to.

``sfumato check`` prints the warnings.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

from sfumato.exact.rational import decimal_text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import Unit

_LARGE_EPSILON = 10
# Beyond it, a factor of more than 485 million, no belief is held back.
_NO_PROTECTION = 20


def reckless(dataset: Dataset, budget: Budget | None = None) -> tuple[str, ...]:
    """Returns warnings about a risky budget or contribution limits, from the declarations alone.

    They are about: a delta of at least 1 / rows, an epsilon above 10, limits that no unit could
    reach, and a missing limit without which GROUP BY is refused.

    >>> from sfumato.metadata.dataset import Dataset
    >>> from sfumato.metadata.table import Table
    >>> people = Table("people.csv", size=1000)
    >>> print(*reckless(Dataset("survey", {"people": people}), Budget(1, "0.001")))
    delta = 0.001 is at least 1 / 1000, the rows of people: ...
    """
    warnings: list[str] = []
    if budget is not None:
        warnings += _of_budget(dataset, budget)
    for name, table in dataset.tables.items():
        warnings += _of_limits(name, table)
    return tuple(warnings)


def _of_budget(dataset: Dataset, budget: Budget) -> Iterator[str]:
    """Warnings about a budget that protects too little."""
    if budget.epsilon > _LARGE_EPSILON:
        epsilon = decimal_text(budget.epsilon)
        if budget.epsilon > _NO_PROTECTION:
            meaning = f" protects nobody: an attacker may become sure, by a factor of e^{epsilon}"
        else:
            factor = math.ceil(math.exp(budget.epsilon))
            meaning = (
                f": what an attacker believes of a person may change by a factor of {factor:,}"
            )
        yield f"epsilon = {epsilon}{meaning}. See: sfumato explain-epsilon {epsilon}"
    for name, table in dataset.tables.items():
        if not table.public and table.size and budget.delta >= Fraction(1, table.size):
            yield (
                f"delta = {decimal_text(budget.delta)} is at least 1 / {table.size}, the rows of "
                f"{name}: publishing a whole row at random would be allowed. Declare one far "
                "below it."
            )


def _of_limits(name: str, table: Table) -> Iterator[str]:
    """Warnings about limits of a table that no unit can reach, so that they only add noise.

    Also about limits that are missing.
    """
    unit = table.unit
    if not isinstance(unit, Unit):
        return
    for limit in ("max_rows", "max_groups", "max_rows_total"):
        value = getattr(unit, limit)
        if isinstance(value, int) and table.size and value > table.size:
            yield (
                f"{name}: {limit} = {value}, but the table has {table.size} rows: no unit can "
                "reach it, and the noise grows with it."
            )
    is_alone = unit.max_groups is None and unit.max_rows_total is None
    if unit.max_rows is not None and is_alone and not unit.once:
        yield (
            f"{name}: max_rows = {unit.max_rows} without max_groups: GROUP BY is refused. Declare "
            "max_groups, or max_rows_total where it limits a unit's rows in the whole table."
        )
    together = _together(unit)
    total = unit.max_rows_total
    if isinstance(total, int) and together is not None and total > together:
        yield (
            f"{name}: max_rows_total = {total}, but max_rows and max_groups leave at most "
            f"{together} rows of a unit."
        )


def _together(unit: Unit) -> int | None:
    """The most rows of a unit that its other two limits allow; None if they bound nothing."""
    if isinstance(unit.max_rows, int) and isinstance(unit.max_groups, int):
        return unit.max_rows * unit.max_groups
    return None
