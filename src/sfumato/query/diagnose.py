# SPDX-License-Identifier: Apache-2.0
"""Builds the questions that estimate how much clipping and bounding change an answer.

``Session.diagnose`` asks them, and ``diagnosis`` reads their answers. There are at most two,
derived from the plan of the diagnosed question. They go through the same passes, proof and ledger
as any question:

* One row for each unit: does the unit exceed a limit? A unit changes each of these counts by at
  most one, so no limit is needed to ask.
* One row for each row: is a value beyond its declared bounds, is the row in no group? Rows of a
  unit beyond its row limit weigh less, as they do in the answer itself.

The number of rows beyond the limits is not asked: one unit could have any number of them, so this
number has no bounded sensitivity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sfumato.errors import UnsupportedSql
from sfumato.exact.rational import decimal_text
from sfumato.metadata.coded import MAX_CODE
from sfumato.metadata.column import Boolean, Column, Date, Integer, Real
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.aggregate import (
    CountDistinct,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
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
    """A charged question of ``diagnose`` that estimates shares: of units if ``units`` is true, else
    of rows.

    ``found`` has a text for each aggregate: what is true of that share, such as "more than 6 rows".
    """

    question: Question
    units: bool
    found: tuple[str, ...]


def checks(question: Question, bounded: Bounded) -> tuple[Check, ...]:
    """Returns the questions that estimate how much clipping and bounding change an answer.

    Raises:
        UnsupportedSql: no limit can change the answer, and no aggregate reads a bounded column.
    """
    checks = []
    # the pruned plan: which of several rows comes first depends on the columns that are read
    raw = bounded.tracked.raw
    limits = tuple(_limits(bounded))
    if limits:
        relation = _contributions(raw, limits)
        exceeded = [limit.exceeded for limit in limits]
        checks.append(_check(question, "limits", relation, exceeded, units=True))
    relation, values = _rows_out_of_bounds(raw)
    # a question that only counts units may have no limit of rows
    if values and (bounded.tracked.unit is None or bounded.tracked.limits.rows is not None):
        checks.append(_check(question, "bounds", relation, values, units=False))
    if not checks:
        raise UnsupportedSql(
            "There is nothing to diagnose in this question: no limit of a unit can bind, "
            "and no aggregate reads a column with declared bounds as it is.",
            remedy="Ask it with query: its bias says what its intervals do not hold.",
        )
    return tuple(checks)


def _check(
    question: Question,
    name: str,
    relation: Relation,
    values: Sequence[Value],
    *,
    units: bool,
) -> Check:
    """A question that counts for which share of the rows each of the values is 1."""
    raw = Raw(relation, (), tuple(map(Mean, values)))
    items = []
    for index, value in enumerate(values):
        for read in (Statistic.MEAN, Statistic.SUM, Statistic.COUNT):
            items.append(Item(f"{value.name} ({read.value})", Estimate(index, read)))
    text = f"{name} of: {question.text}"
    share_question = replace(
        question,
        text=text,
        raw=raw,
        output=Output(tuple(items)),
        notes=(),
    )
    return Check(share_question, units, tuple(value.name for value in values))


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit of a unit whose effect is diagnosed.

    ``counted`` is computed in each group of the unit, and ``over`` summarises these numbers, or
    their squares if ``squared``. If ``counted`` is None, ``over`` counts the groups themselves.
    ``most`` is the limit, ``text`` the words for a unit that exceeds it.
    """

    name: str
    counted: Computed | None
    over: Summary
    most: int
    text: str
    squared: bool = False

    @property
    def column(self) -> Column:
        """The column of a unit's number; the code ``most`` + 1 stands for every larger number."""
        return Column(f"diagnosed.{self.name}", Integer(0, self.most + 1))

    @property
    def summed(self) -> Computed:
        """The summary that computes the number of a unit that the limit bounds."""
        if self.counted is None:
            return Computed(self.column, self.over)
        column = self.counted.column
        kind = self.counted.column.type
        field = Field(column)
        if self.squared and isinstance(kind, Integer):
            square = Arithmetic(Operation.MULTIPLY, field, field)
            value = Value(column.name, Integer(0, kind.upper_code**2), square)
        else:
            value = Value(column.name, kind, field)
        return Computed(self.column, self.over, value)

    @property
    def exceeded(self) -> Value:
        """1 if the unit exceeds the limit, else 0."""
        test = Compare(Comparison.GT, Field(self.column), Constant(self.most))
        branch = test, Constant(1)
        return Value(self.text, Boolean(), Case((branch,), Constant(0)))


def _limits(bounded: Bounded) -> Iterator[_Limit]:
    """The limits that can change the answer."""
    raw = bounded.tracked.raw
    tracked = bounded.tracked
    if tracked.unit is None or is_single(raw.relation):
        return
    limits = tracked.limits
    rows = tracked.limits.rows
    are_distinct = [
        isinstance(aggregate, CountUnits | CountDistinct) for aggregate in raw.aggregates
    ]
    linear = not all(are_distinct)
    spread = not is_one_group(raw.relation, [key.value.expression for key in raw.keys])
    where = " in a group" if raw.keys else ""
    if linear and rows is not None:
        yield _row_limit("rows", rows, f"more than {rows} rows{where}")
    few = limits.in_groups
    if few is not None and spread and (raw.is_open or any(are_distinct)):
        yield _Limit("groups", None, Summary.COUNT, few, f"in more than {few} groups")
    most = limits.in_all if spread and not raw.is_open else limits.total
    if linear and most is not None and rows is not None:
        yield from _weight_limits(bounded, rows, most)
    if rows is not None:
        distinct = [item for item in raw.aggregates if isinstance(item, CountDistinct)]
        for index, aggregate in enumerate(distinct):
            text = f"more than {rows} values of {aggregate.value.name}{where}"
            yield _row_limit(f"values{index}", rows, text, aggregate.value)


def _weight_limits(bounded: Bounded, rows: int, most: int) -> Iterator[_Limit]:
    """Yields the limits beyond which the rows of a unit get a weight below 1.

    They bound its rows in all groups, or, under Gaussian noise, the sum of their squares by group.
    """
    norms = set()
    for part in bounded.parts:
        if isinstance(part.aggregate, Quantiles):
            norms.add(Norm.L1)
        elif not isinstance(part.aggregate, CountUnits | CountDistinct):
            norms.add(bounded.norm)
    # no column can hold a number above MAX_CODE, so no unit exceeds such a limit
    if Norm.L1 in norms and most < MAX_CODE:
        column = Column("diagnosed.total.of", Integer(0, rows))
        counted = Computed(column, Summary.COUNT)
        text = f"more than {most} rows in all, at most {rows} of a group"
        yield _Limit("total", counted, Summary.SUM, most, text)
    if Norm.L2 in norms and rows * most < MAX_CODE:
        column = Column("diagnosed.squares.of", Integer(0, rows))
        counted = Computed(column, Summary.COUNT)
        text = f"squares of the rows of a group, at most {rows}, above {rows * most} in all"
        yield _Limit("squares", counted, Summary.SUM, rows * most, text, squared=True)


def _row_limit(
    name: str,
    most: int,
    text: str,
    value: Value | None = None,
) -> _Limit:
    """A limit of a unit's rows in one group, or of its distinct values there."""
    column = Column(f"diagnosed.{name}.of", Integer(0, most + 1))
    what = Summary.COUNT_DISTINCT
    if value is None:
        what = Summary.COUNT
    counted = Computed(column, what, value)
    return _Limit(name, counted, Summary.MAXIMUM, most, text)


def _contributions(raw: Raw, limits: Sequence[_Limit]) -> Relation:
    """A relation with a row for each unit and the numbers that the limits bound.

    Rows that are in no group are dropped.
    """
    keys = []
    for index, key in enumerate(raw.keys):
        column = Column(f"diagnosed.k{index}", key.value.type)
        keys.append((column, key.value))
    inside = raw.relation
    if raw.keys:
        inside = Filter(inside, _in_group(raw.keys, {}))
    counted = [limit.counted for limit in limits if limit.counted is not None]
    summed = [limit.summed for limit in limits]
    by_group = PerUnit(inside, tuple(keys), tuple(counted))
    return PerUnit(by_group, (), tuple(summed))


def _rows_out_of_bounds(raw: Raw) -> tuple[Relation, list[Value]]:
    """The rows with wide columns, and the tests for values out of bounds and for rows in no group."""
    columns = dict(_bounded_columns(raw))
    inside = _in_group(raw.keys, columns)
    values: list[Value] = []
    for column, wider in columns.items():
        known: Scalar = Not(IsNull(Field(wider)))
        if raw.keys:
            known = And((inside, known))
        values += _out_of_bounds(column, wider, known)
    named = [key.value.name for key in raw.keys if not key.missing]
    if named:
        text = f"{' or '.join(named)} missing or not declared"
        branch = inside, Constant(0)
        values.append(Value(text, Boolean(), Case((branch,), Constant(1))))
    return widened(raw.relation, columns), values


def _out_of_bounds(column: Column, wider: Column, known: Scalar) -> Iterator[Value]:
    """Two tests: whether a value is below, and above, its declared bounds; NULL unless ``known``."""
    kind = column.type
    assert isinstance(kind, Integer | Real | Date | Timestamp), "only these are widened"
    ends = (
        (Comparison.LT, kind.lower_code, "below"),
        (Comparison.GT, kind.upper_code, "above"),
    )
    for op, code, side in ends:
        text = f"{column.name} {side} the declared {_bound_text(kind, code)}"
        beyond = And((known, Compare(op, Field(wider), Constant(code))))
        branches = ((beyond, Constant(1)), (known, Constant(0)))
        yield Value(text, Boolean(), Case(branches, Constant(None)))


def _bounded_columns(raw: Raw) -> Iterator[tuple[Column, Column]]:
    """The scanned columns whose clipped values an aggregate reads, each with its wide column."""
    declared = {column for scan in scans(raw.relation) for column in scan.columns}
    for aggregate in raw.aggregates:
        value = aggregate.read
        if value is None or isinstance(aggregate, CountValues):
            continue
        for leaf in leaves(value.expression):
            if isinstance(leaf, Field) and leaf.column in declared:
                wider = wide(leaf.column)
                if wider is not None:
                    yield leaf.column, wider


def _in_group(keys: Sequence[GroupKey], columns: Wide) -> Scalar:
    """The test whether a row belongs to a group."""
    tests = []
    for key in keys:
        tests.append(_has_group(key, through_bounds(key.value.expression, columns)))
    return And(tuple(tests))


def _has_group(key: GroupKey, read: Scalar) -> Scalar:
    """The test whether the value of one key of a row belongs to a group."""
    known: Scalar = Not(IsNull(read))
    if key.codes is not None:
        known = Member(read, key.codes)
    if key.missing:
        return Or((known, IsNull(read)))
    return known


def _bound_text(kind: Integer | Real | Date | Timestamp, code: int) -> str:
    """A code as a number, or as an ISO 8601 date or timestamp."""
    if isinstance(kind, Date | Timestamp):
        return str(kind.decode(code))
    return decimal_text(code * kind.step)
