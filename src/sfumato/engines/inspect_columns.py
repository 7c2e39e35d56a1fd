# SPDX-License-Identifier: Apache-2.0
"""Counts how the stored values of a column are read: for the owner, not private.

``query.data_check`` reports these counts. They use the same SQL expressions as questions
(``reading``, ``codes``, ``ends``), so a value that counts as unread here is missing in a question.
No question uses this module.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from sfumato.engines import sql_tree as sql
from sfumato.engines.declared import owner_columns
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.expression import alias
from sfumato.engines.moment_sql import seconds
from sfumato.engines.relation import Tables, codes
from sfumato.engines.result_rows import Rows
from sfumato.engines.value_forms import LONGEST, date_form, leading, masked
from sfumato.engines.value_sql import (
    Source,
    column_text,
    ends,
    reading,
    real,
    stored,
)
from sfumato.errors import unknown
from sfumato.metadata.column import (
    LATTICE_STEPS,
    Array,
    Boolean,
    Category,
    Column,
    ColumnType,
    Date,
    Integer,
    Real,
    Text,
)
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp
from sfumato.plan.relation import Scan

# How many forms of values that were not read are shown.
FORMS = 3

_CODE = sql.Column("code")
_READ = sql.Column("reading")
_STRING = sql.Column("string")
_STORED = sql.Column("stored")
_ELEMENT = sql.Column("element")
_EMPTY = sql.Column("is_empty")
_MARKED = sql.Column("is_marked")
_ROWS = sql.Column("n")
_TOTAL = sql.Column("total")
_FORM = sql.Column("form")


@dataclass(frozen=True, slots=True)
class Form:
    """The masked form of some values that could not be read, and how many values have it.

    >>> Form("9,999", 12).shown
    '9,999'
    """

    shown: str
    count: int


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """How the values of a column are read; a share is a count over ``rows``.

    Attributes:
        column: the name and the declared type.
        rows: all rows of the table.
        empty: rows without a value (NULL, an empty field of a CSV).
        marked: rows whose value is declared by ``missing=``.
        read: rows whose value was read.
        below, above: rows whose value was read and lies beyond a bound, to which it is moved.
        below_clip, above_clip: rows whose value was read and lies beyond the declared clip; None
            without a clip that is a number.
        forms: the most frequent forms of the values that were not read, at most three.
        never: the labels of the declared values that no row has.
        rounded: rows whose value was read, lies within the bounds and between two steps; None
            for steps as fine as ``Real`` derives by itself, and for a type without steps.

    >>> facts = ColumnFacts(Column("age", Integer(0, 99)), rows=9, empty=1, marked=0, read=6,
    ...                     below=0, above=1)
    >>> facts.missing, facts.unread, facts.clipped
    (1, 2, 1)
    """

    column: Column
    rows: int
    empty: int
    marked: int
    read: int
    below: int
    above: int
    below_clip: int | None = None
    above_clip: int | None = None
    forms: tuple[Form, ...] = ()
    never: tuple[str, ...] = ()
    rounded: int | None = None

    @property
    def missing(self) -> int:
        """Rows without a value: empty, or with a declared missing marker."""
        return self.empty + self.marked

    @property
    def unread(self) -> int:
        """Rows with a value that could not be read; questions treat them as missing."""
        return self.rows - self.missing - self.read

    @property
    def clipped(self) -> int:
        """Rows whose value is beyond a bound and is moved to it."""
        return self.below + self.above

    @property
    def beyond_clip(self) -> int | None:
        """Rows whose value is beyond the declared clip; None if the column has no clip."""
        if self.below_clip is None or self.above_clip is None:
            return None
        return self.below_clip + self.above_clip


def inspect_column(engine: DuckDB, table: str, column: Column) -> ColumnFacts:
    """Counts how the values of one declared column are read.

    Guarantees:
        the values that are read are those that a question counts

    Raises:
        InvalidSource: the column cannot be read to its end.
    """

    def ask(query: Callable[[sql.Query, ColumnType], sql.Query]) -> Rows:
        return engine.unprotected(
            {table: {column.name}},
            lambda sources: printed(query(_values(table, column, sources), column.type)),
        )

    (counts,) = ask(_counts)
    facts = ColumnFacts(column, *counts)
    if _has_clip(column.type):
        ((below, above),) = ask(_clip_counts)
        facts = replace(facts, below_clip=below, above_clip=above)
    if _has_coarse_steps(column.type):
        ((rounded,),) = ask(_rounded_count)
        facts = replace(facts, rounded=rounded)
    if facts.unread:
        found = ask(_form_counts)
        facts = replace(facts, forms=_forms(column.type, found))
    if isinstance(column.type, Category | Boolean):
        codes_found = {code for (code,) in ask(_codes_found)}
        facts = replace(facts, never=_never(column.type, codes_found))
    return facts


def read_through(engine: DuckDB, tables: Mapping[str, Table]) -> None:
    """Reads every declared column of the tables once, so that damaged files are found for the data
    owner before any question.

    Raises:
        InvalidSource: a column cannot be read to its end.
    """
    for name, table in tables.items():
        names = [*table.columns, *owner_columns(tables, name)]
        for column in dict.fromkeys(names):
            query = partial(_whole_column, name, column)
            engine.unprotected({name: {column}}, query)


def _whole_column(table: str, column: str, sources: Mapping[str, Source]) -> str:
    """Returns a statement that reads every value of a column as a string."""
    source = sources[table]
    length = sql.call("length", column_text(column, source))
    counted = sql.Select(
        (sql.aggregate("count"),),
        sql.Item(sql.Table(source.sql)),
        where=length < 0,
    )
    return printed(counted)


def _values(table: str, column: Column, sources: Mapping[str, Source]) -> sql.Query:
    """Selects for each value what a question reads, its code, its string, and if it is missing."""
    source = sources[table]
    kind = column.type
    shown = alias(column)
    inner = sql.Select(
        (
            reading(column.name, kind, source).named(shown),
            column_text(column.name, source).named(_STRING),
            stored(column.name).is_null.named(_EMPTY),
            stored(column.name).named(_STORED),
        ),
        sql.Item(sql.Table(source.sql)),
    )
    tables = Tables(sources, numbered=False)
    (code,), joins = codes(Scan(table, "", (column,)), tables)
    string = replace(_STRING, table="s")
    # TRY: nothing is concluded from the statistics of a choice (value_sql.proof.md)
    read: sql.Expression = sql.Opaque(replace(shown, table="s"))
    if isinstance(kind, Timestamp):
        read = seconds(kind, read)
    elif isinstance(kind, Array):
        number = sql.TryCast(_ELEMENT, sql.SqlType.DOUBLE) / real(float(kind.step))
        read = sql.Each(replace(_STORED, table="s"), _ELEMENT.name, number)
    items = (
        code.value.named(_CODE),
        read.named(_READ),
        string,
        replace(_EMPTY, table="s"),
        _is_marked(kind, string).named(_MARKED),
    )
    return sql.Select(items, sql.Item(inner, "s"), joins)


def _is_marked(kind: ColumnType, string: sql.Expression) -> sql.Expression:
    """Tests whether a string is declared as missing."""
    if not kind.missing:
        return sql.FALSE
    markers = tuple(map(sql.Constant, kind.missing))
    is_one = sql.In(string, markers)
    return sql.call("coalesce", is_one, sql.FALSE)


def _counts(values: sql.Query, kind: ColumnType) -> sql.Query:
    """Counts all rows, and those that are empty, marked, read, below and above the bounds."""
    below, above = _outside(kind)
    items = (
        sql.aggregate("count"),
        _number_of(_EMPTY),
        _number_of(_MARKED),
        _number_of(_CODE.is_present),
        _number_of(below),
        _number_of(above),
    )
    return sql.Select(items, sql.Item(values))


def _has_clip(kind: ColumnType) -> bool:
    """Whether a clip is declared as a number."""
    return isinstance(kind, Integer | Real) and isinstance(kind.clip, tuple)


def _clip_counts(values: sql.Query, kind: ColumnType) -> sql.Query:
    """Counts the rows below and above the clip, by the codes that a sum would clip."""
    assert isinstance(kind, Integer | Real), "only numbers have a clip"
    assert isinstance(kind.clip, tuple), "asked of a clip that is a number"
    low, high = map(sql.Constant, kind.clip)
    items = _number_of(low > _CODE), _number_of(high < _CODE)
    return sql.Select(items, sql.Item(values))


def _has_coarse_steps(kind: ColumnType) -> bool:
    """Whether a type has steps that are not as fine as those that ``Real`` derives by itself."""
    if isinstance(kind, Array):
        return _has_coarse_steps(kind.element)
    if isinstance(kind, Real):
        return kind.upper_code - kind.lower_code < LATTICE_STEPS
    return isinstance(kind, Integer)


def _rounded_count(values: sql.Query, kind: ColumnType) -> sql.Query:
    """Counts the rows whose value, or a number of whose list, lies within the bounds and between
    two steps.
    """
    if isinstance(kind, Array):
        is_rounded = _is_between(_ELEMENT, sql.call("floor", _ELEMENT), kind.element)
        numbers = sql.Each(_READ, _ELEMENT.name, sql.Case(((is_rounded, sql.Constant(1)),)))
        has_one = sql.call("list_aggregate", numbers, sql.Constant("count")) > sql.Constant(0)
        test: sql.Expression = sql.Logic("AND", (_CODE.is_present, has_one))
    else:
        assert isinstance(kind, Integer | Real), "only numbers are rounded"
        test = _is_between(_READ, _CODE, kind)
    return sql.Select((_number_of(test),), sql.Item(values))


def _is_between(
    number: sql.Expression, whole: sql.Expression, kind: Integer | Real
) -> sql.Expression:
    """Tests whether a number in steps lies within the bounds, and is not the ``whole`` number."""
    low, high = ends(kind)
    return sql.Logic("AND", (low <= number, high >= number, sql.Not(number.equals(whole))))


def _number_of(test: sql.Expression) -> sql.Aggregate:
    """Counts the rows that pass a test."""
    return sql.Aggregate("count", (sql.Star(),), where=test)


def _outside(kind: ColumnType) -> tuple[sql.Expression, sql.Expression]:
    """Tests whether a value that was read lies below or above its declared bounds.

    The only place that knows the bounds: ``ends``, by which ``code`` clips.
    """
    match kind:
        case Integer() | Real() | Date() | Timestamp():
            low, high = ends(kind)
        case Category() | Boolean() | Text() | Array():
            return sql.FALSE, sql.FALSE
        case _:
            raise unknown(kind)
    is_below = low > _READ
    # NaN is above every number, and has no code
    is_above = sql.Logic(
        "AND",
        (_CODE.is_present, high < _READ),
    )
    return is_below, is_above


def _form_counts(values: sql.Query, kind: ColumnType) -> sql.Query:
    """Counts the most frequent forms of the values that were not read."""
    first, second = leading(_STRING)
    items = (
        masked(_STRING).named(_FORM),
        sql.aggregate("sum", _ROWS).named(_TOTAL),
        sql.aggregate("max", first).named("first_number"),
        sql.aggregate("max", second).named("second_number"),
    )
    is_unread = (
        sql.Not(_EMPTY),
        sql.Not(_MARKED),
        _CODE.is_null,
    )
    # each string is masked once, however many rows have it
    beginning = sql.call("substr", _STRING, 1, LONGEST + 1)
    strings = sql.Select(
        (beginning.named(_STRING), sql.aggregate("count").named(_ROWS)),
        sql.Item(values),
        where=sql.conjunction(is_unread),
        group=(beginning,),
    )
    forms = sql.Select(items, sql.Item(strings), group=(_FORM,))
    order = (
        sql.Ordered(_TOTAL, "DESC"),
        sql.Ordered(_FORM),
    )
    place = sql.Window(sql.Aggregate("row_number"), (), order)
    return sql.Select(
        (sql.Star(),),
        sql.Item(forms),
        qualify=place <= FORMS,
    )


def _forms(kind: ColumnType, rows: Rows) -> tuple[Form, ...]:
    """Returns forms, the most frequent one first; those of a date name days, months and years."""
    forms = []
    for form, count, first, second in rows:
        shown = str(form)
        if isinstance(kind, Date | Timestamp):
            shown = date_form(shown, first, second)
        forms.append(Form(shown, int(count)))
    forms.sort(key=lambda form: (-form.count, form.shown))
    return tuple(forms)


def _codes_found(values: sql.Query, kind: ColumnType) -> sql.Query:
    """Selects each code that a row has, once."""
    return sql.Select(
        (_CODE,),
        sql.Item(values),
        where=_CODE.is_present,
        group=(_CODE,),
    )


def _never(kind: Category | Boolean, codes_seen: Collection[object]) -> tuple[str, ...]:
    """Returns the labels of the declared values that no row has."""
    labels = []
    for code in range(kind.size):
        if code not in codes_seen:
            labels.append(str(kind.decode(code)))
    return tuple(labels)
