# SPDX-License-Identifier: Apache-2.0
"""A bounded plan as DuckDB SQL: integers from the first line on.

Every construct here is total: no row can make it raise. Casts are TRY_CAST or of values
proved in range; rounding is written out; text is a number only if it looks like one.
Proof: emit.proof.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text
from sfumato.plan.aggregate import Aggregate, CountRows, CountUnits, CountValues, Mean, Sum, numeric
from sfumato.plan.relation import predicates, scanned
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Compare,
    Constant,
    Estimate,
    Field,
    IsNull,
    Key,
    Member,
    Not,
    Or,
    Scalar,
    leaves,
)
from sfumato.plan.status import Bounded
from sfumato.privacy.distance import Norm

# What counts as a number when the data is text; the engine and the reference share it.
NUMBER_PATTERN = r"[ \t\n\f\r]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\n\f\r]*"
DATE_PATTERN = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"

_TEXT_TYPES = ("VARCHAR", "ENUM")
_WHOLE_TYPES = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "HUGEINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT")
_FLOAT_TYPES = ("DOUBLE", "FLOAT")
_DATE_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: a FROM item of ours, and the physical type of each column."""

    sql: str
    types: Mapping[str, str]

    def family(self, column: str) -> str:
        """What kind of value it physically holds; 'null' for nothing at all, 'other' cannot be read."""
        name = self.types[column].upper().partition("(")[0].strip('"')
        for family, names in (
            ("text", _TEXT_TYPES),
            ("whole", _WHOLE_TYPES),
            ("float", _FLOAT_TYPES),
            ("date", _DATE_TYPES),
            ("decimal", ("DECIMAL",)),
            ("uuid", ("UUID",)),
            ("boolean", ("BOOLEAN",)),
            ("null", ("NULL",)),
        ):
            if name in names:
                return family
        return "other"


def quote(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text literal."""
    return "'" + value.replace("'", "''") + "'"


def statement(plan: Bounded, source: Source, sampling_key: str) -> str:
    """The SQL that gives the integers of a plan: its keys, then its parts in order.

    Guarantees:
        no row can make the statement fail
        the engine gives the integers of the reference
    """
    if plan.tracked.unit is None:
        return _of_rows(plan, source)
    return _of_units(plan, source, sampling_key)


def _of_rows(plan: Bounded, source: Source) -> str:
    """Each row is its own unit: one pass, nothing to bound."""
    sums = [term for part in plan.parts for term in _row_sums(part.aggregate)]
    columns = ", ".join([*_keys(plan), *sums])
    return f"SELECT {columns}\nFROM ({_rows(plan, source)}){_group_by(plan)}"


def _of_units(plan: Bounded, source: Source, sampling_key: str) -> str:
    """Rows to (unit, key), each clipped to its row limit; then the groups of a unit weighed."""
    limits, keys = plan.tracked.limits, _keys(plan)
    inner = [f"{_row_sum_list(part.aggregate, index)}" for index, part in enumerate(plan.parts)]
    by_unit = ", ".join(["unit", *keys])
    clipped = [
        column for index, part in enumerate(plan.parts) for column in _clipped(part.aggregate, index, limits.rows)
    ]
    size = f"least(n, {limits.rows})" if limits.rows else "n"
    window = "OVER (PARTITION BY unit)"
    order = ", ".join([_sampling_order(keys, sampling_key), *(f"{key} NULLS FIRST" for key in keys)])
    columns = [column for index, part in enumerate(plan.parts) for column in _released(part.aggregate, index, plan)]
    selected = ", ".join([*keys, *columns])
    return (
        f"WITH r AS ({_rows(plan, source)}),\n"
        f"u AS (SELECT {', '.join([by_unit, 'count(*) AS n', *inner])} FROM r GROUP BY {by_unit}),\n"
        f"c AS (SELECT {', '.join([by_unit, f'{size} AS n', *clipped])} FROM u),\n"
        f"k AS (SELECT *, count(*) {window} AS touched, sum(n) {window} AS total, "
        f"row_number() OVER (PARTITION BY unit ORDER BY {order}) AS place FROM c),\n"
        f"w AS (SELECT *, {_weight(plan)} AS weight FROM k)\n"
        f"SELECT {selected}\nFROM w{_group_by(plan)}"
    )


def _keys(plan: Bounded) -> list[str]:
    return [f"k{index}" for index in range(len(plan.tracked.raw.keys))]


def _group_by(plan: Bounded) -> str:
    keys = _keys(plan)
    return f"\nGROUP BY {', '.join(keys)}" if keys else ""


def _rows(plan: Bounded, source: Source) -> str:
    """The rows that count, with codes for keys and values, and the unit.

    Innermost each value as it is compared (a number of steps, a day, a text), then its
    code, then the tests on codes.
    """
    raw, unit = plan.tracked.raw, plan.tracked.unit
    tests = predicates(raw.relation)
    used = {leaf.column for test in tests for leaf in leaves(test) if isinstance(leaf, Field)}
    used |= set(raw.keys) | {each for aggregate in raw.aggregates for each in aggregate_columns(aggregate)}
    ordered = sorted(used, key=lambda column: column.name)
    readings = [f"{_reading(column, source)} AS {_alias(column)}" for column in ordered]
    codes = [f"{_code(column)} AS {_alias(column)}" for column in ordered]
    keep = [_test(test) for test in tests]
    keep += [f"{_alias(key)} IS NOT NULL" for key in raw.keys if key.type.missing is None]
    if unit is not None:
        readings.append(f"{text_reading(quote(unit), source.family(unit))} AS unit")
        codes.append("unit")
        keep.append("unit IS NOT NULL")
    scan = f"SELECT {', '.join(readings) or '1'} FROM {source.sql} AS {quote(scanned(raw.relation).table)}"
    coded = f"SELECT {', '.join(codes) or '1'} FROM ({scan})"
    keys = "".join(f", {_alias(key)} AS k{index}" for index, key in enumerate(raw.keys))
    where = f"\n  WHERE {' AND '.join(keep)}" if keep else ""
    return f"SELECT *{keys} FROM (\n  {coded}\n){where}"


def aggregate_columns(aggregate: Aggregate) -> list[Column]:
    """The columns that an aggregate reads."""
    return [aggregate.column] if isinstance(aggregate, CountValues | Sum | Mean) else []


def _alias(column: Column) -> str:
    return quote(f"c_{column.name}")


# --- readings and codes ------------------------------------------------------------------


def _reading(column: Column, source: Source) -> str:
    """A value as it is compared: steps from zero, a day or a text; NULL for missing."""
    raw, family = quote(column.name), source.family(column.name)
    match column.type:
        case Integer() | Real():
            reading = _steps(raw, family, column.type)
        case Date():
            reading = _guarded(f"TRY_CAST({raw} AS DATE)", raw, family, DATE_PATTERN)
        case Category() | Boolean() | Text():
            reading = text_reading(raw, family)
    markers = column.type.missing
    if not markers:
        return reading
    listed = ", ".join(text(marker) for marker in markers)
    return f"CASE WHEN {text_reading(raw, family)} NOT IN ({listed}) THEN {reading} END"


def _steps(raw: str, family: str, kind: Integer | Real) -> str:
    """value / step, correctly rounded and so monotone; NaN is missing."""
    number = _guarded(f"TRY_CAST({raw} AS DOUBLE)", raw, family, NUMBER_PATTERN)
    return f"nullif({number}, 'nan'::DOUBLE) / {float(kind.step)!r}::DOUBLE"


def _guarded(cast: str, raw: str, family: str, pattern: str) -> str:
    """A cast of text only where the text has the stated form."""
    return f"CASE WHEN regexp_full_match({raw}, {text(pattern)}) THEN {cast} END" if family == "text" else cast


def _code(column: Column) -> str:
    """The code of a reading; NULL for what is missing or not declared."""
    value = _alias(column)
    match column.type:
        case Integer() | Real() as kind:
            return _clipped_code(value, str(kind.lower_code), str(kind.upper_code), kind, _half_even(value))
        case Date() as kind:
            low, high = (f"DATE '{kind.decode(code)}'" for code in (kind.lower_code, kind.upper_code))
            return _clipped_code(value, low, high, kind, f"date_diff('day', DATE '1970-01-01', {value})")
        case Category() | Boolean() as kind:
            cases = " ".join(f"WHEN {text(listed)} THEN {code}" for listed, code in kind.texts())
            return f"CASE {value} {cases} END"
        case Text():
            return value


def _clipped_code(value: str, low: str, high: str, kind: Integer | Real | Date, inside: str) -> str:
    return (
        f"CASE WHEN {value} <= {low} THEN {kind.lower_code} WHEN {value} >= {high} THEN {kind.upper_code} "
        f"WHEN {value} IS NOT NULL THEN {inside} END"
    )


def _half_even(y: str) -> str:
    """Rounds half to even, written out; |y| <= 2^52, so every step is exact.

    TRY_CAST although the value is in range: an optimiser may lift it out of its CASE.
    """
    floor, rest = f"TRY_CAST(floor({y}) AS BIGINT)", f"({y} - floor({y}))"
    return f"{floor} + CASE WHEN {rest} > 0.5 OR ({rest} = 0.5 AND {floor} % 2 <> 0) THEN 1 ELSE 0 END"


def text_reading(raw: str, family: str) -> str:
    """The text by which a value is compared: whole floats without a fraction."""
    if family == "text":
        return raw
    if family == "float":
        whole = f"CAST(TRY_CAST({raw} AS BIGINT) AS VARCHAR)"
        return f"CASE WHEN TRY_CAST({raw} AS BIGINT) = {raw} THEN {whole} ELSE TRY_CAST({raw} AS VARCHAR) END"
    if family == "decimal":
        # never through a cast back to the type, which a rounded value may not fit
        return f"regexp_replace(TRY_CAST({raw} AS VARCHAR), '\\.0+$', '')"
    if family == "date":
        # DuckDB cannot print every timestamp that it can hold; these it can
        sane = f"TRY_CAST({raw} AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return f"CASE WHEN {sane} THEN TRY_CAST({raw} AS VARCHAR) END"
    return f"TRY_CAST({raw} AS VARCHAR)"


# --- tests -----------------------------------------------------------------------------


def _test(expression: Scalar) -> str:
    """A predicate over codes."""
    match expression:
        case Field(column):
            return _alias(column)
        case Constant(value):
            return _literal(value)
        case IsNull(operand):
            return f"({_test(operand)} IS NULL)"
        case Not(operand):
            return f"(NOT {_test(operand)})"
        case And(operands):
            return "(" + " AND ".join(_test(each) for each in operands) + ")"
        case Or(operands):
            return "(" + " OR ".join(_test(each) for each in operands) + ")"
        case Member(operand, values):
            if not values:
                return f"(CASE WHEN {_test(operand)} IS NOT NULL THEN FALSE END)"
            return f"({_test(operand)} IN ({', '.join(_literal(value) for value in values)}))"
        case Compare(op, left, right):
            return f"({_test(left)} {op.value} {_test(right)})"
        case Arithmetic(op, left, right):
            return f"({_test(left)} {op.value} {_test(right)})"
        case Key() | Estimate():
            raise TypeError("a predicate over rows reads columns only")


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return text(value) if isinstance(value, str) else f"{value}::BIGINT"


# --- integers of rows --------------------------------------------------------------------


def _row_sums(aggregate: Aggregate) -> list[str]:
    """The integers of a group, summed over its rows; zero for no rows."""
    match aggregate:
        case CountRows() | CountUnits():
            return ["count(*)"]
        case CountValues(column):
            return [f"count({_alias(column)})"]
        case Sum(column):
            return [f"coalesce(sum({_alias(column)}::HUGEINT), 0)"]
        case Mean(column):
            codes, value = numeric(column), f"{_alias(column)}::HUGEINT"
            return [
                f"coalesce(sum({value} - ({codes.lower_code})), 0)",
                f"coalesce(sum({codes.upper_code} - {value}), 0)",
            ]


def _row_sum_list(aggregate: Aggregate, index: int) -> str:
    """The same, named; a mean also needs the number of its values."""
    named = [f"{term} AS {name}" for term, name in zip(_row_sums(aggregate), _names(aggregate, index), strict=True)]
    if isinstance(aggregate, Mean):
        named.append(f"count({_alias(aggregate.column)}) AS v{index}")
    return ", ".join(named)


def _names(aggregate: Aggregate, index: int) -> list[str]:
    return [f"a{index}", f"b{index}"] if isinstance(aggregate, Mean) else [f"a{index}"]


# --- bounding of units ---------------------------------------------------------------------


def _clipped(aggregate: Aggregate, index: int, rows: int | None) -> list[str]:
    """A unit's integers in a group, as if it had at most ``rows`` rows there."""
    name = f"a{index}"
    match aggregate:
        case CountUnits():
            return [f"1 AS {name}"]
        case _ if rows is None:
            return _names(aggregate, index)
        case CountRows() | CountValues():
            return [f"least({name}, {rows}) AS {name}"]
        case Sum(column):
            codes = numeric(column)
            low, high = rows * min(codes.lower_code, 0), rows * max(codes.upper_code, 0)
            return [f"CASE WHEN {name} < {low} THEN {low} WHEN {name} > {high} THEN {high} ELSE {name} END AS {name}"]
        case Mean():
            return [
                f"CASE WHEN v{index} > {rows} THEN ({each} * {rows}) // nullif(v{index}, 0) ELSE {each} END AS {each}"
                for each in _names(aggregate, index)
            ]


def _weight(plan: Bounded) -> str:
    """floor(refinement * weight), weight = min(1, L0/touched, T/total), or its root (RULES 13)."""
    limits, fine = plan.tracked.limits, plan.refinement
    if fine == 1:
        return "1"
    square = plan.norm is Norm.L2
    scale = fine * fine if square else fine
    terms = [str(scale)]
    terms += [f"({scale}::HUGEINT * {limits.groups}) // touched"] if limits.groups else []
    terms += [f"({scale}::HUGEINT * {limits.total}) // total"] if limits.total else []
    smallest = f"least({', '.join(terms)})"
    # refinement^2 <= 2^40, where the floor of a correctly rounded root is the integer root
    return f"CAST(floor(sqrt(CAST({smallest} AS DOUBLE))) AS BIGINT)" if square else smallest


def _released(aggregate: Aggregate, index: int, plan: Bounded) -> list[str]:
    if isinstance(aggregate, CountUnits):
        kept = kept_groups(plan)
        seen = f"CASE WHEN place <= {kept} THEN {plan.refinement} ELSE 0 END" if kept else str(plan.refinement)
        return [f"coalesce(sum({seen}::HUGEINT), 0)"]
    return [f"coalesce(sum({name}::HUGEINT * weight), 0)" for name in _names(aggregate, index)]


def kept_groups(plan: Bounded) -> int | None:
    """How many groups of a unit a distinct count keeps; None: all."""
    limits = plan.tracked.limits
    return min((each for each in (limits.groups, limits.total) if each is not None), default=None)


def _sampling_order(keys: list[str], sampling_key: str) -> str:
    """A keyed hash that every engine computes alike (md5 of text)."""
    parts = " || '|' || ".join(
        [text(sampling_key), *(f"coalesce(CAST({key} AS VARCHAR), 'N')" for key in keys), "unit"]
    )
    return f"md5({parts})"
