# SPDX-License-Identifier: Apache-2.0
"""Limits that are learnt privately (``sf.AUTO``): a charged question of its own for each.

A limit is the smallest power of two that 95% of the units, by a private quantile, keep to:
the rows of a unit, the most rows it has in a group, the groups it is in. One row a unit, so
nothing has to be bounded to ask it; few candidates, so that little is needed to tell them apart.
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
    """The limits of the question's table that have to be learnt, each with the question that learns it."""
    unit = dataset.tables[question.table].unit
    for limit in _LIMITS:
        if unit is not None and getattr(unit, limit) is AUTO and _is_needed(limit, question.raw):
            column = Column(f"auto.{limit}", Integer(1, _MOST))
            raw = Raw(
                _counted(limit, question.raw, column), (), (Quantiles(_power(column), (_LEVEL,)),)
            )
            output = Output((Item(limit, Estimate(0)),))
            yield (
                limit,
                replace(
                    question, text=f"{limit} of: {question.text}", raw=raw, output=output, notes=()
                ),
            )


def with_limits(dataset: Dataset, table: str, learnt: dict[str, int]) -> Dataset:
    """The dataset with the limits of a table as learnt; those that the question does not need are left out."""
    unit = dataset.tables[table].unit
    if unit is None or all(getattr(unit, name) is not AUTO for name in _LIMITS):
        return dataset
    limits = {
        name: learnt.get(name) if getattr(unit, name) is AUTO else getattr(unit, name)
        for name in _LIMITS
    }
    declared = replace(dataset.tables[table], unit=unit.limited(**limits))
    return replace(dataset, tables={**dataset.tables, table: declared})


def learnt_limit(place: Fraction, groups: int | None) -> int:
    """The limit of a released place among the powers of two; never more than there are groups.

    >>> learnt_limit(Fraction(3), None), learnt_limit(Fraction(3), 5)
    (8, 5)
    """
    limit: int = _POWERS[min(max(round(place), 0), len(_POWERS) - 1)]
    return limit if groups is None else min(limit, groups)


def units_needed(price: Price) -> int:
    """From about how many units on a limit learnt at a price is above all of theirs once in 100 times at most.

    The exponential mechanism prefers the right place by exp(epsilon gap / (2 sensitivity)), where the
    gap is the part of the units that the level leaves above, and the sensitivity is the level.

    >>> units_needed(Price(epsilon=Fraction(1, 10)))
    2695
    """
    epsilon = (
        price.epsilon if price.epsilon is not None else sqrt_down(8 * (price.rho or Fraction(0)))
    )
    others = math.log(100 * (len(_POWERS) - 1))
    return math.ceil(2 * float(_LEVEL / (1 - _LEVEL)) * others / max(float(epsilon), 1e-12))


def declared_groups(raw: Raw) -> int | None:
    """How many groups there are, where they are public."""
    sizes = [key.size for key in raw.keys]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _power(column: Column) -> Value:
    """The place of the smallest power of two that is not below a number of rows or groups."""
    table = tuple(
        next(place for place, power in enumerate(_POWERS) if power >= n)
        for n in range(1, _MOST + 1)
    )
    return Value(column.name, Integer(0, len(_POWERS) - 1), Lookup(Field(column), 1, table))


def _is_needed(limit: str, raw: Raw) -> bool:
    if limit == "max_groups":
        return bool(raw.keys)
    return not all(isinstance(each, CountUnits) for each in raw.aggregates)


def _counted(limit: str, raw: Raw, column: Column) -> Relation:
    """One row a unit, with what the limit bounds."""
    if limit == "max_rows_total" or not raw.keys:
        return PerUnit(raw.relation, (), (Computed(column, Summary.COUNT),))
    rows = Column("auto.rows", Integer(1, _MOST))
    keys = tuple(
        (Column(f"auto.k{index}", key.value.type), key.value) for index, key in enumerate(raw.keys)
    )
    by_group = PerUnit(raw.relation, keys, (Computed(rows, Summary.COUNT),))
    if limit == "max_groups":
        return PerUnit(by_group, (), (Computed(column, Summary.COUNT),))
    return PerUnit(
        by_group, (), (Computed(column, Summary.MAXIMUM, Value("rows", rows.type, Field(rows))),)
    )
