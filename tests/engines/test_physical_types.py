# SPDX-License-Identifier: Apache-2.0
"""Every physical type of Arrow, Parquet and DuckDB, with values at its extremes: read like the
reference, or refused.

docs/engines.md has the table; PostgreSQL's types are in test_postgres, Spark's in
test_spark_source.
"""

import datetime
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import declared, value_sql
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.sources import opened
from sfumato.engines.sql_tree import Expression
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import CountRows
from sfumato.plan.relation import Scan
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey, Value
from tests.contracts.verbatim import Verbatim
from tests.contracts.world import plan

MOST, LEAST = 2**63 - 1, -(2**63)
WHOLE, DAY = sf.Integer(0, 9), sf.Date("1970-01-01", "1970-01-31")
# by number, by day and by text: each in both ways that a value is read
KINDS = (
    sf.Integer(0, 9, missing="N"),
    sf.Date("1970-01-01", "1970-01-31", missing="x"),
    sf.Category("0", "1970-01-01 00:00:00"),
    sf.Timestamp("1970-01-01", "1970-01-31", zone="Asia/Tokyo", missing="x"),
)


def moments(unit: str, zone: str | None = None) -> pa.Array:
    """Moments at the ends of 64 bits, one that everybody can hold, and none."""
    return pa.array([0, MOST, LEAST, LEAST + 2, 86_400, None], pa.int64()).cast(
        pa.timestamp(unit, zone), safe=False
    )


def wide(precision: int, scale: int) -> pa.Array:
    """Decimals at the ends of a type."""
    nines = "9" * precision + f"e-{scale}"
    return pa.array(
        [Decimal(0), Decimal(nines), Decimal(f"-{nines}"), None], pa.decimal128(precision, scale)
    )


INTEGERS = {
    f"{sign}int{bits}": pa.array(ends, getattr(pa, f"{sign}int{bits}")())
    for bits in (8, 16, 32, 64)
    for sign, ends in (
        ("", [0, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), None]),
        ("u", [0, 2**bits - 1, None]),
    )
}
FLOATS = [0.0, float("inf"), float("nan"), float("-inf"), None]
TEXTS = pa.array(["", "7", "\x00", "\U0010ffff", "9" * 400, None])
# what is read; of each the first value is 0, the first moment, or the empty text
READ = {
    **INTEGERS,
    **{f"timestamp[{unit}]": moments(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp[{unit}, Asia/Tokyo]": moments(unit, "Asia/Tokyo") for unit in ("us", "ns")},
    "date32": pa.array([0, 2**31 - 1, -(2**31), None], pa.int32()).cast(pa.date32()),
    "float32": pa.array([*FLOATS, 1e-45, 3e38], pa.float32()),
    "float64": pa.array([*FLOATS, 5e-324, 1.7e308]),
    **{f"decimal({p}, {s})": wide(p, s) for p, s in ((4, 2), (9, 2), (18, 0), (38, 0), (38, 38))},
    "string": TEXTS,
    "large_string": TEXTS.cast(pa.large_string()),
    "string_view": TEXTS.cast(pa.string_view()),
    "dictionary": TEXTS.dictionary_encode(),
    "bool": pa.array([False, True, None]),
    "null": pa.array([None, None], pa.null()),
}
UNREAD = {
    "binary": pa.array([b"", b"\xff", None]),
    "time32": pa.array([0, None], pa.time32("s")),
    "time64": pa.array([0, None], pa.time64("us")),
    "duration": pa.array([0, MOST, None], pa.duration("s")),
    "list": pa.array([[1], None]),
    "struct": pa.array([{"a": 1}, None]),
    "seconds with a zone": pa.array([0, MOST, None], pa.timestamp("s", "UTC")),
    "milliseconds with a zone": pa.array([0, MOST, None], pa.timestamp("ms", "UTC")),
    "decimal256": pa.array([Decimal(0), None], pa.decimal256(76, 0)),
    "float16": pa.array([0.0, None], pa.float16()),
}
# what Parquet holds otherwise than Arrow: as nothing that is read, or as another type
NOT_IN_PARQUET = ("timestamp[s]", "timestamp[ms]")
OTHERWISE = ("duration", "decimal256", "float16", "seconds with a zone")


def declaration(source: object, kind: object, table: str | None = None) -> sf.Table:
    """A source whose one column is declared as a kind."""
    return sf.Table(source, columns={"x": kind}, table=table)


def by_value(table: str, kind: object) -> Bounded:
    """How many rows have each value."""
    column = Column("x", kind)
    key = GroupKey(Value.of(column), None, missing=True)
    return plan(Scan(table, "", (column,)), CountRows(), keys=(key,))


def counted(source: object, kind: object) -> dict[object, int]:
    """How many rows have each value under a declaration."""
    with closing(DuckDB({"t": declaration(source, kind)})) as engine:
        (counts,) = engine.run(by_value("t", kind), "key")
    return {group[0]: count for group, (count,) in counts.items()}


def read_or_refused(source: object, rows: int, table: str | None = None) -> list[object]:
    """The declarations that fit; under each, every row is counted."""
    tables = {f"t{place}": declaration(source, kind, table) for place, kind in enumerate(KINDS)}
    fit = {name: tables[name] for name in fitting(tables)}
    if fit:
        with closing(DuckDB(fit)) as engine:
            for name, declared_as in fit.items():
                (counts,) = engine.run(by_value(name, declared_as.columns["x"]), "key")
                assert sum(count for (count,) in counts.values()) == rows, declared_as
    return [declared_as.columns["x"] for declared_as in fit.values()]


def fitting(tables: dict[str, sf.Table]) -> list[str]:
    """The tables that the engine can open: it opens its own as it is done here."""
    names = []
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        for name, table in tables.items():
            with suppress(InvalidDeclaration, InvalidSource):
                item = opened(connection, name, table, folder=Path(folder))
                declared.held(connection, tables, name, item)
                names.append(name)
    return names


def repeated(cells: pa.Array) -> pa.Table:
    """Values often enough to be stored as a dictionary of them."""
    return pa.table({"x": pa.concat_arrays([cells] * 50)})


@pytest.mark.parametrize("name", READ)
def test_a_frame_of_any_type_is_read(name):
    cells = repeated(READ[name])
    fit = read_or_refused(cells, len(cells))
    assert fit
    if name.startswith(("timestamp", "date")):
        # a dictionary of anything is what it is a dictionary of
        coded = pa.table({"x": cells["x"].combine_chunks().dictionary_encode()})
        assert read_or_refused(coded, len(cells)) == fit


def parquet(folder: Path, cells: pa.Table, **options: object) -> Path:
    path = folder / "data.parquet"
    pq.write_table(cells, path, **options)
    return path


@pytest.mark.parametrize("name", [each for each in READ if each not in NOT_IN_PARQUET])
def test_parquet_of_any_type_is_read(tmp_path, name):
    cells = repeated(READ[name])
    assert read_or_refused(parquet(tmp_path, cells), len(cells))


def test_old_moments_of_parquet_are_read(tmp_path):
    cells = pa.table({"x": pa.array([0, MOST, LEAST + 1, None], pa.timestamp("ns"))})
    assert read_or_refused(parquet(tmp_path, cells, use_deprecated_int96_timestamps=True), 4)


@pytest.mark.parametrize("name", UNREAD)
def test_a_type_without_a_meaning_is_refused_by_its_schema(tmp_path, name):
    cells = pa.table({"x": UNREAD[name]})
    assert read_or_refused(cells, 0) == []
    if name not in OTHERWISE:
        assert read_or_refused(parquet(tmp_path, cells), 0) == []


MILLISECONDS = pa.table({"x": pa.array([0, 10**15, None], pa.timestamp("ms")), "y": [1, 2, 3]})


def test_milliseconds_of_parquet_are_refused_whatever_they_are(tmp_path):
    for cells in (MILLISECONDS, MILLISECONDS.slice(0, 1), MILLISECONDS.slice(0, 0)):
        for path in (parquet(tmp_path, cells), tmp_path):
            with pytest.raises(
                InvalidDeclaration, match="holds TIMESTAMP of milliseconds"
            ) as refused:
                counted(path, DAY)
            assert "coerce_timestamps" in refused.value.remedy
    # what nobody declares is not read
    tables = {"t": sf.Table(tmp_path, columns={"y": WHOLE})}
    with closing(DuckDB(tables)) as engine:
        assert engine.run(plan(Scan("t", "", (Column("y", WHOLE),)), CountRows()), "key")
    assert counted(parquet(tmp_path, MILLISECONDS, coerce_timestamps="us"), DAY)


def test_milliseconds_that_are_read_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(declared, "_of_milliseconds", lambda *_: [])
    beyond = pa.table({"x": pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"), safe=False)})
    assert counted(parquet(tmp_path, MILLISECONDS.slice(0, 1)), DAY) == {0: 1}
    with pytest.raises(EngineFailed):
        counted(parquet(tmp_path, beyond), DAY)


def test_a_moment_that_is_printed_before_it_is_looked_at_is_noticed(tmp_path, monkeypatch):
    honest = value_sql.text_reading

    def after(raw: Expression, family: str) -> Expression:
        if family != "date":
            return honest(raw, family)
        text = printed(raw)
        sane = f"TRY_CAST({text} AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return Verbatim(f"TRY(CASE WHEN {sane} THEN TRY_CAST({text} AS VARCHAR) END)")

    path = parquet(tmp_path, repeated(READ["timestamp[us]"]))
    assert counted(path, sf.Text())
    monkeypatch.setattr(value_sql, "text_reading", after)
    with pytest.raises(EngineFailed):
        counted(path, sf.Text())


# --- tables of a DuckDB file -------------------------------------------------------------------

STORED = {
    "HUGEINT": (
        "170141183460469231731687303715884105727",
        "-170141183460469231731687303715884105728",
    ),
    "UHUGEINT": ("340282366920938463463374607431768211455", "0"),
    "UBIGINT": ("18446744073709551615", "0"),
    "BIGINT": (str(MOST), str(LEAST)),
    "TINYINT": ("127", "-128"),
    "TIMESTAMP": (
        "'infinity'",
        "'-infinity'",
        "'290309-12-22 (BC) 00:00:00'",
        "'294247-01-10 04:00:54.775806'",
    ),
    "TIMESTAMP_S": ("'infinity'", "'294247-01-10 04:00:54'"),
    "TIMESTAMP_MS": ("'infinity'", "'294247-01-10 04:00:54'"),
    "TIMESTAMP_NS": ("'infinity'", "'2262-04-11 23:47:16.854775806'", "'1677-09-22'"),
    "TIMESTAMPTZ": (
        "'infinity'",
        "'-infinity'",
        "'290309-12-22 (BC) 00:00:00+00'",
        "'294247-01-10 04:00:54.775806+00'",
    ),
    "DATE": ("'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'"),
    "UUID": ("'ffffffff-ffff-ffff-ffff-ffffffffffff'",),
    "DOUBLE": ("'nan'", "'inf'", "'-inf'", "1e308", "5e-324"),
    "FLOAT": ("'nan'", "'inf'", "3e38"),
    "DECIMAL(38,38)": ("'0." + "9" * 38 + "'",),
    "DECIMAL(18,3)": ("999999999999999.999",),
    "VARCHAR": ("''", "chr(0)", "repeat('9', 400)"),
    "ENUM('a', '7')": ("'a'", "'7'"),
    "BOOLEAN": ("true", "false"),
}
STORED_UNREAD = (
    "TIME",
    "INTERVAL",
    "BLOB",
    "BIT",
    "JSON",
    "BIGINT[]",
    "MAP(INT, INT)",
    "STRUCT(a INT)",
)


def database(folder: Path, kind: str, values: tuple[str, ...]) -> Path:
    path = folder / "data.duckdb"
    listed = ", ".join(f"({each})" for each in (*values, "NULL"))
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (x {kind})")
        for _ in range(50):
            connection.execute(f"INSERT INTO t VALUES {listed}")
    return path


@pytest.mark.parametrize("kind", STORED)
def test_a_stored_table_of_any_type_is_read(tmp_path, kind):
    path = database(tmp_path, kind, STORED[kind])
    assert read_or_refused(path, 50 * (len(STORED[kind]) + 1), "t")


@pytest.mark.parametrize("kind", STORED_UNREAD)
def test_a_stored_type_without_a_meaning_is_refused_by_its_schema(tmp_path, kind):
    assert read_or_refused(database(tmp_path, kind, ()), 0, "t") == []


def test_a_day_is_counted_where_it_is(tmp_path):
    """What is read above is not all missing."""
    for unit in ("s", "ms", "us", "ns"):
        found = counted(pa.table({"x": moments(unit)}), DAY)
        assert sum(found.values()) == 6 and found[0] >= 1 and found[None] >= 1
    assert counted(pa.table({"x": READ["date32"]}), DAY) == {None: 1, 0: 2, 30: 1}
    assert counted(pa.table({"x": [datetime.date(1970, 1, 3)]}), DAY) == {2: 1}
    assert counted(pa.table({"x": READ["uint64"]}), WHOLE) == {None: 1, 0: 1, 9: 1}


@pytest.mark.parametrize("missing", [None, "N"])
def test_a_date_that_has_no_string_is_clipped_whatever_means_missing(missing, tmp_path):
    """Days before the year 1, after the year 9999, and infinite ones; none of them is a marker."""
    days = ["10001-01-01", "0044-03-15 (BC)", "infinity", "-infinity", "1970-01-02"]
    path = tmp_path / "t.parquet"
    values = ", ".join(f"(DATE '{day}')" for day in days)
    duckdb.execute(f"COPY (SELECT * FROM (VALUES {values}) AS v(a)) TO '{path}' (FORMAT parquet)")
    kind = sf.Date("1970-01-01", "1970-01-03", missing=missing)
    with sf.connect(
        {"t": sf.Table(path, columns={"a": kind})},
        dataset="d",
        budget=sf.Budget(99),
        ledger=tmp_path / "l.db",
    ) as session:
        (facts,) = session.check_data().tables[0].columns
        assert (facts.read, facts.missing, facts.unread) == (5, 0, 0)
        assert (facts.below, facts.above) == (2, 2)
