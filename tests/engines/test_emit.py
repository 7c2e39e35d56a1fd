# SPDX-License-Identifier: Apache-2.0
"""DuckDB gives the integers of the reference, bit for bit, and no row can make it fail."""

import datetime
import json
import math
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import emit
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.emit import Source, quote, text
from sfumato.engines.reference import Reference
from sfumato.errors import EngineFailed
from sfumato.metadata.dataset import Dataset
from sfumato.plan.scalar import Estimate, Key
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.testing.strategies import TABLE, UNIT, column_types, plans, units, values

NAMES = ('say "hi"', "o'clock", "空", "c_x", "unit", "k0", "n", "weight", "select", "a b")
NUMBERS = (sf.Integer(-3, 3), sf.Integer(0, 2, missing=("-1", "0.5")), sf.Real(-1, 2, step="0.25"), sf.Real("-0.1", 7))
TEXTS = (sf.Category("0", "-1", "1.5", "true", missing="2"), sf.Boolean(), sf.Text(missing=("0", "true")), sf.Text())
DATES = (sf.Date("1969-12-30", "1970-01-02"), sf.Date("1969-12-30", "1970-01-02", missing="1970-01-01"))
DAYS = (sf.Category("1970-01-01", "1969-12-31"), sf.Text())
EPOCH = datetime.datetime.fromisoformat("1970-01-01")

WHOLE = st.one_of(st.integers(-4, 4), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]))
FLOATS = st.one_of(
    st.integers(-16, 16).map(lambda n: n / 8),
    st.sampled_from(
        [math.nan, math.inf, -math.inf, -0.0, 5e-324, -2.2e-310, 1e308, -1e308, 0.1, 1e16, 2.0**63, 1e-5, 1e23]
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
    (pa.timestamp("us"), TIMES, DATES),
    (pa.timestamp("s"), TIMES, DATES),
]
NUMERALS = st.from_regex(rf"\A{emit.NUMBER_PATTERN}\Z".replace(r"\s", "[ \t\n]"), fullmatch=True).filter(
    lambda s: len(s) < 40
)


@st.composite
def columns(draw):
    """A declared type, an Arrow type and a strategy of its values."""
    if draw(st.booleans()):
        kind = draw(column_types())
        return kind, pa.string(), st.one_of(values(kind), NUMERALS) if draw(st.booleans()) else values(kind)
    physical, cells, kinds = draw(st.sampled_from(PHYSICAL))
    return draw(st.sampled_from(kinds)), physical, st.one_of(cells, cells, cells, st.none())


OWNERS = [
    (pa.string(), st.sampled_from(["u", "v", "", "空", "o'c", None])),
    (pa.int64(), st.sampled_from([1, 2, -3, None])),
    (pa.float64(), st.sampled_from([1.0, 2.5, -0.0, None])),
]


@st.composite
def sources(draw):
    """A declared dataset and its Arrow table."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    chosen = {name: draw(columns()) for name in names}
    unit = draw(st.none() | units())
    size = draw(st.integers(0, 12))
    cells = {name: pa.array([draw(each[2]) for _ in range(size)], each[1]) for name, each in chosen.items()}
    if unit is not None:
        physical, owners = draw(st.sampled_from(OWNERS))
        cells[UNIT] = pa.array([draw(owners) for _ in range(size)], physical)
    table = sf.Table(pa.table(cells), unit=unit, columns={name: each[0] for name, each in chosen.items()})
    return Dataset("data", {TABLE: table})


@settings(deadline=None, max_examples=120)
@given(st.data(), st.text(max_size=5))
def test_the_engine_gives_the_integers_of_the_reference(data, key):
    dataset = data.draw(sources())
    table = dataset.tables[TABLE]
    reference, engine = Reference({TABLE: table.source.to_pylist()}), DuckDB(dataset.tables)
    try:
        for raw in data.draw(st.lists(plans(table), min_size=2, max_size=3)):
            for norm in (Norm.L1, Norm.L2):
                plan = compile_plan(raw, dataset, norm)
                assert engine.run(plan, key) == reference.run(plan, key)
    finally:
        engine.close()


EDGES = json.loads((Path(__file__).parent / "corpus" / "texts.json").read_text(encoding="utf-8"))
MANY = [
    sf.Integer(0, 9, missing=""),
    sf.Real(-1, 1),
    sf.Real(0, 10**15, step="0.25"),
    sf.Date("1900-01-01", "2100-01-01", missing="epoch"),
    sf.Category("abc", "空"),
    sf.Boolean(missing="x"),
    sf.Text(missing=("", "nan")),
]
PHYSICAL_EDGES = {
    "text": pa.array([*EDGES, None]),
    "dictionary": pa.array([*EDGES, None]).dictionary_encode(),
    "double": pa.array(
        [math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1.8e308, -0.0, 2.0**63, -(2.0**63), 2.0**52 + 0.5, None]
    ),
    "float": pa.array([math.nan, math.inf, -math.inf, 1e-45, 3.4e38, -0.0, None], pa.float32()),
    "bigint": pa.array([2**63 - 1, -(2**63), 0, None]),
    "ubigint": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "decimal": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), None], pa.decimal128(38, 0)),
    "small decimal": pa.array([Decimal("99.99999999"), Decimal("-0.00000001"), None], pa.decimal128(10, 8)),
    "fraction": pa.array([Decimal("0." + "9" * 38), None], pa.decimal128(38, 38)),
    "nothing": pa.array([None], pa.null()),
    "boolean": pa.array([True, False, None]),
    "date": pa.array([2**31 - 1, -(2**31), -(2**31) + 1, 2932896, -719162, 0, None], pa.int32()).cast(pa.date32()),
    "timestamp": pa.array([2**63 - 1, -(2**63) + 1, 253402300799999999, -62135596800000000, -1, 0, None]).cast(
        pa.timestamp("us")
    ),
}
QUESTIONS = (
    "SELECT COUNT(*), COUNT(x) FROM people WHERE x IS NOT NULL",
    "SELECT COUNT(*) FROM people GROUP BY x",
    "SELECT SUM(x), AVG(x) FROM people WHERE x >= 0.5",
    "SELECT COUNT(*) FROM people WHERE x > '1970-01-01'",
    "SELECT COUNT(*) FROM people WHERE x = 'abc' OR NOT x IN ('空')",
)


def failures(asker, source, unit=None):
    """How many of the statements that can be asked of a source fail."""
    failed = asked = 0
    for kind in MANY:
        for question in QUESTIONS:
            try:
                plan = asker(source, {"x": kind}, unit).plan(question)
                engine = DuckDB({"people": sf.Table(source, unit=unit, columns={"x": kind})})
            except sf.SfumatoError:
                continue  # refused before any row is read
            asked += 1
            try:
                engine.run(plan, "key")
            except EngineFailed:
                failed += 1
            engine.close()
    assert asked >= 3
    return failed


@pytest.mark.parametrize("physical", PHYSICAL_EDGES)
def test_no_row_can_make_the_statement_fail(asker, physical):
    cells = PHYSICAL_EDGES[physical]
    assert failures(asker, pa.table({"x": cells})) == 0
    if physical in ("text", "double", "decimal"):
        owned = pa.table({"x": cells, "who": cells})
        assert failures(asker, owned, sf.Unit("who", max_rows=2, max_groups=2)) == 0


def test_a_huge_integer_does_not_make_the_statement_fail(asker, tmp_path):
    path = tmp_path / "huge.parquet"
    huge = 2**127 - 1
    cells = f"(VALUES ({huge}::HUGEINT), (({-huge})::HUGEINT), (NULL)) t(x)"
    duckdb.connect().execute(f"COPY (SELECT x FROM {cells}) TO '{path}'")
    assert failures(asker, path) == 0


def test_a_bare_cast_fails_on_a_row_and_is_noticed(asker, monkeypatch):
    monkeypatch.setattr(emit, "_guarded", lambda cast, raw, family, pattern: cast.replace("TRY_CAST", "CAST"))
    assert failures(asker, pa.table({"x": PHYSICAL_EDGES["text"]})) > 0


def test_a_mutant_that_rounds_as_the_engine_does_is_noticed(asker, monkeypatch):
    halves = pa.table({"x": [0.5, 1.5, 2.5]})
    ask = asker(halves, {"x": sf.Integer(0, 9)})
    question = "SELECT SUM(x) FROM people"
    assert ask.duckdb(question) == ask.reference(question, halves.to_pylist()) == {(): (4,)}
    monkeypatch.setattr(emit, "_half_even", lambda y: f"TRY_CAST(floor({y} + 0.5) AS BIGINT)")
    assert ask.duckdb(question) == {(): (6,)}


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
    "other": ["BLOB", "INTEGER[]", "STRUCT(a INTEGER)", "TIMESTAMP WITH TIME ZONE", "TIME", "INTERVAL"],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_physical_type_belongs_to_one_family(family):
    for name in FAMILIES[family]:
        assert Source("t", {"x": name}).family("x") == family


def test_a_private_value_never_enters_the_statement(asker):
    secret = pa.table({"x": ["canary"], "who": ["canary"]})
    ask = asker(secret, {"x": sf.Category("a", "b")}, sf.Unit("who", max_rows=1, max_groups=1))
    engine = DuckDB({"people": ask.table})
    assert "canary" not in engine.statement(ask.plan("SELECT x, COUNT(*), COUNT(DISTINCT who) FROM people GROUP BY x"))
    engine.close()


def test_a_predicate_over_rows_reads_no_released_number():
    for leaf in (Key(0), Estimate(0)):
        with pytest.raises(TypeError, match="reads columns only"):
            emit._test(leaf)
