# SPDX-License-Identifier: Apache-2.0
"""How much clipping and bounding change an answer: the questions that find it out privately.

Both are questions like any other, made of the plan of the one that is diagnosed, so they go
through the same passes, the same proof and the same ledger:

* per unit, one row each: does it have more than a limit allows? A unit moves each of these
  counts by one, whatever it has, so no limit is needed to ask.
* per row: does a value lie beyond its declared bounds, is the row in no group? Rows of a unit
  beyond its row limit weigh less, as they do in the answer itself.

How many rows lie beyond the limits is not asked: one unit could have any number of them, so
that number has no bounded sensitivity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sfumato.errors import UnsupportedSql
from sfumato.exact.rational import decimal_text
from sfumato.metadata.column import MAX_CODE, Boolean, Column, Date, Integer, Real
from sfumato.plan.aggregate import (
    CountDistinct,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    read_value,
)
from sfumato.plan.output import Item, Output
from sfumato.plan.question import Question
from sfumato.plan.relation import Computed, Filter, PerUnit, Relation, Summary, is_single, scans
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Field,
    IsNull,
    Member,
    Not,
    Operation,
    Or,
    Scalar,
    leaves,
)
from sfumato.plan.scope import is_one_group
from sfumato.plan.stages import Bounded, Raw
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.query.clipping_probe import Wide, through_bounds, wide, widened


@dataclass(frozen=True, slots=True)
class Check:
    """A question whose releases are shares, and what each is the share of.

    ``units``: of units, else of values or rows; ``found``: one text for each release.
    """

    question: Question
    units: bool
    found: tuple[str, ...]


def checks(question: Question, bounded: Bounded) -> tuple[Check, ...]:
    """The questions that say how much clipping and bounding change an answer.

    Raises:
        UnsupportedSql: no limit of the question can bind, and no aggregate reads a column with bounds as it is.
    """
    made = []
    # as the answer is computed: which of several rows is first depends on the columns that are read
    raw = bounded.tracked.raw
    limits = tuple(_limits(bounded))
    if limits:
        relation = _contributions(raw, limits)
        made.append(
            _check(question, "limits", relation, [each.exceeded for each in limits], units=True)
        )
    relation, values = _beyond(raw)
    # where units alone are counted, nothing may bound their rows
    if values and (bounded.tracked.unit is None or bounded.tracked.limits.rows is not None):
        made.append(_check(question, "bounds", relation, values, units=False))
    if not made:
        raise UnsupportedSql(
            "There is nothing to diagnose in this question: no limit of a unit can bind, and no aggregate reads a column "
            "with declared bounds as it is.",
            remedy="Ask it with query: its bias says what its intervals do not hold.",
        )
    return tuple(made)


def _check(
    question: Question, name: str, relation: Relation, values: Sequence[Value], *, units: bool
) -> Check:
    """The question of the shares of rows for which each value is 1."""
    raw = Raw(relation, (), tuple(map(Mean, values)))
    reads = (Statistic.MEAN, Statistic.SUM, Statistic.COUNT)
    items = tuple(
        Item(f"{value.name} ({read.value})", Estimate(index, read))
        for index, value in enumerate(values)
        for read in reads
    )
    text = f"{name} of: {question.text}"
    asked = replace(question, text=text, raw=raw, output=Output(items), notes=())
    return Check(asked, units, tuple(value.name for value in values))


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit of a unit: what is counted in a group, how that is summed up over groups, and the most allowed.

    ``counted`` None: the groups themselves are counted. ``squared``: squares are summed up.
    """

    name: str
    counted: Computed | None
    over: Summary
    most: int
    text: str
    squared: bool = False

    @property
    def column(self) -> Column:
        """One more than is allowed stands for anything beyond."""
        return Column(f"diagnosed.{self.name}", Integer(0, self.most + 1))

    @property
    def summed(self) -> Computed:
        """The number of one unit."""
        if self.counted is None:
            return Computed(self.column, self.over)
        column, kind = self.counted.column, self.counted.column.type
        if self.squared and isinstance(kind, Integer):
            square = Arithmetic(Operation.MULTIPLY, Field(column), Field(column))
            return Computed(
                self.column, self.over, Value(column.name, Integer(0, kind.upper_code**2), square)
            )
        return Computed(self.column, self.over, Value(column.name, kind, Field(column)))

    @property
    def exceeded(self) -> Value:
        """Whether the unit has more."""
        test = Compare(Comparison.GT, Field(self.column), Constant(self.most))
        return Value(self.text, Boolean(), Case(((test, Constant(1)),), Constant(0)))


def _limits(bounded: Bounded) -> Iterator[_Limit]:
    """The limits that can change the answer."""
    raw, tracked = bounded.tracked.raw, bounded.tracked
    if tracked.unit is None or is_single(raw.relation):
        return
    limits, rows = tracked.limits, tracked.limits.rows
    values = [each.value for each in raw.aggregates if isinstance(each, CountDistinct)]
    kept = [isinstance(each, CountUnits | CountDistinct) for each in raw.aggregates]
    linear, spread = (
        not all(kept),
        not is_one_group(raw.relation, [key.value.expression for key in raw.keys]),
    )
    if linear and rows is not None:
        yield _counted(
            "rows",
            Summary.MAXIMUM,
            rows,
            f"more than {rows} rows{' in a group' if raw.keys else ''}",
        )
    few = min((each for each in (limits.groups, limits.total) if each is not None), default=None)
    if few is not None and spread and (raw.is_open or any(kept)):
        yield _Limit("groups", None, Summary.COUNT, few, f"in more than {few} groups")
    most = limits.in_all if spread and not raw.is_open else limits.total
    if linear and most is not None and rows is not None:
        yield from _weighed(bounded, rows, most)
    for index, value in enumerate(values if rows is not None else ()):
        assert rows is not None, "asked in the line above"
        text = f"more than {rows} values of {value.name}{' in a group' if raw.keys else ''}"
        yield _counted(f"values{index}", Summary.MAXIMUM, rows, text, value)


def _weighed(bounded: Bounded, rows: int, most: int) -> Iterator[_Limit]:
    """What a unit is weighed down by: its rows in all groups, or under Gaussian noise their squares."""
    linear = [
        part.aggregate
        for part in bounded.parts
        if not isinstance(part.aggregate, CountUnits | CountDistinct)
    ]
    norms = {Norm.L1 if isinstance(each, Quantiles) else bounded.norm for each in linear}
    # what no column can hold is nobody's
    if Norm.L1 in norms and most < MAX_CODE:
        counted = Computed(Column("diagnosed.total.of", Integer(0, rows)), Summary.COUNT)
        yield _Limit(
            "total",
            counted,
            Summary.SUM,
            most,
            f"more than {most} rows in all, at most {rows} of a group",
        )
    if Norm.L2 in norms and rows * most < MAX_CODE:
        counted = Computed(Column("diagnosed.squares.of", Integer(0, rows)), Summary.COUNT)
        text = f"squares of the rows of a group, at most {rows}, above {rows * most} in all"
        yield _Limit("squares", counted, Summary.SUM, rows * most, text, squared=True)


def _counted(name: str, over: Summary, most: int, text: str, value: Value | None = None) -> _Limit:
    column = Column(f"diagnosed.{name}.of", Integer(0, most + 1))
    what = Summary.COUNT if value is None else Summary.COUNT_DISTINCT
    return _Limit(name, Computed(column, what, value), over, most, text)


def _contributions(raw: Raw, limits: Sequence[_Limit]) -> Relation:
    """One row a unit, with what the limits bound of its rows that are in some group."""
    keys = tuple(
        (Column(f"diagnosed.k{index}", key.value.type), key.value)
        for index, key in enumerate(raw.keys)
    )
    inside = Filter(raw.relation, _in_group(raw.keys, {})) if raw.keys else raw.relation
    by_group = PerUnit(
        inside, keys, tuple(each.counted for each in limits if each.counted is not None)
    )
    return PerUnit(by_group, (), tuple(each.summed for each in limits))


def _beyond(raw: Raw) -> tuple[Relation, list[Value]]:
    """The rows with a step of room, and the tests for what is beyond: values out of bounds, rows in no group."""
    columns = dict(_bounded_columns(raw))
    inside = _in_group(raw.keys, columns)
    values = []
    for column, other in columns.items():
        kind = column.type
        assert isinstance(kind, Integer | Real | Date), "only these are read wide"
        ends = (
            (Comparison.LT, kind.lower_code, "below"),
            (Comparison.GT, kind.upper_code, "above"),
        )
        known = And((inside, Not(IsNull(Field(other))))) if raw.keys else Not(IsNull(Field(other)))
        for op, code, side in ends:
            text = f"{column.name} {side} the declared {_shown(kind, code)}"
            beyond = And((known, Compare(op, Field(other), Constant(code))))
            branches = ((beyond, Constant(1)), (known, Constant(0)))
            values.append(Value(text, Boolean(), Case(branches, Constant(None))))
    named = [key.value.name for key in raw.keys if not key.missing]
    if named:
        text = f"{' or '.join(named)} missing or not declared"
        values.append(Value(text, Boolean(), Case(((inside, Constant(0)),), Constant(1))))
    return widened(raw.relation, columns), values


def _bounded_columns(raw: Raw) -> Iterator[tuple[Column, Column]]:
    """The columns of private tables whose clipped values an aggregate reads, each with its wide form."""
    declared = {column for scan in scans(raw.relation) for column in scan.columns}
    for each in raw.aggregates:
        value = None if isinstance(each, CountValues) else read_value(each)
        for leaf in leaves(value.expression) if value is not None else ():
            other = (
                wide(leaf.column) if isinstance(leaf, Field) and leaf.column in declared else None
            )
            if isinstance(leaf, Field) and other is not None:
                yield leaf.column, other


def _in_group(keys: Sequence[GroupKey], columns: Wide) -> Scalar:
    """Whether a row is in some group."""
    return And(
        tuple(_has_group(key, through_bounds(key.value.expression, columns)) for key in keys)
    )


def _has_group(key: GroupKey, read: Scalar) -> Scalar:
    known: Scalar = Not(IsNull(read)) if key.codes is None else Member(read, key.codes)
    return Or((known, IsNull(read))) if key.missing else known


def _shown(kind: Integer | Real | Date, code: int) -> str:
    return (
        kind.decode(code).isoformat() if isinstance(kind, Date) else decimal_text(code * kind.step)
    )
