# SPDX-License-Identifier: Apache-2.0
"""What a test means does not depend on what DuckDB knows of the data before it reads them.

Tables and Parquet files state the least and the greatest value of a column, and whether it has
NULLs; DuckDB folds tests by that. Here columns are such that much is folded: one value, NULL alone,
the ends of a type, markers for missing among values that are like them. Every form of a test is
asked of every one of them, as a plan is asked, and held to ``evaluate``.
"""

import datetime
import itertools
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import duckdb_printer
from sfumato.engines.declared import held
from sfumato.engines.duckdb_printer import printed, text
from sfumato.engines.emit import queries
from sfumato.engines.sources import opened
from sfumato.engines.sql_tree import Opaque
from sfumato.engines.value_codes import code_of
from sfumato.engines.value_sql import Source
from sfumato.metadata.column import Column, Text
from sfumato.plan.aggregate import CountRows
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import Filter, Scan
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DatePart,
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
    Substring,
    Trim,
)
from tests.contracts.world import plan

NAN, INF = float("nan"), float("inf")
FIRST, LAST, DAY = datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1970, 1, 1)
LONG = "longer than any piece"
# stored values, and the declarations under which they are read
STORED = [
    (
        pa.string(),
        [
            ["N"],
            ["a"],
            ["", "N"],
            ["N", "Na"],
            ["Na", "N", None],
            ["N", "1", "a", None],
            [LONG + "a", LONG],
            [None],
        ],
        [
            Text(),
            Text(missing=("N", LONG)),
            sf.Category("a", "Na", missing="N"),
            sf.Integer(0, 2, missing="1"),
        ],
    ),
    (
        pa.int64(),
        [[0], [1], [1, None], [0, None], [-(2**63), 2**63 - 1], [9, 0, None], [None]],
        [
            sf.Integer(-3, 4),
            sf.Integer(0, 2, missing="1"),
            Text(missing="1"),
            sf.Category("0", "1", missing="9"),
        ],
    ),
    (
        pa.float64(),
        [[0.0], [1.5], [NAN], [INF, None], [-0.5, NAN, None], [1.0, 2.0]],
        [sf.Real(-1, 2, step="0.5"), sf.Integer(0, 2, missing="1"), Text(missing=("1", "1.5"))],
    ),
    (
        pa.decimal128(9, 2),
        [[Decimal("1.00")], [Decimal("0.50"), None]],
        [sf.Real(0, 2, step="0.5"), Text(missing="1")],
    ),
    (
        pa.date32(),
        [[DAY], [LAST, None], [FIRST, DAY], [None]],
        [
            sf.Date("1969-12-30", "1970-01-02"),
            sf.Date("1969-12-30", "1970-01-02", missing="1970-01-01"),
            Text(missing="1970-01-01"),
        ],
    ),
    (
        pa.bool_(),
        [[True], [False, None], [True, False]],
        [sf.Boolean(), sf.Boolean(missing="2"), Text(missing="true")],
    ),
]
ROWS = 4
CELLS = [
    (kind, (values * ROWS)[:ROWS], physical)
    for physical, listed, kinds in STORED
    for values in listed
    for kind in kinds
]
COLUMNS = [Column(f"c{place}", kind) for place, (kind, _, _) in enumerate(CELLS)]


def of_text(column):
    """Tests of a text, of a function of it, and of a choice among texts."""
    field = Field(column)
    chosen = Case(((Compare(Comparison.GT, field, Constant("M")), Constant("a")),), Constant(None))
    found = []
    other = Case(((Like(field, "N%"), Constant(None)),), field)
    read_apart = ChangeCase(field, upper=False), Substring(field, 1, 2), Trim(field), Trim(chosen)
    choices = chosen, Coalesce((chosen, Constant("N"))), Coalesce((field, Constant("N"))), other
    for read in (field, *read_apart, Substring(chosen, 1, 1), *choices):
        found += [Like(read, pattern) for pattern in ("N%", "a%", f"{LONG}%", "1%")]
        found += [Member(read, words) for words in (("N", "x"), ("1", "a"), (LONG, "true"), ())]
        found += [Compare(op, read, Constant("N")) for op in (Comparison.EQ, Comparison.GE)] + [
            IsNull(read)
        ]
    return found


def of_code(column):
    """Tests of a code, and of what can be NULL where it is not, or not NULL where it is."""
    field, low, high = Field(column), column.type.lower_code, column.type.upper_code
    above = Compare(Comparison.GT, field, Constant(low))
    found = [
        Member(field, (low,)),
        *(Compare(op, field, Constant(high)) for op in (Comparison.EQ, Comparison.LT)),
    ]
    for read in (
        Case(((above, Constant(5)),), Constant(None)),
        Coalesce((Case(((above, field),), Constant(None)), Constant(low))),
        Quotient(Constant(5), Arithmetic(Operation.SUBTRACT, field, Constant(low))),
        Lookup(field, low + 1, (5, None)),
        FloorDivide(Extreme(True, (field, Case(((above, Constant(low)),), Constant(None)))), 2),
    ):
        found += [Member(read, (5, 6)), Compare(Comparison.LE, read, Constant(5)), IsNull(read)]
    for read in (Coalesce((field, Constant(0))), Case(((IsNull(field), Constant(0)),), field)):
        either = tuple(Compare(Comparison.EQ, read, Constant(code)) for code in (0, 2))
        found += [Member(read, (0, 2)), Or(either), Compare(Comparison.LE, read, Constant(2))]
    return [*found, Compare(Comparison.EQ, DatePart(Part.YEAR, Constant(None)), Constant(5))]


MAKERS = (
    lambda test, _: Not(test),
    lambda test, other: Or((test, other)),
    lambda test, other: And((test, Not(other))),
    lambda test, _: Coalesce((test, Constant(True))),
    lambda test, _: IsNull(test),
    lambda test, _: Case(((test, Constant(True)),), Constant(None)),
    lambda test, _: Member(Case(((test, Constant(5)),), Constant(None)), (5,)),
)


def nested(tests):
    """The tests, and of every third something that is made of it."""
    pairs = zip(itertools.cycle(MAKERS), tests[::3], tests[1::3])
    return [*tests, *(make(test, other) for make, test, other in pairs)]


def written(folder):
    """The cells as a file in pieces of two rows, as a table of a database, and as codes in a
    prepared layout.
    """
    table = pa.table(
        {
            each.name: pa.array(cells, kind)
            for each, (_, cells, kind) in zip(COLUMNS, CELLS, strict=True)
        }
    )
    pq.write_table(table, folder / "t.parquet", row_group_size=2)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("cells", table)
        connection.execute("CREATE TABLE t AS FROM cells")
    codes = {
        f"c_{each.name}": pa.array(
            [code_of(each, value) for value in cells],
            pa.string() if isinstance(each.type, Text) else pa.int64(),
        )
        for each, (_, cells, _) in zip(COLUMNS, CELLS, strict=True)
    }
    pq.write_table(
        pa.table({**codes, "unit": range(ROWS), "place": [0] * ROWS}), folder / "codes.parquet"
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A connection, and the sources."""
    folder = tmp_path_factory.mktemp("statistics")
    with duckdb.connect() as connection:
        written(folder)
        found = [Source(f"read_parquet({text(str(folder / 'codes.parquet'))})", {}, coded=True)]
        for file, name in (("t.parquet", None), ("t.duckdb", "t")):
            tables = {
                "t": sf.Table(
                    folder / file, table=name, columns={each.name: each.type for each in COLUMNS}
                )
            }
            found.append(held(connection, tables, "t", opened(connection, "t", tables["t"])))
        yield connection, found


def asked(column, source, step):
    """A plan's statement for every so many of the tests of a column."""
    tests = nested(of_text(column) if isinstance(column.type, Text) else of_code(column))[::step]
    scan = Scan("t", "", (column,))
    plans = [plan(Filter(scan, test), CountRows()) for test in tests]
    return tests, [printed(queries(each, {"t": source}, "key")[0].query) for each in plans]


def wrong(sources, column, cells, *, step=1):
    """The tests of a column that DuckDB answers otherwise than ``evaluate``, or not at all."""
    connection, listed = sources
    found = []
    codes = [code_of(column, value) for value in cells]
    for source in listed:
        tests, sqls = asked(column, source, step)
        expected = [
            sum(evaluate(test, lambda _, code=code: code) is True for code in codes)
            for test in tests
        ]
        every = " UNION ALL ".join(
            f"(SELECT {place}, * FROM ({sql}))" for place, sql in enumerate(sqls)
        )
        counts = dict(connection.execute(every).fetchall())
        found += [
            tests[place] for place, count in enumerate(expected) if counts.get(place, 0) != count
        ]
    return found


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "physical", {str(physical): physical for _, _, physical in CELLS}.values(), ids=str
)
def test_what_is_known_of_the_data_does_not_decide_what_a_test_means(sources, physical, step):
    for column, (_, cells, stored) in zip(COLUMNS, CELLS, strict=True):
        if stored == physical:
            assert not wrong(sources, column, cells, step=step), (column.type, cells)


# --- what was wrong once is noticed -----------------------------------------------------------


def noticed(sources, wanted, stored, kinds):
    """Whether tests of the wanted forms are found wrong."""
    found = set()
    for column, (kind, cells, physical) in zip(COLUMNS, CELLS, strict=True):
        if physical == stored and isinstance(kind, kinds) and not wanted <= found:
            found |= {type(test) for test in wrong(sources, column, cells)}
    return wanted <= found


def test_a_reading_of_texts_that_statistics_see_through_is_noticed(sources, monkeypatch):
    monkeypatch.setitem(duckdb_printer._RULES, Opaque, lambda node: [node.value])
    assert noticed(sources, {Like, Member}, pa.string(), Text)


def test_a_choice_among_codes_that_statistics_see_through_is_noticed(sources, monkeypatch):
    monkeypatch.setitem(duckdb_printer._RULES, Opaque, lambda node: ["(", node.value, ")"])
    assert noticed(sources, {Member}, pa.int64(), sf.Integer)


def test_a_choice_among_texts_that_the_engine_looks_into_is_noticed(sources, monkeypatch):
    monkeypatch.setitem(duckdb_printer._RULES, Opaque, lambda node: ["(", node.value, ")"])
    assert noticed(sources, {Like, Member}, pa.string(), Text)
