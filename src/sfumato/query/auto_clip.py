# SPDX-License-Identifier: Apache-2.0
"""Learns clips that are declared as ``sf.AUTO``, each with a charged question of its own.

That question counts the units by the size of their largest value, in steps of half an octave. It is
the same for every question that reads the column, and its first stored answer is reused at any
price. ``chosen_clip`` picks from it the clip with the least total error of sums: the noise at the
price of the question, plus what the clip cuts off. That is post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sfumato.metadata.column import Column, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows
from sfumato.plan.output import Item, Output
from sfumato.plan.question import Question
from sfumato.plan.relation import Computed, PerUnit, Relation, Summary, scans
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Extreme,
    Field,
    Key,
    Operation,
)
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey, Value
from sfumato.query.answer import Answer
from sfumato.query.auto_limits import declared_groups, unused_name
from sfumato.query.price import Price
from sfumato.sql.clip import Occasion
from sfumato.sql.lower import understand

# The number of half-octaves below the largest possible size; smaller sizes count as the least.
STEPS = 32
# What sums of clipped values may cost where they stand beside those of the table's own values.
TWIN = Fraction(1, 5)


def learning(table: str, name: str, dataset: Dataset) -> Question:
    """Returns the charged question from whose answer a clip (``sf.AUTO``) of a numeric column is
    chosen.

    It counts units by the half-octave of their largest absolute value in a column.

    Args:
        table: the name of a table.
        name: the name of one of its columns, an Integer or a Real.
    """
    read = understand(f"SELECT COUNT({_quoted(name)}) FROM {_quoted(table)}", dataset)
    kind = dataset.tables[table].columns[name]
    assert isinstance(kind, Integer | Real), "only numbers have a clip"
    sized = _size(Column(name, kind))
    relation: Relation = read.raw.relation
    if dataset.tables[table].unit is not None:
        largest = Column(unused_name("auto.size", dataset), Integer(0, STEPS))
        relation = PerUnit(relation, (), (Computed(largest, Summary.MAXIMUM, sized),))
        sized = Value("size", largest.type, Field(largest))
    codes = tuple(range(STEPS + 1))
    raw = Raw(relation, (GroupKey(sized, codes),), (CountRows(),))
    items = (Item("size", Key(0)), Item("units", Estimate(0)))
    text = f"units by the size of {name!r} in {table!r}, to choose its clip"
    return replace(read, text=text, raw=raw, output=Output(items))


def origin_of(column: Column, occasion: Occasion, dataset: Dataset) -> tuple[str, str] | None:
    """Returns the table and the declared name of a column that a statement reads, if that can have
    a learnt clip.

    None for a computed column, and for a column of a public table.
    """
    for scan in scans(occasion.relation):
        for name, kind in dataset.tables[scan.table].columns.items():
            # a computed column may have the name of another one
            if scan.prefix + name == column.name and kind == column.type:
                return scan.table, name
    return None


def chosen_clip(
    answer: Answer,
    kind: Integer | Real,
    occasion: Occasion,
    price: Price,
) -> tuple[int, int]:
    """Returns the ends of the clip, as codes, whose sums have the least expected mean squared
    error.

    It is the whole range if no clip is better. The values cut off are assumed to be spread evenly
    over the declared groups. A count within its own noise is taken as 0.

    Args:
        answer: the answer to ``learning``.
        kind: the type of the column.
        occasion: the question for which the clip is chosen.
        price: the cost of all sums of clipped values of that question together.
    """
    sizes = sizes_of(kind)
    counts = _counts(answer)
    raw = Raw(occasion.relation, occasion.keys, ())
    groups = declared_groups(raw) or 1
    price_of_sum = price.scaled(Fraction(1, max(occasion.aggregates, 1)))
    errors = []
    for place, size in enumerate(sizes):
        low, high = ends_of(kind, size)
        lost = _total_excess(counts, sizes, place) / groups
        errors.append((math.hypot(_noise(high - low, price_of_sum), lost), low, high))
    _, low, high = min(errors)
    return low, high


def units_seen(price: Price) -> int:
    """Returns about how many units with values of similar size are needed for their noisy count to
    stand out from the noise, at a price.

    >>> units_seen(Price(epsilon=Fraction(1, 100)))
    300
    """
    if price.epsilon is not None:
        return math.ceil(3 / float(price.epsilon))
    return math.ceil(_noise(2, price))


def _size(column: Column) -> Value:
    """The index of the least candidate size that is at least the absolute value of a column."""
    kind = column.type
    assert isinstance(kind, Integer | Real), "only numbers have a clip"
    field = Field(column)
    negative = Arithmetic(Operation.SUBTRACT, Constant(0), field)
    magnitude = Extreme(greatest=True, operands=(field, negative))
    branches = []
    for place, size in enumerate(sizes_of(kind)):
        fits = Compare(Comparison.LE, magnitude, Constant(size))
        branches.append((fits, Constant(place)))
    # without a value, no test is true
    return Value("size", Integer(0, STEPS), Case(tuple(branches), Constant(None)))


def sizes_of(kind: Integer | Real) -> list[int]:
    """Returns the candidates for the bound of a learnt clip (on absolute values), as codes,
    ascending; the last covers the whole range.
    """
    largest = max(abs(kind.lower_code), abs(kind.upper_code))
    return [math.ceil(largest * 2 ** ((place - STEPS) / 2)) for place in range(STEPS + 1)]


def ends_of(kind: Integer | Real, size: int) -> tuple[int, int]:
    """Returns the ends of a clip to absolute values of at most ``size``, as codes within the
    declared range.
    """
    low = max(kind.lower_code, -size)
    high = min(kind.upper_code, size)
    if low < high:
        return low, high
    return kind.lower_code, kind.upper_code


def _counts(answer: Answer) -> list[float]:
    """The number of units of each size; 0 where the noise may explain it."""
    counts = [0.0] * (STEPS + 1)
    for line in answer.error():
        size_index = int(str(line["size"]))
        cell = line["units"]
        assert isinstance(cell, dict), "a released column"
        middle = (float(str(cell["low"])) + float(str(cell["high"]))) / 2
        if middle > float(str(cell["half_width"])):
            counts[size_index] = middle
    return counts


def _total_excess(counts: Sequence[float], sizes: Sequence[int], size_index: int) -> float:
    """The sum of what the values above the candidate at ``size_index`` exceed it by."""
    excess = 0.0
    for above in range(size_index + 1, len(sizes)):
        middle = math.sqrt(sizes[above - 1] * sizes[above])
        excess += counts[above] * max(middle - sizes[size_index], 0.0)
    return excess


def _noise(width: int, price: Price) -> float:
    """The standard deviation of the noise of a sum whose values have a range of ``width``."""
    if price.epsilon is not None:
        return math.sqrt(2) * width / float(price.epsilon)
    return width / math.sqrt(2 * float(price.rho or 1))


def _quoted(name: str) -> str:
    """A name as a quoted identifier of SQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
