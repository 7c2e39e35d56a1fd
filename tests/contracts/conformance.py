# SPDX-License-Identifier: Apache-2.0
"""What every engine owes: the integers of the reference, bit for bit. Inherit, and give ``open_engine``.

An engine version is trusted once it has passed; no other is used.
"""

from collections.abc import Mapping
from contextlib import closing
from fractions import Fraction
from typing import Protocol

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.base import Engine, Exact
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Column, Date, Integer
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, day
from sfumato.plan.relation import Computed, Filter, PerUnit, PublicJoin, Semi, Sort, Summary, Union, UnitJoin, first
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DatePart,
    DateTrunc,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Scalar,
)
from sfumato.plan.span import span
from sfumato.plan.status import Bounded
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from tests.contracts import plans
from tests.contracts.plans import FINE, by, content, plan, read, scan

MEDIAN = (Fraction(1, 2),)
KEY = "key"


class Opened(Engine, Protocol):
    """An engine that can be closed."""

    def close(self) -> None: ...


def reference(tables: Mapping[str, sf.Table]) -> Reference:
    """The oracle over the same Arrow tables."""
    return Reference({name: table.source.to_pylist() for name, table in tables.items()})


# --- examples: one for each thing that an engine can get wrong -------------------------------

PEOPLE, STAYS, NOTES, DAYS = (scan(name, f"{name}.") for name in ("people", "stays", "notes", "days"))
N = read(PEOPLE, "people.n")


def person(who: str | None, *values: object, name: str = "n") -> plans.Rows:
    """Rows of one person."""
    return [{"who": who, name: value} for value in values]


def key_of(expression: Scalar, low: int, high: int, *, missing: bool = True) -> GroupKey:
    """A key of all codes of an expression."""
    return GroupKey(Value("k", Integer(low, high), expression), tuple(range(low, high + 1)), missing)


TEXTS = read(PEOPLE, "people.t")
FIVE = content(
    people=[
        *(
            {"who": who, "c": letter, "n": number}
            for who in "pqr"
            for letter, number in zip("abab", "1234", strict=True)
        ),
        *({"who": "s", "c": letter, "n": "-3"} for letter in ("a", "b", "空", "", None)),
        *({"who": "t", "c": "a", "n": number} for number in ("N", "4", "4", "4", "-3")),
    ]
)
WORDS = content(people=[{"who": who, "t": word} for who in "pqrs" for word in ("x", "y", "z", "N", "a|b", None)])
LINKED = content(
    people=person("p", "1", "2") + person("q", "3") + person("z", "4") + person(None, "4"),
    stays=[
        *({"patient": who, "id": "1", "n": "1"} for who in ("q", "p")),
        {"patient": "p", "id": "2", "n": "2"},
        {"patient": None, "id": "3"},
        {"patient": "nobody", "id": "4"},
    ],
    notes=[{"stay": stay, "n": "1"} for stay in ("1", "2", "3", "4", "5", None)],
)
DRUGS = content(
    people=person("p", "0", "1", "2", "N"),
    drugs=[{"n": "0", "x": 1.0}, {"n": "0", "x": 0.0}, {"n": "0"}, {"n": "1", "x": 2.0}, {"n": None, "x": 1.0}],
)
_DRUGS = scan("drugs", "d.")


def _joined(*, outer: bool) -> PublicJoin:
    drugs = cut(_DRUGS, "d.n", "d.x")
    return PublicJoin(PEOPLE, drugs, N.expression, drugs.columns[0], outer)


def cut(source: plans.Scan, *names: str) -> plans.Scan:
    """A scan of some columns."""
    kept = tuple(column for column in source.columns if column.name in names)
    return plans.Scan(source.table, source.prefix, kept, source.owner)


def _per_unit(summary: Summary, *keys: tuple[Column, Value]) -> PerUnit:
    value = None if summary is Summary.COUNT else N
    return PerUnit(PEOPLE, keys, (Computed(Column("total", Integer(-2, 5)), summary, value),))


def _total(relation: PerUnit) -> Value:
    return read(relation, "total")


def _first(*order: Sort) -> Filter:
    return first(PEOPLE, order, tuple(Field(column) for column in PEOPLE.columns), "rank")


_FIRST_LETTERS = tuple(_first(Sort(N.expression, descending)) for descending in (False, True))
_LETTERS = by(PEOPLE, "people.c")
_OPEN = by(PEOPLE, "people.t", missing=True)
_ALL = (CountRows(), CountValues(N), Sum(N), Mean(N), Variance(N), CountUnits(), CountDistinct(N), Quantiles(N, MEDIAN))
_BIG = read(PEOPLE, "people.Big")

EXAMPLES: dict[str, tuple[Bounded, dict[str, plans.Rows]]] = {
    "clipped rows": (plan(PEOPLE, *_ALL, limits=(2, None, None)), FIVE),
    "weights in L1": (plan(PEOPLE, *_ALL, keys=(_LETTERS,), limits=(2, 1, None), fine=FINE), FIVE),
    "weights in L2": (plan(PEOPLE, *_ALL, keys=(_LETTERS,), limits=(2, 1, 3), norm=Norm.L2, fine=FINE), FIVE),
    "a total": (
        plan(PEOPLE, *_ALL, keys=(by(PEOPLE, "people.c", missing=True),), limits=(None, None, 3), fine=FINE),
        FIVE,
    ),
    "open keys": (
        plan(PEOPLE, CountUnits(), CountRows(), Quantiles(N, MEDIAN), keys=(_OPEN,), limits=(1, 3, 2), fine=FINE),
        WORDS,
    ),
    "a tie of two groups": (
        plan(PEOPLE, CountUnits(), keys=(_OPEN,), limits=(None, 1, None)),
        content(people=person("p", "N", None, name="t")),
    ),
    "first groups": (plan(PEOPLE, CountUnits(), keys=(_OPEN,), limits=(None, 2, None)), WORDS),
    "distinct values": (plan(PEOPLE, CountDistinct(TEXTS), limits=(2, None, None)), WORDS),
    "distinct values of each group": (plan(PEOPLE, CountDistinct(N), keys=(_LETTERS,), limits=(1, None, None)), FIVE),
    "distinct values of first groups": (plan(PEOPLE, CountDistinct(N), keys=(_LETTERS,), limits=(1, 1, None)), FIVE),
    "the way to a unit": (plan(NOTES, CountUnits(), keys=(by(NOTES, "notes.n"),), limits=(None, 9, None)), LINKED),
    "units of a shared stay": (
        plan(UnitJoin(STAYS, _per_unit(Summary.SUM)), Sum(read(_per_unit(Summary.SUM), "total"))),
        LINKED,
    ),
    "a unit of two columns": (
        plan(DAYS, CountUnits()),
        content(days=[{"who": who, "when": when} for who, when in (("p1", 1), ("p", 11), ("p", None), (None, 1))]),
    ),
    "a public join": (plan(_joined(outer=False), CountRows(), Sum(read(_DRUGS, "d.x"))), DRUGS),
    "an outer public join": (plan(_joined(outer=True), CountRows(), CountValues(read(_DRUGS, "d.x"))), DRUGS),
    "a semi-join": (
        plan(Semi(STAYS, Filter(PEOPLE, Compare(Comparison.GT, N.expression, Constant(2)))), CountRows()),
        LINKED,
    ),
    "an anti-join": (plan(Semi(PEOPLE, STAYS, negated=True), CountRows()), LINKED),
    **{
        f"{summary.value} of a unit": (
            plan(_per_unit(summary), Sum(_total(_per_unit(summary))), CountValues(_total(_per_unit(summary)))),
            FIVE,
        )
        for summary in Summary
    },
    "a unit's groups": (
        plan(
            _per_unit(Summary.SUM, (Column("letter", read(PEOPLE, "people.c").type), read(PEOPLE, "people.c"))),
            CountRows(),
        ),
        FIVE,
    ),
    **{
        f"first row, descending {index}": (plan(each, Sum(read(each, "people.n")), CountRows()), FIVE)
        for index, each in enumerate(_FIRST_LETTERS)
    },
    "a union": (
        plan(
            Union(
                (PEOPLE, STAYS),
                ((N.expression,), (read(STAYS, "stays.n").expression,)),
                (Column("both", Integer(-3, 4)),),
            ),
            CountRows(),
            Sum(Value("both", Integer(-3, 4), Field(Column("both", Integer(-3, 4))))),
            limits=(2, None, None),
        ),
        LINKED,
    ),
    "huge integers": (plan(PEOPLE, Sum(_BIG), Mean(_BIG)), content(people=person("p", *[2**63 - 1] * 4, name="Big"))),
    "names that differ in case": (
        plan(
            PublicJoin(
                scan("people", "T."),
                scan("drugs", "t."),
                Constant(1),
                read(scan("drugs", "t."), "t.n").expression.column,
            ),
            Sum(read(scan("people", "T."), "T.x")),
            Sum(read(scan("drugs", "t."), "t.x")),
        ),
        content(people=[{"who": "p", "x": 1.0}], drugs=[{"n": "1", "x": 2.0}]),
    ),
}


def differs(open_engine: object, name: str) -> bool:
    """Whether an engine gives other integers than the reference on an example, or fails."""
    bounded, rows = EXAMPLES[name]
    tables = plans.declared(rows)
    with closing(open_engine(tables)) as engine:
        try:
            return engine.run(bounded, KEY) != reference(tables).run(bounded, KEY)
        except sf.SfumatoError:
            return True


# --- nodes over their whole small domain -----------------------------------------------------

A, B = Column("a", Integer(-7, 7)), Column("b", Integer(-7, 7))
WIDE = Column("a", Integer(-(2**52), 2**52))
T = Column("t", sf.Text())
_TEST = Compare(Comparison.LT, Field(A), Field(B))
_COMPUTED: dict[str, Scalar] = {
    **{f"a {op.value} b": Arithmetic(op, Field(A), Field(B)) for op in Operation if op is not Operation.DIVIDE},
    "the greatest": Extreme(True, (Field(A), Field(B))),
    "the least": Extreme(False, (Field(A), Constant(1), Arithmetic(Operation.ADD, Field(A), Field(B)))),
    "the greatest of what may be null": Extreme(True, (Coalesce((Field(A), Field(B))), Quotient(Field(B), Field(A)))),
    "the least of null": Extreme(False, (Field(A), Constant(None))),
    "quotient": Quotient(Field(A), Field(B)),
    "quotient by a quotient": Quotient(Field(A), Quotient(Field(A), Field(B))),
    "quotient by what is not zero": Quotient(Field(A), Extreme(True, (Field(B), Constant(2)))),
    "floor": FloorDivide(Field(A), 3),
    "floor by one": FloorDivide(Field(A), 1),
    "floor of what is not negative": FloorDivide(Arithmetic(Operation.MULTIPLY, Field(A), Field(A)), 4),
    "floor by more than there is": FloorDivide(Field(A), 2**80),
    "a table": Lookup(Field(A), -2, (5, None, 7)),
    "a table beyond": Lookup(Field(A), 9, (1, 2)),
    "an empty table": Lookup(Field(A), 0, ()),
    "a table of null": Lookup(Constant(None), 0, (1,)),
    "case": Case(((_TEST, Constant(1)), (IsNull(Field(A)), Field(B))), Constant(None)),
    "coalesce": Coalesce((Field(A), Constant(None), Field(B))),
}
_TESTED: dict[str, Scalar] = {
    **{f"a {op.value} b": Compare(op, Field(A), Field(B)) for op in Comparison},
    "truths compared": Compare(Comparison.LE, _TEST, IsNull(Field(B))),
    "a text and a number": Compare(Comparison.EQ, Field(A), Constant("1")),
    "member": Member(Field(A), (-7, 0, 3)),
    "member of nothing": Member(Field(A), ()),
    "member of texts": Member(Field(A), ("1",)),
    "not": Not(_TEST),
    "and": And((_TEST, IsNull(Field(A)), Member(Field(B), (1,)))),
    "or": Or((_TEST, IsNull(Field(A)), Member(Field(B), (1,)))),
    "and of nothing": And(()),
    "or of nothing": Or(()),
    "null": Or((Constant(None), _TEST)),
    "case": Case(((_TEST, Constant(True)), (IsNull(Field(A)), Constant(None))), Constant(False)),
    "coalesce": Coalesce((_TEST, Constant(True))),
    "whether a test is null": IsNull(_TEST),
}
_EDGES = (-(2**52), -(2**51) - 1, -(2**51), -3, -1, 0, 1, 2, 2**51, 2**52 - 1, 2**52, None)
_WIDE: dict[str, Scalar] = {
    "sums": Arithmetic(Operation.ADD, Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(511)), Field(WIDE)),
    "floor": FloorDivide(Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1000)), 7),
    "floor by 2^62": FloorDivide(Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1023)), 2**62),
    "quotient": Quotient(Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1023)), Field(WIDE)),
    "a table": Lookup(Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1023)), -1, (3, 4, 5)),
}
_WORDS = ("", "a", "A", "ab", "a\nb", "a\\b", "a%", "_", "空", "空b", "e\u0301", "é", "👩‍👧", "o'c", "a\x00b", None)
_PATTERNS = (
    "",
    "%",
    "_",
    "__",
    "a%",
    "%b",
    "%\\%",
    "a\\%",
    "\\_",
    "%空%",
    "e_",
    "a_b",
    "%'%",
    "[a]",
    "a.b",
    "%%",
    "_%_",
    "A",
)


def _days() -> list[int]:
    """Every border of a year and a month near it, some weeks, and both ends of the calendar."""
    starts = [FIRST_DAY + 6 + 365 * year + year // 4 for year in (*range(0, 9990, 37), *range(1890, 2110))]
    near = {start + off for start in starts for off in (0, 1, 58, 59, 60, 90, 181, 364, 365)}
    return sorted(
        day for day in {*near, *range(-800, 800), FIRST_DAY + 6, LAST_DAY} if FIRST_DAY + 6 <= day <= LAST_DAY
    )


class EngineContract:
    """The suite."""

    def open_engine(self, tables: Mapping[str, sf.Table]) -> Opened:
        """Opens the engine over declared Arrow tables."""
        raise NotImplementedError

    def both(self, tables: Mapping[str, sf.Table], bounded: Bounded) -> tuple[Exact, Exact]:
        """What the engine gives, and what the reference gives."""
        with closing(self.open_engine(tables)) as engine:
            return engine.run(bounded, KEY), reference(tables).run(bounded, KEY)

    def agree(
        self, expressions: Mapping[str, Scalar], columns: tuple[Column, ...], rows: list[tuple[object, ...]]
    ) -> None:
        """Every expression has the same value, or NULL, in every row on both."""
        place = Column("place", Integer(0, len(rows)))
        named = {column.name: [row[index] for row in rows] for index, column in enumerate(columns)}
        types = {column.name: column.type for column in (place, *columns)}
        cells = pa.table({"place": range(len(rows)), **named})
        tables = {"t": sf.Table(cells, columns=types)}
        key = GroupKey(Value.of(place), None)
        source = plans.Scan("t", "", (place, *columns))
        for name, expression in expressions.items():
            bounded = plan(source, *_shown(expression), keys=(key,))
            found, expected = self.both(tables, bounded)
            assert found == expected, name

    @pytest.mark.parametrize("name", EXAMPLES)
    def test_the_engine_gives_the_integers_of_the_reference_on(self, name: str) -> None:
        bounded, rows = EXAMPLES[name]
        found, expected = self.both(plans.declared(rows), bounded)
        assert found == expected
        assert [list(part) for part in found] == [list(part) for part in expected], "in one order"
        assert any(expected), "an example in which there is something"

    @settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
    @given(st.data(), plans.data(), st.text(max_size=3))
    def test_the_engine_gives_the_integers_of_the_reference(
        self, data: st.DataObject, rows: dict[str, plans.Rows], key: str
    ) -> None:
        tables = plans.declared(rows)
        oracle = reference(tables)
        with closing(self.open_engine(tables)) as engine:
            for raw in data.draw(st.lists(plans.questions(), min_size=2, max_size=4)):
                bounded = data.draw(plans.bounded(raw))
                assert engine.run(bounded, key) == oracle.run(bounded, key)

    def test_an_expression_means_what_evaluate_says(self) -> None:
        numbers = [*range(-7, 8), None]
        self.agree(_COMPUTED, (A, B), [(one, other) for one in numbers for other in numbers])

    def test_a_test_means_what_evaluate_says(self) -> None:
        numbers = [-7, -1, 0, 1, 3, None]
        self.agree(_TESTED, (A, B), [(one, other) for one in numbers for other in numbers])

    def test_an_expression_of_the_widest_codes_means_what_evaluate_says(self) -> None:
        self.agree(_WIDE, (WIDE,), [(edge,) for edge in _EDGES])

    def test_a_pattern_means_what_evaluate_says(self) -> None:
        self.agree({pattern: Like(Field(T), pattern) for pattern in _PATTERNS}, (T,), [(word,) for word in _WORDS])

    def test_a_text_is_compared_by_its_code_points(self) -> None:
        tests = {f"{op.value} {word!r}": Compare(op, Field(T), Constant(word)) for op in Comparison for word in _WORDS}
        self.agree(tests | {"member": Member(Field(T), ("", "a", "é"))}, (T,), [(word,) for word in _WORDS])

    def test_a_day_means_what_evaluate_says(self) -> None:
        column = Column("d", Date("0001-01-07", "9999-12-31"))
        dates = {
            f"{node.__name__} {part.value}": node(part, Field(column))
            for node in (DatePart, DateTrunc)
            for part in Part
        }
        self.agree(dates, (column,), [(day(code),) for code in _days()])

    def test_an_expression_is_written_once(self) -> None:
        # operands that were written twice would make these a million times as long
        deep: Scalar = Field(A)
        for _ in range(25):
            deep = Extreme(True, (Quotient(Constant(9), Coalesce((deep, Field(B)))), Constant(-7)))
            deep = Lookup(FloorDivide(deep, 1), -7, tuple(range(-3, 14)))
        self.agree({"deep": deep}, (A, B), [(1, 2), (None, 3)])


def _shown(expression: Scalar) -> tuple[Sum | CountValues, ...]:
    """Two aggregates that tell what an expression is in a single row."""
    if isinstance(expression, Compare | Member | Like | IsNull | Not | And | Or) or expression in (
        _TESTED["case"],
        _TESTED["coalesce"],
    ):
        truth = Case(((expression, Constant(2)), (Not(expression), Constant(1))), Constant(0))
        return (Sum(Value("v", Integer(0, 2), truth)),)
    low, high = span(expression) or (0, 0)
    if max(abs(low), abs(high)) > 2**52:
        # more than a column can hold: seen through two divisors
        return tuple(each for divisor in (2**11, 3**7) for each in _shown(FloorDivide(expression, divisor)))
    value = Value("v", Integer(low, max(high, low + 1)), expression)
    return Sum(value), CountValues(value)
