# SPDX-License-Identifier: Apache-2.0
"""Learns limits that are declared as ``sf.AUTO``, each with a charged question of its own.

A limit is the smallest power of two that at least 95% of the units respect, by a private quantile:
of their rows, their most rows in one group, or their groups. Each unit contributes one row to that
question, so it needs no limit itself. There are few candidates, so a small epsilon suffices.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sfumato.exact.rounding import sqrt_down
from sfumato.metadata.column import Column, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountUnits, Quantiles
from sfumato.plan.output import Item, Output
from sfumato.plan.question import Question
from sfumato.plan.relation import Computed, PerUnit, Relation, Summary
from sfumato.plan.scalar import Estimate, Field, Lookup
from sfumato.plan.stages import Raw
from sfumato.plan.value import Value
from sfumato.privacy.unit import AUTO
from sfumato.query.price import Price

# What each learnt limit costs, of the price of the question that needs it.
SHARE = Fraction(1, 10)
_LEVEL = Fraction(95, 100)
_POWERS = tuple(2**power for power in range(13))
_MOST = _POWERS[-1]
_LIMITS = ("max_rows", "max_groups", "max_rows_total")


def automatic(question: Question, dataset: Dataset) -> Iterator[tuple[str, Question]]:
    """Yields each ``sf.AUTO`` contribution limit that a question needs: its name, and the charged
    question from which it is learnt.
    """
    unit = dataset.row_unit(question.table)
    if unit is None:
        return
    for limit in _LIMITS:
        if getattr(unit, limit) is AUTO and _is_needed(limit, question.raw):
            yield limit, _learning(limit, question, dataset)


def unused_name(name: str, dataset: Dataset) -> str:
    """Returns a column name that no table of the dataset has: ``name``, or ``name`` with a suffix."""
    declared = {column for table in dataset.tables.values() for column in table.columns}
    while name in declared:
        name += "_"
    return name


def _learning(limit: str, question: Question, dataset: Dataset) -> Question:
    """The question that learns one limit: a quantile over units, as a power of two."""
    column = Column(unused_name(f"auto.{limit}", dataset), Integer(1, _MOST))
    relation = _counted(limit, question.raw, column, dataset)
    quantile = Quantiles(_power(column), (_LEVEL,))
    raw = Raw(relation, (), (quantile,))
    output = Output((Item(limit, Estimate(0)),))
    text = f"{limit} of: {question.text}"
    return replace(
        question,
        text=text,
        raw=raw,
        output=output,
        notes=(),
        twins=(),
    )


def with_limits(dataset: Dataset, table: str, learnt: dict[str, int]) -> Dataset:
    """Returns the dataset with the learnt contribution limits of a table's unit in place of
    ``sf.AUTO``.

    Limits that are ``sf.AUTO`` and were not learnt are removed.
    """
    unit = dataset.row_unit(table)
    if unit is None or all(getattr(unit, name) is not AUTO for name in _LIMITS):
        return dataset
    limits = {}
    for name in _LIMITS:
        limit = getattr(unit, name)
        limits[name] = learnt.get(name) if limit is AUTO else limit
    declared = replace(dataset.tables[table], unit=unit.limited(**limits))
    return replace(dataset, tables={**dataset.tables, table: declared})


def learnt_limit(place: Fraction, groups: int | None) -> int:
    """Returns the contribution limit that a released quantile stands for: 2 to the power ``place``,
    at most ``groups``.

    >>> learnt_limit(Fraction(3), None), learnt_limit(Fraction(3), 5)
    (8, 5)
    """
    index = max(round(place), 0)
    index = min(index, len(_POWERS) - 1)
    limit: int = _POWERS[index]
    if groups is None:
        return limit
    return min(limit, groups)


def units_needed(price: Price) -> int:
    """Returns about how many units are needed to learn a contribution limit well, at the price of
    the learning question.

    With so many units, the learnt limit is needlessly large (above the rows of every unit) with
    probability at most 1/100. The exponential mechanism prefers the right candidate by a factor of
    exp(epsilon gap / (2 sensitivity)): the gap is the share of units above the quantile level, and
    the sensitivity is the level.

    >>> units_needed(Price(epsilon=Fraction(1, 10)))
    2695
    """
    epsilon = price.epsilon
    if epsilon is None:
        epsilon = sqrt_down(8 * (price.rho or Fraction(0)))
    others = math.log(100 * (len(_POWERS) - 1))
    odds = float(_LEVEL / (1 - _LEVEL))
    return math.ceil(2 * odds * others / max(float(epsilon), 1e-12))


def declared_groups(raw: Raw) -> int | None:
    """Returns the number of groups of a plan, the product over its keys; None if the groups are not
    declared.
    """
    groups = 1
    for key in raw.keys:
        if key.size is None:
            return None
        groups *= key.size
    return groups


def _power(column: Column) -> Value:
    """The exponent of the least power of two that is at least a count of rows or groups."""
    places = tuple((count - 1).bit_length() for count in range(1, _MOST + 1))
    kind = Integer(0, len(_POWERS) - 1)
    place = Lookup(Field(column), 1, places)
    return Value(column.name, kind, place)


def _is_needed(limit: str, raw: Raw) -> bool:
    """Whether the sensitivity of a plan depends on a limit."""
    if limit == "max_groups":
        return bool(raw.keys)
    return not all(isinstance(aggregate, CountUnits) for aggregate in raw.aggregates)


def _counted(
    limit: str,
    raw: Raw,
    column: Column,
    dataset: Dataset,
) -> Relation:
    """A relation with one row for each unit, whose ``column`` is the number that the limit bounds."""
    if limit == "max_rows_total" or not raw.keys:
        return PerUnit(raw.relation, (), (Computed(column, Summary.COUNT),))
    rows = Column(unused_name("auto.rows", dataset), Integer(1, _MOST))
    keys = []
    for index, key in enumerate(raw.keys):
        named = Column(unused_name(f"auto.k{index}", dataset), key.value.type)
        keys.append((named, key.value))
    counted = Computed(rows, Summary.COUNT)
    by_group = PerUnit(raw.relation, tuple(keys), (counted,))
    if limit == "max_groups":
        groups = Computed(column, Summary.COUNT)
        return PerUnit(by_group, (), (groups,))
    read = Value("rows", rows.type, Field(rows))
    most = Computed(column, Summary.MAXIMUM, read)
    return PerUnit(by_group, (), (most,))
