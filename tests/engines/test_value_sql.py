# SPDX-License-Identifier: Apache-2.0
"""A value of any physical type has the code of the reference, and no value can make a reading
fail.
"""

import datetime
import itertools
import json
import math
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import duckdb_printer, sql_tree, value_sql
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed, quote, text
from sfumato.engines.reference import Reference
from sfumato.engines.value_codes import NUMBER_PATTERN, code_of, text_of
from sfumato.engines.value_sql import Source, named
from sfumato.errors import EngineFailed
from sfumato.metadata.column import Column
from sfumato.metadata.date_format import FORMATS
from sfumato.metadata.file_text import DECIMALS, PLAIN, THOUSANDS, Numerals
from sfumato.plan.aggregate import CountDistinct, CountRows, CountUnits
from sfumato.plan.relation import Filter
from sfumato.plan.scalar import (
    ChangeCase,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    Like,
    Member,
    Substring,
    Trim,
)
from sfumato.plan.value import GroupKey, Value
from sfumato.testing.strategies import column_types, values
from tests.contracts.effort import examples
from tests.contracts.verbatim import Verbatim
from tests.contracts.world import FINE

NUMBERS = (
    sf.Integer(-3, 3),
    sf.Integer(0, 2, missing=("-1", "0.5")),
    sf.Real(-1, 2, step="0.25"),
    sf.Real("-0.1", 7),
)
TEXTS = (
    sf.Category("0", "-1", "1.5", "true", missing="2"),
    sf.Boolean(),
    sf.Text(missing=("0", "true")),
    sf.Text(),
)
DATES = (
    sf.Date("1969-12-30", "1970-01-02"),
    sf.Date("1969-12-30", "1970-01-02", missing="1970-01-01"),
)
DAYS = (sf.Category("1970-01-01", "1969-12-31"), sf.Text())
EPOCH = datetime.datetime.fromisoformat("1970-01-01")

WHOLE = st.one_of(st.integers(-4, 4), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]))
FLOATS = st.one_of(
    st.integers(-16, 16).map(lambda n: n / 8),
    st.sampled_from(
        [
            math.nan,
            math.inf,
            -math.inf,
            -0.0,
            5e-324,
            -2.2e-310,
            1e308,
            -1e308,
            0.1,
            1e16,
            2.0**63,
            1e-5,
            1e23,
        ]
    ),
    st.floats(-4, 4),
)
CENTS = st.integers(-400, 400).map(lambda n: Decimal(n).scaleb(-2))
DAY = st.one_of(
    st.integers(-4, 4).map(lambda n: (EPOCH + datetime.timedelta(days=n)).date()),
    st.sampled_from([datetime.date.min, datetime.date.max, datetime.date(1600, 2, 29)]),
)
SECONDS = st.one_of(st.integers(-300_000, 300_000), st.integers(-(10**10), 10**10))
TIMES = SECONDS.map(lambda seconds: EPOCH + datetime.timedelta(seconds=seconds))
PHYSICAL = [
    (pa.int64(), WHOLE, NUMBERS + TEXTS),
    (pa.int8(), st.integers(-4, 4), NUMBERS + TEXTS),
    (pa.uint64(), st.one_of(st.integers(0, 4), st.just(2**64 - 1)), NUMBERS + TEXTS),
    (pa.float64(), FLOATS, NUMBERS + TEXTS),
    (pa.float32(), st.integers(-16, 16).map(lambda n: n / 8), NUMBERS + TEXTS),
    (pa.decimal128(10, 2), CENTS, NUMBERS + TEXTS),
    (pa.bool_(), st.booleans(), NUMBERS + TEXTS),
    (pa.date32(), DAY, DATES + DAYS),
    (pa.timestamp("us"), TIMES, (*DATES, sf.Text())),
    (pa.timestamp("s"), TIMES, DATES),
]
NUMERALS = st.from_regex(rf"\A{NUMBER_PATTERN}\Z".replace(r"\s", "[ \t\n]"), fullmatch=True).filter(
    lambda s: len(s) < 40
)


@st.composite
def columns(draw):
    """A declared type, an Arrow type and a strategy of its values."""
    if draw(st.booleans()):
        kind = draw(column_types())
        return (
            kind,
            pa.string(),
            st.one_of(values(kind), NUMERALS) if draw(st.booleans()) else values(kind),
        )
    physical, cells, kinds = draw(st.sampled_from(PHYSICAL))
    return draw(st.sampled_from(kinds)), physical, st.one_of(cells, cells, cells, st.none())


OWNERS = [
    (pa.string(), st.sampled_from(["u", "v", "", "空", "o'c", None])),
    (pa.int64(), st.sampled_from([1, 2, -3, None])),
    (pa.float64(), st.sampled_from([1.0, 2.5, -0.0, None])),
]


@settings(deadline=None, max_examples=examples(0.6))
@given(st.data())
def test_the_engine_gives_the_codes_of_the_reference(asker, data):
    kind, physical, cells = data.draw(columns())
    cells = pa.array(data.draw(st.lists(cells, max_size=9)), physical)
    owner_type, owners = data.draw(st.sampled_from(OWNERS))
    who = pa.array([data.draw(owners) for _ in cells], owner_type)
    source = pa.table({"x": cells, "who": who})
    for unit in (None, sf.Unit("who")):
        ask = asker(source, {"x": kind}, unit)
        value = ask.value("x")
        # open keys show every code that there is
        plan = ask.plan(
            CountRows(),
            CountUnits(),
            CountDistinct(value),
            keys=(GroupKey(value, None, True),),
            limits=(None, 99, None),
        )
        assert ask.duckdb(plan) == ask.reference(plan, source.to_pylist())


# Parquet says the least and the greatest value of a column and leaves NaN out: an engine that
# believes it takes NaN for a number in some files and not in others, so that a row would change the
# value of another.
AMONG = (math.nan, 0.375, -1.0, 2.0, 7.5, math.inf, -math.inf)


def agree_on_every_few(asker, folder, width, step):
    """Whether Parquet files of few numbers, whole or in many pieces, have the codes of the
    reference.
    """
    every = [cells for size in (1, 2, 3) for cells in itertools.combinations(AMONG, size)]
    for count, cells in list(enumerate(every))[::step]:
        path = folder / f"{width}-{count}.parquet"
        source = pa.table({"x": pa.array(cells, width)})
        pq.write_table(source, path, row_group_size=1 + count % 3)
        kind = MEANT[count % len(MEANT)]
        ask = asker(path, {"x": kind})
        keys = (GroupKey(ask.value("x"), None, True),)
        above = Filter(
            ask.scan,
            Compare(Comparison.GE, ask.value("x").expression, Constant(kind.lower_code + 1)),
        )
        plans = ask.plan(CountRows(), keys=keys), ask.plan(CountRows(), source=above)
        if not ask.agree(plans, source.to_pylist()):
            return False
    return True


MEANT = (
    sf.Real(-1, 2, step="0.25"),
    sf.Integer(-3, 3),
    sf.Real(0, 8, missing="7.5"),
    sf.Category("2", "inf", "nan"),
)


# a step that shares no factor with the sizes of the pieces and the declarations: a sample of all of
# them
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("width", [pa.float64(), pa.float32()], ids=str)
def test_nan_is_missing_whatever_a_file_says_of_its_numbers(asker, tmp_path, width, step):
    assert agree_on_every_few(asker, tmp_path, width, step)


def test_a_reading_that_believes_the_file_is_noticed(asker, tmp_path, monkeypatch):
    monkeypatch.setattr(value_sql, "_raw_value", lambda column, family: value_sql.stored(column))
    assert not agree_on_every_few(asker, tmp_path, pa.float64(), 1)


# A column of a DuckDB file may have a collation, by which several spellings are equal. Each is a
# text of its own for the reference.
SPELLINGS = ["ab", "AB", "aB", "ab ", "é", "e\u0301", "É", "e", "ß", "ss", None]
COLLATIONS = ["NOCASE", "NOACCENT", "NOCASE.NOACCENT", "NFC", "de", "icu_noaccent"]


def agree_on_spellings(asker, folder, collation):
    """Whether a table of a collation has the integers of the reference."""
    path = folder / f"{collation}.duckdb"
    rows = [{"x": word, "who": who} for word in SPELLINGS for who in SPELLINGS[::2]]
    with duckdb.connect(str(path)) as connection:
        stored_type = f"VARCHAR COLLATE {collation}"
        connection.execute(f"CREATE TABLE t (x {stored_type}, who {stored_type})")
        connection.executemany("INSERT INTO t VALUES ($x, $who)", rows)
    unit = sf.Unit("who", spellings_apart=True)
    texts = (sf.Text(), None), (sf.Text(missing="AB"), unit)
    for kind, owner in (*texts, (sf.Category(*SPELLINGS[1:-1], missing="ab"), unit)):
        ask = asker(path, {"x": kind}, owner, table="t")
        value = ask.value("x")
        tests: list[object] = [Member(value.expression, (0, 3))]
        if isinstance(kind, sf.Text):
            tests = [
                Member(value.expression, ("AB", "É")),
                Like(value.expression, "A%"),
                Compare(Comparison.LT, value.expression, Constant("b")),
                Member(ChangeCase(value.expression, upper=True), ("AB", "É")),
                Like(Substring(value.expression, 1, 1), "A"),
                Member(Trim(value.expression), ("AB", "É")),
                Member(Coalesce((value.expression, Constant("ab"))), ("AB", "É")),
            ]
        aggregates = CountRows(), CountUnits(), CountDistinct(value)
        keys = (GroupKey(value, None, True),)
        plans = [ask.plan(*aggregates, keys=keys, limits=(None, 99, None))]
        if isinstance(kind, sf.Text):
            beginning = Value("x", kind, Substring(value.expression, 1, 1))
            chosen = Value("x", kind, Coalesce((value.expression, Constant("ab"))))
            for read in (beginning, Value("x", kind, Trim(value.expression)), chosen):
                first = (GroupKey(read, None, True),)
                plans.append(ask.plan(CountDistinct(read), keys=first, limits=(None, 99, None)))
        plans += [ask.plan(*aggregates, source=Filter(ask.scan, test)) for test in tests]
        reference = Reference({"people": rows})
        with closing(DuckDB(ask.tables)) as engine:
            if any(engine.run(plan, "key") != reference.run(plan, "key") for plan in plans):
                return False
    return True


@pytest.mark.parametrize("collation", COLLATIONS)
def test_texts_are_equal_only_if_their_code_points_are(asker, tmp_path, collation):
    assert agree_on_spellings(asker, tmp_path, collation)


@pytest.mark.parametrize("collation", COLLATIONS)
def test_a_cast_keeps_the_collation_and_is_noticed(asker, tmp_path, monkeypatch, collation):
    def cast(node):
        return ["CAST(", node.value, " AS VARCHAR)"]

    monkeypatch.setitem(duckdb_printer._RULES, sql_tree.CodePoints, cast)
    assert not agree_on_spellings(asker, tmp_path, collation)


def test_a_default_collation_changes_no_reading(asker, tmp_path, monkeypatch):
    opened = DuckDB._open_sources

    def without_case(engine):
        engine._connection.execute("SET default_collation = 'NOCASE'")
        opened(engine)

    monkeypatch.setattr(DuckDB, "_open_sources", without_case)
    assert agree_on_spellings(asker, tmp_path, "NOACCENT")
    words = pa.table({"x": SPELLINGS})
    ask = asker(words, {"x": sf.Text()})
    plan = ask.plan(CountRows(), keys=(GroupKey(ask.value("x"), None, True),))
    assert ask.duckdb(plan) == ask.reference(plan, words.to_pylist())


EDGES = json.loads((Path(__file__).parent / "corpus" / "texts.json").read_text(encoding="utf-8"))
MANY = [
    sf.Integer(0, 9, missing=""),
    sf.Real(-1, 1),
    sf.Real(0, 10**15, step="0.25"),
    sf.Date("1900-01-01", "2100-01-01", missing="epoch"),
    sf.Date("1900-01-01", "2100-01-01", format="%d/%m/%Y", missing="epoch"),
    sf.Category("abc", "空"),
    sf.Boolean(missing="x"),
    sf.Text(missing=("", "nan")),
]
PHYSICAL_EDGES = {
    "text": pa.array([*EDGES, None]),
    "dictionary": pa.array([*EDGES, None]).dictionary_encode(),
    "double": pa.array(
        [
            math.nan,
            math.inf,
            -math.inf,
            5e-324,
            -5e-324,
            1.8e308,
            -0.0,
            2.0**63,
            -(2.0**63),
            2.0**52 + 0.5,
            None,
        ]
    ),
    "float": pa.array([math.nan, math.inf, -math.inf, 1e-45, 3.4e38, -0.0, None], pa.float32()),
    "bigint": pa.array([2**63 - 1, -(2**63), 0, None]),
    "ubigint": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "decimal": pa.array(
        [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), None], pa.decimal128(38, 0)
    ),
    "small decimal": pa.array(
        [Decimal("99.99999999"), Decimal("-0.00000001"), None], pa.decimal128(10, 8)
    ),
    "fraction": pa.array([Decimal("0." + "9" * 38), None], pa.decimal128(38, 38)),
    "nothing": pa.array([None], pa.null()),
    "boolean": pa.array([True, False, None]),
    "date": pa.array(
        [2**31 - 1, -(2**31), -(2**31) + 1, 2932896, -719162, 0, None], pa.int32()
    ).cast(pa.date32()),
    "timestamp": pa.array(
        [2**63 - 1, -(2**63) + 1, 253402300799999999, -62135596800000000, -1, 0, None]
    ).cast(pa.timestamp("us")),
}


def failures(asker, source, unit=None):
    """Of how many declarations a source makes the engine fail."""
    failed = asked = 0
    for kind in MANY:
        ask = asker(source, {"x": kind}, unit)
        value = ask.value("x")
        try:
            engine = DuckDB(ask.tables)
        except sf.SfumatoError:
            continue  # refused before any row is read
        with closing(engine):
            asked += 1
            limits = (2, 2, None) if unit else (None, None, None)
            by_code = ask.plan(
                CountRows(),
                CountDistinct(value),
                keys=(GroupKey(value, None),),
                limits=limits,
                fine=FINE if unit else 1,
            )
            plans = [by_code, ask.counts()] if unit is None and numeric(kind) else [by_code]
            for plan in plans:
                try:
                    engine.run(plan, "key")
                except EngineFailed:
                    failed += 1
    assert asked >= 3
    return failed


def numeric(kind):
    return isinstance(kind, sf.Integer | sf.Real | sf.Boolean)


@pytest.mark.parametrize("physical", PHYSICAL_EDGES)
def test_no_value_can_make_a_reading_fail(asker, physical):
    cells = PHYSICAL_EDGES[physical]
    assert failures(asker, pa.table({"x": cells})) == 0
    if physical in ("text", "double", "decimal", "bigint", "ubigint"):
        assert (
            failures(
                asker,
                pa.table({"x": cells, "who": cells}),
                sf.Unit("who", max_rows=2, max_groups=2),
            )
            == 0
        )
        assert failures(asker, pa.table({"x": cells, "who": cells}), sf.Unit(["who", "x"])) == 0


def test_a_huge_integer_does_not_make_a_reading_fail(asker, tmp_path):
    path = tmp_path / "huge.parquet"
    huge = 2**127 - 1
    cells = f"(VALUES ({huge}::HUGEINT), (({-huge})::HUGEINT), (NULL)) t(x)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT x FROM {cells}) TO '{path}'")
    assert failures(asker, path) == 0


def test_a_bare_cast_fails_on_a_row_and_is_noticed(asker, monkeypatch):
    monkeypatch.setattr(
        value_sql,
        "_guard_cast",
        lambda cast, raw, family, pattern: sql_tree.Cast(cast.value, cast.type),
    )
    assert failures(asker, pa.table({"x": PHYSICAL_EDGES["text"]})) > 0


HALVES = pa.table({"x": [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2.0**51 - 0.5]})
WIDE = (sf.Integer(-9, 9), sf.Integer(-9, 2**51 - 1), sf.Integer(-9, 2**51), sf.Integer(-9, 2**52))


@pytest.mark.parametrize("kind", WIDE, ids=repr)
def test_a_half_is_rounded_to_even(asker, kind):
    ask = asker(HALVES, {"x": kind})
    plan = ask.counts()
    assert ask.duckdb(plan) == ask.reference(plan, HALVES.to_pylist())
    # 0, 2, 2, 0, -2, 0 and 2^51, or the bound
    assert ask.duckdb(plan)[()][2] == 2 + min(kind.upper_code, 2**51)


@pytest.mark.parametrize(
    "mutant",
    [
        "TRY_CAST(floor({y} + 0.5) AS BIGINT)",
        "TRY_CAST({y} AS BIGINT) + 1",
        "TRY_CAST(trunc({y}) AS BIGINT)",
    ],
)
def test_a_mutant_that_rounds_otherwise_is_noticed(asker, monkeypatch, mutant):
    monkeypatch.setattr(
        value_sql, "_half_even", lambda y, kind: Verbatim(mutant.format(y=printed(y)))
    )
    halves = pa.table({"x": [0.5, 1.5, 2.5]})
    ask = asker(halves, {"x": WIDE[0]})
    plan = ask.counts()
    assert ask.duckdb(plan) != ask.reference(plan, halves.to_pylist())


def test_several_columns_name_a_unit_without_confusion():
    source = Source("t", {"a": "VARCHAR", "b": "INTEGER"})
    pairs = [("1", 11), ("11", 1), ("1:1", 1), ("", 1), ("空", 1), ("a", None), (None, 1)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a VARCHAR, b INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", pairs)
        found = [
            row[0]
            for row in connection.execute(
                f"SELECT {printed(named(['a', 'b'], source))} FROM t"
            ).fetchall()
        ]
    expected = [
        f"{len(a)}:{a}{len(text_of(b))}:{b}" if a is not None and b is not None else None
        for a, b in pairs
    ]
    assert found == expected
    assert len(set(expected)) == len(pairs) - 1


@pytest.mark.parametrize("name", ["a", 'say "hi"', '"', "o'c", "空", ""])
def test_names_and_texts_are_quoted(name):
    found = duckdb.connect().execute(f"SELECT {text(name)} AS {quote('x' + name)}")
    assert (found.description[0][0], found.fetchone()[0]) == ("x" + name, name)


FAMILIES = {
    "text": ["VARCHAR", "ENUM('a', 'b')"],
    "whole": ["HUGEINT", "UTINYINT", "BIGINT"],
    "float": ["DOUBLE", "FLOAT"],
    "decimal": ["DECIMAL(18,3)"],
    "null": ['"NULL"'],
    "date": ["DATE", "TIMESTAMP_NS", "TIMESTAMP"],
    "boolean": ["BOOLEAN"],
    "instant": ["TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"],
    "other": [
        *("BLOB", "STRUCT(a INTEGER)", "TIME", "INTERVAL"),
        *(
            "INTEGER[]",
            "DECIMAL(18,3)[]",
            "DECIMAL(18,3)[2]",
            "ENUM('a', 'b')[]",
            "DECIMAL(18,3)[][]",
        ),
    ],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_physical_type_belongs_to_one_family(family):
    for name in FAMILIES[family]:
        assert Source("t", {"x": name}).family("x") == family


POWERS = [Fraction(2) ** power for power in (-996, -13, -1, 0, 3, 996)]


@pytest.mark.parametrize("step", [*POWERS, Fraction(1, 10), Fraction(3)])
def test_a_number_of_steps_is_the_quotient_rounded_once(step):
    kind, divided = sf.Real(0, 8 * step, step=step), float(step)
    written = printed(value_sql._read_steps(sql_tree.Column("x"), "float", kind))
    assert ("/" not in written) is (step in POWERS)
    numbers = [0.1, -7.3, 5e-324, 1.7e308, math.pi * divided, 5.5 * divided, math.inf, -0.0]
    with duckdb.connect() as connection:
        found = [
            connection.execute(f"SELECT {written} FROM (SELECT ?::DOUBLE AS x)", [each]).fetchone()
            for each in numbers
        ]
    assert [repr(each) for (each,) in found] == [repr(each / divided) for each in numbers]


@pytest.mark.parametrize(
    ("low", "high"), [(-128, 127), (-129, 127), (0, 128), (-(2**15), 0), (0, 2**31 - 1), (0, 2**31)]
)
def test_the_narrowest_type_holds_every_code_and_the_next_one_not(low, high):
    name = value_sql.narrowest(sf.Integer(low, high)).value
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT ({low})::{name}, ({high})::{name}").fetchone() == (
            low,
            high,
        )
        types = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"]
        narrower = types[: types.index(name)]
        for each in narrower[-1:]:
            found = connection.execute(
                f"SELECT TRY_CAST(({low}) AS {each}), TRY_CAST({high} AS {each})"
            ).fetchone()
            assert None in found
    assert value_sql.narrowest(sf.Text()) is sql_tree.SqlType.VARCHAR


SIGNS = [
    Numerals(decimal, thousands)
    for decimal in DECIMALS
    for thousands in ("", *THOUSANDS)
    if decimal != thousands
]
KINDS_OF_NUMBERS = (
    sf.Integer(-9, 10**6, missing="1.000"),
    sf.Real(-2, 10**6, step="0.01"),
)
PARTS = st.sampled_from(
    ["1", "12", "123", "000", "5", ".", ",", " ", "'", "-", "e1", "\u00a0", "\u202f", "\u2019"]
)


def codes_of_texts(texts, kind, numerals):
    """The codes that DuckDB gives to some texts."""
    source = Source("t", {"x": "VARCHAR"}, numerals=numerals)
    read = value_sql.reading("x", kind, source)
    shown = printed(value_sql.code(kind, sql_tree.Column("y"), short=False))
    with duckdb.connect() as connection:
        connection.register("t", pa.table({"x": pa.array(texts, pa.string())}))
        found = connection.execute(f"SELECT {shown} FROM (SELECT {printed(read)} AS y FROM t)")
        return [code for (code,) in found.fetchall()]


@settings(deadline=None, max_examples=examples(1))
@given(st.lists(st.lists(PARTS, max_size=7).map("".join), max_size=40), st.sampled_from(SIGNS))
def test_declared_signs_of_numbers_mean_the_same_on_the_engine(texts, numerals):
    for kind in KINDS_OF_NUMBERS:
        column = Column("x", kind)
        expected = [code_of(column, text, numerals) for text in [*texts, *EDGES]]
        assert codes_of_texts([*texts, *EDGES], kind, numerals) == expected


def test_a_sign_that_is_dropped_without_the_form_is_noticed(monkeypatch):
    numerals = Numerals(",", ".")
    column = Column("x", KINDS_OF_NUMBERS[1])
    texts = ["1.00", "1.5", "1.000,5"]
    expected = [code_of(column, text, numerals) for text in texts]
    assert expected == [None, None, 100050]
    assert codes_of_texts(texts, column.type, numerals) == expected
    monkeypatch.setattr(value_sql, "_guard_cast", lambda cast, raw, family, pattern: cast)
    assert codes_of_texts(texts, column.type, numerals) != expected


def test_plain_numbers_are_read_by_the_statement_of_before():
    read = value_sql.reading("x", KINDS_OF_NUMBERS[1], Source("t", {"x": "VARCHAR"}))
    assert "regexp_replace" not in printed(read)
    assert printed(read).count(NUMBER_PATTERN.replace("'", "''")) == 1
    assert PLAIN not in SIGNS[1:]


# Of every part what may stand there, and what may not.
YEARS, REST = (
    ("2024", "1900", "0001", "9999", "0000", "24"),
    ("1", "02", "12", "13", "29", "31", "0"),
)


def codes_of_dates(form):
    """The texts whose code differs between DuckDB and the reference, and how many are dates."""
    kind = sf.Date("0001-01-02", "9999-12-30", format=form)
    texts = list(EDGES)
    for year, month, day in itertools.product(YEARS, REST, REST):
        for other in (form, "%d/%m/%Y"):
            written = other.replace("%Y", year).replace("%m", month).replace("%d", day)
            texts += [written, f" {written}", f"{written}\n"]
    expected = [code_of(Column("x", kind), written) for written in texts]
    found = codes_of_texts(texts, kind, PLAIN)
    odd = [text for text, one, other in zip(texts, found, expected, strict=True) if one != other]
    return odd, sum(code is not None for code in expected)


@pytest.mark.parametrize("form", FORMATS)
def test_a_declared_format_of_dates_means_the_same_on_the_engine(form):
    odd, dates = codes_of_dates(form)
    assert not odd
    assert dates > 20


def test_a_format_that_takes_the_month_for_the_day_is_noticed(monkeypatch):
    monkeypatch.setattr(value_sql, "iso_order", lambda form: r"\3-\1-\2")
    assert codes_of_dates("%d/%m/%Y")[0]
