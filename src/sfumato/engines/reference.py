# SPDX-License-Identifier: Apache-2.0
"""The same integers in plain Python: slow, short, obviously right.

It is the oracle of every engine test, and the subject of the tests of the sensitivity
proof: what neighbours can differ by is checked on it, row by row.
"""

import datetime
import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isqrt

from sfumato.engines.base import Codes, Integers
from sfumato.engines.emit import DATE_PATTERN, NUMBER_PATTERN, kept_groups
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text, date_code
from sfumato.plan.aggregate import Aggregate, CountRows, CountUnits, CountValues, Mean, Sum, numeric
from sfumato.plan.relation import predicates, scanned
from sfumato.plan.scalar import Field, Leaf, Value, evaluate
from sfumato.plan.status import Bounded
from sfumato.privacy.distance import Norm

Row = Mapping[str, object]


class Reference:
    """An engine over rows held as Python mappings."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        self._tables = tables

    def statement(self, plan: Bounded) -> str:
        """What it would run."""
        return f"plain Python over {scanned(plan.tracked.raw.relation).table}"

    def run(self, plan: Bounded, sampling_key: str) -> Integers:
        """The exact integers of a plan.

        >>> from sfumato.engines.reference import Reference
        >>> Reference({"t": []}).statement  # doctest: +ELLIPSIS
        <bound method Reference.statement ...>
        """
        tracked = plan.tracked
        rows = [row for row in self._tables[scanned(tracked.raw.relation).table] if _keeps(plan, row)]
        groups: dict[Codes, list[Row]] = defaultdict(list)
        if not tracked.raw.keys:
            groups[()] = []
        for row in rows:
            groups[_key_of(plan, row)].append(row)
        if tracked.unit is None:
            return {key: _sum_parts(plan, inside) for key, inside in groups.items()}
        return _weighed(plan, groups, sampling_key)


def _keeps(plan: Bounded, row: Row) -> bool:
    raw = plan.tracked.raw

    def lookup(leaf: Leaf) -> Value:
        assert isinstance(leaf, Field)
        return code_of(leaf.column, row.get(leaf.column.name))

    if plan.tracked.unit is not None and row.get(plan.tracked.unit) is None:
        return False
    if any(key.type.missing is None and code_of(key, row.get(key.name)) is None for key in raw.keys):
        return False
    return all(evaluate(test, lookup) is True for test in predicates(raw.relation))


def _key_of(plan: Bounded, row: Row) -> Codes:
    codes = [code_of(key, row.get(key.name)) for key in plan.tracked.raw.keys]
    return tuple(code if isinstance(code, int) else None for code in codes)


def _sum_parts(plan: Bounded, rows: Sequence[Row]) -> tuple[int, ...]:
    return tuple(value for part in plan.parts for value in _integers(part.aggregate, rows))


def _integers(aggregate: Aggregate, rows: Sequence[Row]) -> list[int]:
    if isinstance(aggregate, CountRows | CountUnits):
        return [len(rows)]
    codes = [code for row in rows if isinstance(code := code_of(aggregate.column, row.get(aggregate.column.name)), int)]
    match aggregate:
        case CountValues(column):
            present = [row for row in rows if code_of(column, row.get(column.name)) is not None]
            return [len(present)]
        case Sum():
            return [sum(codes)]
        case Mean(column):
            kind = numeric(column)
            return [sum(code - kind.lower_code for code in codes), sum(kind.upper_code - code for code in codes)]


def _weighed(plan: Bounded, groups: Mapping[Codes, list[Row]], sampling_key: str) -> Integers:
    """Each unit's groups clipped and weighed, then added up."""
    unit_column = str(plan.tracked.unit)
    by_unit: dict[str, dict[Codes, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for key, rows in groups.items():
        for row in rows:
            by_unit[text_of(row[unit_column])][key].append(row)
    widths = len(_sum_parts(plan, []))
    totals: dict[Codes, list[int]] = {key: [0] * widths for key in groups}
    for unit, held in by_unit.items():
        for key, values in _contribution(plan, unit, held, sampling_key).items():
            totals[key] = [old + new for old, new in zip(totals[key], values, strict=True)]
    return {key: tuple(values) for key, values in totals.items()}


def _contribution(
    plan: Bounded, unit: str, held: Mapping[Codes, list[Row]], sampling_key: str
) -> dict[Codes, list[int]]:
    """What one unit adds to each of its groups."""
    limit = plan.tracked.limits.rows
    total = sum(len(rows) if limit is None else min(len(rows), limit) for rows in held.values())
    weight = _weight(plan, len(held), total)
    order = sorted(
        held, key=lambda key: (_hash(sampling_key, key, unit), [(code is not None, code or 0) for code in key])
    )
    kept = kept_groups(plan)
    seen = set(order if kept is None else order[:kept])
    result = {}
    for key, rows in held.items():
        values: list[int] = []
        for part in plan.parts:
            if isinstance(part.aggregate, CountUnits):
                values.append(plan.refinement if key in seen else 0)
            else:
                values += [value * weight for value in _clip(part.aggregate, rows, limit)]
        result[key] = values
    return result


def _clip(aggregate: Aggregate, rows: Sequence[Row], limit: int | None) -> list[int]:
    """A unit's integers in a group, as if it had at most ``limit`` rows there."""
    values = _integers(aggregate, rows)
    if limit is None:
        return values
    if isinstance(aggregate, Sum):
        kind = numeric(aggregate.column)
        low, high = limit * min(kind.lower_code, 0), limit * max(kind.upper_code, 0)
        return [min(max(values[0], low), high)]
    if isinstance(aggregate, Mean):
        count = _integers(CountValues(aggregate.column), rows)[0]
        return [value * limit // count if count > limit else value for value in values]
    return [min(values[0], limit)]


def _weight(plan: Bounded, touched: int, total: int) -> int:
    if plan.refinement == 1:
        return 1
    square = plan.norm is Norm.L2
    scale = plan.refinement**2 if square else plan.refinement
    limits = plan.tracked.limits
    terms = [scale]
    terms += [scale * limits.groups // touched] if limits.groups else []
    terms += [scale * limits.total // total] if limits.total else []
    return isqrt(min(terms)) if square else min(terms)


def _hash(sampling_key: str, key: Codes, unit: str) -> str:
    parts = [sampling_key, *("N" if code is None else str(code) for code in key), unit]
    return hashlib.md5("|".join(parts).encode(), usedforsecurity=False).hexdigest()


# --- codes -----------------------------------------------------------------------------


def code_of(column: Column, value: object) -> int | str | None:
    """The code of a value; None for what is missing or not declared."""
    if value is None:
        return None
    kind = column.type
    if kind.missing and text_of(value) in kind.missing:
        return None
    match kind:
        case Integer() | Real():
            return _number_code(kind, value)
        case Date():
            return _day_code(kind, value)
        case Category() | Boolean():
            return dict(kind.texts()).get(text_of(value))
        case Text():
            return text_of(value)


def text_of(value: object) -> str:
    """The text by which a value is compared."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value) and abs(int(value)) < 2**63:
        return str(int(value))
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _number_code(kind: Integer | Real, value: object) -> int | None:
    if isinstance(value, str) and not re.fullmatch(NUMBER_PATTERN, value, re.ASCII):
        return None
    if not isinstance(value, str | int | float | Decimal):
        return None
    number = float(value) / float(kind.step)
    if math.isnan(number):
        return None
    if number <= kind.lower_code:
        return kind.lower_code
    return kind.upper_code if number >= kind.upper_code else round(number)


def _day_code(kind: Date, value: object) -> int | None:
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, str) and not re.fullmatch(DATE_PATTERN, value, re.ASCII):
        return None
    day = date_code(value)
    return None if day is None else min(max(day, kind.lower_code), kind.upper_code)


def rows_of(columns: Mapping[str, Iterable[object]]) -> list[Row]:
    """Rows of a table given by columns.

    >>> rows_of({"a": [1, 2]})
    [{'a': 1}, {'a': 2}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
