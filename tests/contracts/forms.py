# SPDX-License-Identifier: Apache-2.0
"""The same made-up rows in every physical form that a source may have.

Each form gives the integers of the reference engine, or is refused by name when it is opened: by
its schema, whatever its rows are.
"""

import datetime
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.engines.duckdb_printer import text
from sfumato.metadata.column import ColumnType
from tests.contracts import excel

if TYPE_CHECKING:
    from tools.mariadb import MariaDB

Rows: TypeAlias = list[dict[str, Any]]
# The arguments of ``sf.Table`` that say where rows are and how they are written.
Options: TypeAlias = Mapping[str, Any]

# Texts differ by case, accent, composition, width and a blank at the end.
WORDS = ("a", "A", "b", "B", "é", "É", "e\u0301", "e", "a ", "\uff41")
COLUMNS: Mapping[str, ColumnType] = {
    "w": sf.Category("a", "A", "b", "é", "É", "e\u0301", "e", missing="B"),
    "t": sf.Text(),
    "n": sf.Integer(0, 10),
    "x": sf.Real(0, 1, step="0.25"),
    "d": sf.Date("2000-01-01", "2000-12-31"),
    # every form stores dates alone: a time is their midnight
    "m": sf.Timestamp("2000-01-01", "2000-12-31", zone="Europe/London", step=1800),
    "f": sf.Boolean(),
}
IDS = ("P0", "p0", "P1", "p1", "é", "e\u0301", "P0 ")
UNIT = sf.Unit("who", max_rows=2, max_groups=2)
APART = sf.Unit("who", max_rows=2, max_groups=2, spellings_apart=True)
STATEMENTS = (
    "SELECT COUNT(*) AS n, COUNT(w) AS w, COUNT(DISTINCT who) AS u FROM t",
    "SELECT w, COUNT(*) AS n, SUM(n) AS s FROM t GROUP BY w",
    "SELECT t, COUNT(*) AS n FROM t GROUP BY t",
    "SELECT COUNT(*) AS n, AVG(x) AS m FROM t WHERE w IN ('a', 'É') OR t LIKE 'A%'",
    "SELECT MONTH(d) AS m, COUNT(*) AS n, COUNT_IF(HOUR(m) = 0) AS h FROM t GROUP BY MONTH(d)",
    "SELECT f, MEDIAN(n) AS m, COUNT(DISTINCT t) AS k FROM t GROUP BY f",
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a form is built: a folder of its own, and the servers that are there."""

    folder: Path
    postgres: str = ""
    mariadb: "MariaDB | None" = None


@dataclass(frozen=True, slots=True)
class Form:
    """A physical form of rows.

    ``refused``: words of the refusal; "" if it is read. ``apart``: its unit declares that spellings
    are units. ``server``: the field of ``Place`` that it needs, if any.
    """

    name: str
    build: Callable[[Rows, Place], Options]
    refused: str = ""
    apart: bool = False
    server: str = ""

    def table(self, rows: Rows, place: Place) -> sf.Table:
        """Builds the form, and returns the table that declares it."""
        unit = APART if self.apart else UNIT
        return sf.Table(**self.build(rows, place), unit=unit, columns=COLUMNS)

    def __str__(self) -> str:
        return self.name


def made_up_rows(count: int, seed: int) -> Rows:
    """Returns rows with values inside, on and beyond the bounds, and missing ones."""
    dice = random.Random(seed)
    first = datetime.date(2000, 1, 1)
    rows = []
    for _ in range(count):
        row: dict[str, Any] = {
            "who": dice.choice(IDS),
            "w": dice.choice(WORDS),
            "t": dice.choice(WORDS),
            "n": dice.randrange(-2, 13),
            "x": dice.randrange(-1, 6) / 4,
            "d": first + datetime.timedelta(dice.randrange(-3, 370)),
            "m": first + datetime.timedelta(dice.randrange(-3, 370)),
            "f": dice.random() < 0.5,
        }
        for name in row:
            if dice.random() < 0.08:
                row[name] = None
        rows.append(row)
    return rows


# --- frames --------------------------------------------------------------------------------

_TYPES = {
    "who": pa.string(),
    "w": pa.string(),
    "t": pa.string(),
    "n": pa.int64(),
    "x": pa.float64(),
    "d": pa.date32(),
    "m": pa.date32(),
    "f": pa.bool_(),
}
_TEXTS = ("who", "w", "t")


def arrow(rows: Rows) -> pa.Table:
    """Returns rows as an Arrow table of plain types."""
    return pa.Table.from_pylist(rows, pa.schema(list(_TYPES.items())))


def cast(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Returns an Arrow table with other types of some columns."""
    for name, kind in types.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(kind))
    return table


def _frame(rows: Rows, _: Place, **types: pa.DataType) -> Options:
    return {"source": cast(arrow(rows), types)}


def _chunked(rows: Rows, _: Place) -> Options:
    table = arrow(rows)
    slices = [table.slice(start, 3) for start in range(0, len(table), 3)]
    return {"source": pa.concat_tables([table.slice(0, 0), *slices])}


def _sliced(rows: Rows, _: Place) -> Options:
    before = arrow([*made_up_rows(5, seed=99), *rows, *made_up_rows(5, seed=98)])
    return {"source": before.slice(5, len(rows))}


class _Spelled(pa.ExtensionType):
    """A type of a user's own, stored as strings."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "sfumato.spelled")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> "_Spelled":
        return cls()


def _extension(rows: Rows, _: Place) -> Options:
    table = arrow(rows)
    stored = pa.ExtensionArray.from_storage(_Spelled(), table["w"].combine_chunks())
    return {"source": table.set_column(table.schema.get_field_index("w"), "w", stored)}


def _run_ends(rows: Rows, _: Place) -> Options:
    table = arrow(rows)
    encoded = pyarrow.compute.run_end_encode(table["w"].combine_chunks())
    return {"source": table.set_column(table.schema.get_field_index("w"), "w", encoded)}


def _pandas(rows: Rows, _: Place, **types: str) -> Options:
    return {"source": pd.DataFrame(rows, columns=list(_TYPES), dtype=object).astype(types)}


def _polars(rows: Rows, _: Place, **types: Any) -> Options:
    frame = pl.from_arrow(arrow(rows))
    assert isinstance(frame, pl.DataFrame)
    return {"source": frame.cast(types)}


def _relation(rows: Rows, place: Place) -> Options:
    """A relation of DuckDB over a column with a collation: Arrow has none."""
    options = _in_duckdb(rows, place, w="VARCHAR COLLATE NOCASE", who="VARCHAR COLLATE NOCASE")
    connection = duckdb.connect(options["source"], read_only=True)
    connection.execute("SET default_collation = 'NOCASE'")
    return {"source": connection.table("t")}


_DICTIONARY = pa.dictionary(pa.int8(), pa.string())
_NOT_READ = "and the data holds"
FRAMES = (
    Form("Arrow", _frame),
    Form("Arrow, dictionary", partial(_frame, **dict.fromkeys(_TEXTS, _DICTIONARY))),
    Form("Arrow, large strings", partial(_frame, **dict.fromkeys(_TEXTS, pa.large_string()))),
    Form("Arrow, string views", partial(_frame, **dict.fromkeys(_TEXTS, pa.string_view()))),
    Form("Arrow, chunks of three rows", _chunked),
    Form("Arrow, a slice", _sliced),
    Form("Arrow, an extension type", _extension),
    Form("Arrow, runs", _run_ends),
    Form("Arrow, int8 and float32", partial(_frame, n=pa.int8(), x=pa.float32())),
    Form("Arrow, decimals", partial(_frame, n=pa.decimal128(30, 2), x=pa.decimal128(9, 2))),
    Form("Arrow, date64", partial(_frame, d=pa.date64())),
    Form("Arrow, moments in seconds", partial(_frame, d=pa.timestamp("s"))),
    Form("Arrow, moments in nanoseconds", partial(_frame, d=pa.timestamp("ns"))),
    Form("Arrow, moments of a zone", partial(_frame, d=pa.timestamp("us", "UTC")), _NOT_READ),
    Form("Arrow, bytes", partial(_frame, w=pa.binary()), _NOT_READ),
    Form("pandas, objects", _pandas),
    Form("pandas, strings", partial(_pandas, **dict.fromkeys(_TEXTS, "string"))),
    Form("pandas, categories", partial(_pandas, w="category", t="category", n="Int8")),
    Form("polars", _polars),
    Form("polars, categories", partial(_polars, w=pl.Categorical, t=pl.Enum(list(WORDS)))),
    Form("a relation of DuckDB", _relation),
)


# --- files ---------------------------------------------------------------------------------


def _parquet(rows: Rows, place: Place, **options: Any) -> Options:
    path = place.folder / "t.parquet"
    table = cast(arrow(rows), options.pop("types", {}))
    pq.write_table(table, path, **options)
    return {"source": path}


def _parquet_of_duckdb(rows: Rows, place: Place, options: str = "") -> Options:
    path = place.folder / "t.parquet"
    with duckdb.connect() as connection:
        connection.register("rows", arrow(rows))
        connection.execute(f"COPY rows TO {text(str(path))} (FORMAT parquet{options})")
    return {"source": path}


def _parquet_of_polars(rows: Rows, place: Place) -> Options:
    path = place.folder / "t.parquet"
    _polars(rows, place, w=pl.Categorical)["source"].write_parquet(path)
    return {"source": path}


def _parts(rows: Rows) -> list[pa.Table]:
    """Returns rows in two tables."""
    table = arrow(rows)
    return [table.slice(0, len(rows) // 3), table.slice(len(rows) // 3)]


def _folder(rows: Rows, place: Place, pattern: str = "", name: str = "part.parquet") -> Options:
    folder = place.folder / "data"
    for number, part in enumerate(_parts(rows)):
        (folder / str(number)).mkdir(parents=True)
        pq.write_table(part, folder / str(number) / name)
    (folder / "_SUCCESS").touch()
    return {"source": folder / pattern if pattern else folder}


def _hive(rows: Rows, place: Place) -> Options:
    """Files of one key each; their writer spells signs and a missing key as Hive does."""
    folder = place.folder / "data"
    keys = pyarrow.dataset.partitioning(pa.schema([("w", pa.string())]), flavor="hive")
    pyarrow.dataset.write_dataset(arrow(rows), folder, format="parquet", partitioning=keys)
    return {"source": folder}


def _linked_file(rows: Rows, place: Place) -> Options:
    folder = place.folder / "data"
    folder.mkdir()
    first, second = _parts(rows)
    pq.write_table(first, folder / "first.parquet")
    pq.write_table(second, place.folder / "second.parquet")
    (folder / "second.parquet").symlink_to(place.folder / "second.parquet")
    return {"source": folder}


def _linked_folder(rows: Rows, place: Place, pattern: str = "") -> Options:
    folder = place.folder / "data"
    (place.folder / "elsewhere").mkdir()
    folder.mkdir()
    first, second = _parts(rows)
    pq.write_table(first, folder / "first.parquet")
    pq.write_table(second, place.folder / "elsewhere" / "second.parquet")
    (folder / "more").symlink_to(place.folder / "elsewhere")
    return {"source": folder / pattern if pattern else folder}


def _csv(
    rows: Rows, place: Place, end: str = "\n", above: Sequence[str] = (), **declared: Any
) -> Options:
    """A CSV file; every text is quoted, NULL is an empty field, ``above`` are lines before it."""
    path = place.folder / "t.csv"
    sign = declared.get("delimiter", ",")
    lines = [*above, sign.join(_TYPES), *(sign.join(map(_field, row.values())) for row in rows)]
    written = "".join(line + end for line in lines)
    path.write_bytes(written.encode(declared.get("encoding", "utf-8")))
    return {"source": path, **declared}


def _field(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)


def _excel(rows: Rows, place: Place) -> Options:
    path = place.folder / "t.xlsx"
    lines = [list(map(excel.text, _TYPES))]
    lines += [list(map(_cell, row.values())) for row in rows]
    excel.workbook(path, {"rows": lines})
    return {"source": path, "sheet": "rows"}


def _cell(value: object) -> str:
    match value:
        case None:
            return excel.EMPTY
        case bool():
            return excel.truth(value)
        case str():
            return excel.text(value)
        case datetime.date():
            return excel.number((value - datetime.date(1899, 12, 30)).days, excel.DAY)
        case _:
            return excel.number(value)


FILES = (
    Form("Parquet", _parquet),
    Form("Parquet, groups of two rows", partial(_parquet, row_group_size=2)),
    Form(
        "Parquet, no dictionary, no statistics",
        partial(_parquet, use_dictionary=False, write_statistics=False, compression="zstd"),
    ),
    Form(
        "Parquet, INT96",
        partial(_parquet, types={"d": pa.timestamp("us")}, use_deprecated_int96_timestamps=True),
    ),
    Form("Parquet, microseconds", partial(_parquet, types={"d": pa.timestamp("us")})),
    Form("Parquet, milliseconds", partial(_parquet, types={"d": pa.timestamp("ms")}), _NOT_READ),
    Form(
        "Parquet, a dictionary of Arrow's",
        partial(_parquet, types=dict.fromkeys(_TEXTS, _DICTIONARY)),
    ),
    Form(
        "Parquet, delta encoding",
        partial(
            _parquet,
            use_dictionary=False,
            column_encoding={
                "w": "DELTA_BYTE_ARRAY",
                "t": "DELTA_LENGTH_BYTE_ARRAY",
                "n": "DELTA_BINARY_PACKED",
            },
        ),
    ),
    Form("Parquet of DuckDB", _parquet_of_duckdb),
    Form(
        "Parquet of DuckDB, version 2", partial(_parquet_of_duckdb, options=", PARQUET_VERSION v2")
    ),
    Form("Parquet of polars", _parquet_of_polars),
    Form("a folder of Parquet", _folder),
    Form("a folder of Parquet, capitals", partial(_folder, name="part.PARQUET")),
    Form("a pattern of Parquet", partial(_folder, pattern="*/*.parquet")),
    Form(
        "a pattern of Parquet, capitals",
        partial(_folder, pattern="**/*.parquet", name="part.PARQUET"),
    ),
    Form("a folder with keys of Hive", _hive),
    Form("a folder with a link to a file", _linked_file),
    Form("a folder with a link to a folder", _linked_folder, "symbolic link"),
    Form(
        "a pattern that names a link to a folder",
        partial(_linked_folder, pattern="../*/*.parquet"),
    ),
    Form(
        "a pattern over a link to a folder",
        partial(_linked_folder, pattern="**/*.parquet"),
        "symbolic link",
    ),
    Form("CSV", _csv),
    Form("CSV, line ends of Windows", partial(_csv, end="\r\n")),
    Form("CSV, line ends of an old Mac", partial(_csv, end="\r")),
    Form("CSV, names in line 3", partial(_csv, above=["a title", ""], header_row=3)),
    Form("CSV, semicolons", partial(_csv, delimiter=";")),
    Form("CSV, UTF-16", partial(_csv, encoding="utf-16")),
    Form("CSV, GB18030", partial(_csv, encoding="gb18030")),
    Form("Excel", _excel),
)


# --- DuckDB --------------------------------------------------------------------------------

_IN_DUCKDB = {
    "who": "VARCHAR",
    "w": "VARCHAR",
    "t": "VARCHAR",
    "n": "BIGINT",
    "x": "DOUBLE",
    "d": "DATE",
    "m": "DATE",
    "f": "BOOLEAN",
}


def _in_duckdb(rows: Rows, place: Place, more: str = "", table: str = "t", **types: str) -> Options:
    """A table of a DuckDB file; ``more`` are statements that follow."""
    path = place.folder / "t.duckdb"
    columns = ", ".join(f"{name} {kind}" for name, kind in (_IN_DUCKDB | types).items())
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", arrow(rows))
        connection.execute(f"CREATE TABLE t ({columns}); INSERT INTO t SELECT * FROM rows")
        connection.execute(more or "SELECT 1")
    return {"source": path, "table": table}


def _collated(collation: str, *names: str) -> partial[Options]:
    """A table whose columns of some names have a collation."""
    return partial(_in_duckdb, **dict.fromkeys(names, f"VARCHAR COLLATE {collation}"))


_ENUM = f"ENUM ({', '.join(map(text, WORDS))})"
_COLLATIONS = ("NOCASE", "NOACCENT", "NOCASE.NOACCENT", "NFC", "de", "icu_noaccent")
_HAS_NO_TABLE = "has no table"
IN_DUCKDB = (
    Form("DuckDB", _in_duckdb),
    *(Form(f"DuckDB, values {name}", _collated(name, "w", "t")) for name in _COLLATIONS),
    *(Form(f"DuckDB, ids {name}", _collated(name, "who"), "COLLATE") for name in _COLLATIONS),
    *(
        Form(f"DuckDB, ids {name}, apart", _collated(name, *_TEXTS), apart=True)
        for name in _COLLATIONS
    ),
    Form("DuckDB, COLLATE C", _collated("C", *_TEXTS)),
    Form("DuckDB, enumerations", partial(_in_duckdb, w=_ENUM, t=_ENUM)),
    Form(
        "DuckDB, an enumeration of ids",
        partial(_in_duckdb, who=f"ENUM ({', '.join(map(text, IDS))})"),
    ),
    Form("DuckDB, narrow types", partial(_in_duckdb, n="TINYINT", x="FLOAT", d="TIMESTAMP_S")),
    Form("DuckDB, decimals", partial(_in_duckdb, n="DECIMAL(9,3)", x="DECIMAL(4,2)")),
    Form("DuckDB, wide integers", partial(_in_duckdb, n="HUGEINT", d="TIMESTAMP")),
    Form("DuckDB, texts", partial(_in_duckdb, n="VARCHAR", x="VARCHAR", d="VARCHAR", f="VARCHAR")),
    Form(
        "DuckDB, an index",
        partial(
            _collated("NOCASE", "w", "t"), more="CREATE INDEX i ON t(w); CREATE INDEX j ON t(t)"
        ),
    ),
    Form(
        "DuckDB, deleted rows",
        partial(
            _in_duckdb,
            more="INSERT INTO t SELECT * REPLACE ('gone' AS who) FROM t; CHECKPOINT;"
            "DELETE FROM t WHERE who = 'gone'; UPDATE t SET n = n + 1; UPDATE t SET n = n - 1",
        ),
    ),
    Form(
        "DuckDB, a default of another collation",
        partial(
            _in_duckdb,
            more="SET default_collation = 'NOCASE'; CREATE TABLE u AS SELECT * FROM t",
            table="u",
        ),
    ),
    Form(
        "DuckDB, a copy of collated columns",
        partial(_collated("NOCASE", *_TEXTS), more="CREATE TABLE u AS SELECT * FROM t", table="u"),
        "COLLATE",
    ),
    Form(
        "DuckDB, a view",
        partial(_in_duckdb, more="CREATE VIEW u AS SELECT * FROM t", table="u"),
        _HAS_NO_TABLE,
    ),
    Form(
        "DuckDB, another schema",
        partial(
            _in_duckdb, more="CREATE SCHEMA s; CREATE TABLE s.u AS SELECT * FROM t", table="s.u"
        ),
        _HAS_NO_TABLE,
    ),
    Form(
        "DuckDB, a computed column",
        partial(
            _in_duckdb,
            table="u",
            more="CREATE TABLE u (who VARCHAR, w VARCHAR, t VARCHAR, n INT, x DOUBLE, d DATE, "
            "m DATE, f BOOLEAN, twice INT AS (n * 2)); INSERT INTO u SELECT * FROM t",
        ),
        _HAS_NO_TABLE,
    ),
    *(
        Form(
            f"DuckDB, {kind}",
            partial(
                _in_duckdb,
                more=f"CREATE TABLE u AS SELECT * REPLACE ({value} AS w) FROM t",
                table="u",
            ),
            _NOT_READ,
        )
        for kind, value in {
            "a list": "[w]",
            "a structure": "{'w': w}",
            "a map": "MAP {'w': w}",
            "JSON": "to_json(w)",
            "bytes": "encode(w)",
            "a union": "union_value(w := w)",
        }.items()
    ),
)


# --- SQLite --------------------------------------------------------------------------------


def _in_sqlite(
    rows: Rows, place: Place, more: Sequence[str] = (), table: str = "t", **types: str
) -> Options:
    """A table of an SQLite file; days are written as text."""
    path = place.folder / "t.db"
    columns = ", ".join(f"{name} {types.get(name, '')}" for name in _TYPES)
    places = ", ".join("?" * len(_TYPES))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE t ({columns}{types.get('last', '')})")
        connection.executemany(f"INSERT INTO t VALUES ({places})", map(_in_text, rows))
        for statement in more:
            connection.execute(statement)
    return {"source": path, "table": table}


def _in_text(row: Mapping[str, Any]) -> list[Any]:
    """Returns the values of a row; a day as text."""
    return [str(value) if isinstance(value, datetime.date) else value for value in row.values()]


IN_SQLITE = (
    *(
        Form(
            f"SQLite, {collation}",
            partial(_in_sqlite, **dict.fromkeys(_TEXTS, f"TEXT COLLATE {collation}")),
        )
        for collation in ("BINARY", "NOCASE", "RTRIM")
    ),
    *(
        Form(f"SQLite, {kind or 'no type'}", partial(_in_sqlite, **dict.fromkeys(_TYPES, kind)))
        for kind in ("", "TEXT", "INTEGER", "REAL", "NUMERIC", "BLOB")
    ),
    Form(
        "SQLite, an index without case",
        partial(_in_sqlite, more=["CREATE INDEX i ON t(w COLLATE NOCASE)", "ANALYZE"]),
    ),
    Form(
        "SQLite, a view",
        partial(_in_sqlite, more=["CREATE VIEW u AS SELECT * FROM t"], table="u"),
        _HAS_NO_TABLE,
    ),
)


# --- servers -------------------------------------------------------------------------------

_IN_POSTGRES = {
    "who": "text",
    "w": "text",
    "t": "text",
    "n": "bigint",
    "x": "double precision",
    "d": "date",
    "m": "date",
    "f": "boolean",
}


def _in_postgres(
    rows: Rows,
    place: Place,
    before: Sequence[str] = (),
    more: Sequence[str] = (),
    table: str = "t",
    **types: str,
) -> Options:
    """A table of a PostgreSQL server; ``before`` are statements before it, ``more`` after it."""
    import psycopg  # the drivers of servers are needed by their forms alone

    end = types.pop("end", "")
    columns = ", ".join(f"{name} {kind}" for name, kind in (_IN_POSTGRES | types).items())
    reset = "DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public"
    made = *reset, *before, f"CREATE TABLE t ({columns}){end}"
    places = ", ".join(["%s"] * len(_TYPES))
    with psycopg.connect(place.postgres, autocommit=True) as connection:
        for statement in (*made, *(line for line in more if "PARTITION OF" in line)):
            connection.execute(statement.encode())
        with connection.cursor() as cursor:
            values = [list(row.values()) for row in rows]
            cursor.executemany(f"INSERT INTO t VALUES ({places})".encode(), values)
        for statement in more:
            if "PARTITION OF" not in statement:
                connection.execute(statement.encode())
    return {"source": place.postgres, "table": table}


_WITHOUT_CASE = (
    "CREATE COLLATION without_case "
    "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
)
_MOOD = f"CREATE TYPE mood AS ENUM ({', '.join(map(text, WORDS))})"
_MOVED = (
    "WITH moved AS (DELETE FROM ONLY t WHERE f RETURNING *) INSERT INTO child SELECT * FROM moved"
)
_postgres = partial(Form, server="postgres")
IN_POSTGRES = (
    _postgres("PostgreSQL", _in_postgres),
    _postgres(
        "PostgreSQL, a collation without case",
        partial(
            _in_postgres,
            before=[_WITHOUT_CASE],
            **dict.fromkeys(_TEXTS, "text COLLATE without_case"),
        ),
    ),
    _postgres(
        "PostgreSQL, varchar and numbers",
        partial(_in_postgres, w="varchar(9)", n="numeric", x="numeric(9,3)", d="timestamp"),
    ),
    _postgres("PostgreSQL, short numbers", partial(_in_postgres, n="smallint", x="real")),
    _postgres("PostgreSQL, an enumeration", partial(_in_postgres, before=[_MOOD], w="mood")),
    _postgres(
        "PostgreSQL, partitions",
        partial(
            _in_postgres,
            end=" PARTITION BY LIST (f)",
            more=[
                "CREATE TABLE yes PARTITION OF t FOR VALUES IN (true)",
                "CREATE TABLE other PARTITION OF t DEFAULT",
            ],
        ),
    ),
    _postgres(
        "PostgreSQL, a child",
        partial(
            _in_postgres,
            more=["CREATE TABLE child () INHERITS (t)", _MOVED],
        ),
    ),
    _postgres(
        "PostgreSQL, a materialized view",
        partial(_in_postgres, more=["CREATE MATERIALIZED VIEW u AS SELECT * FROM t"], table="u"),
    ),
    _postgres(
        "PostgreSQL, a view",
        partial(_in_postgres, more=["CREATE VIEW u AS SELECT * FROM t"], table="u"),
        _HAS_NO_TABLE,
    ),
    _postgres(
        "PostgreSQL, a domain",
        partial(_in_postgres, before=["CREATE DOMAIN word AS text"], w="word"),
        _NOT_READ,
    ),
    _postgres(
        "PostgreSQL, citext",
        partial(_in_postgres, before=["CREATE EXTENSION citext"], w="citext"),
        _NOT_READ,
    ),
    _postgres(
        "PostgreSQL, an array",
        partial(_in_postgres, more=["ALTER TABLE t ALTER w TYPE text[] USING ARRAY[w]"]),
        _NOT_READ,
    ),
    _postgres(
        "PostgreSQL, JSON",
        partial(_in_postgres, more=["ALTER TABLE t ALTER w TYPE jsonb USING to_jsonb(w)"]),
        _NOT_READ,
    ),
)
_IN_MARIADB = {
    "who": "VARCHAR(9)",
    "w": "VARCHAR(9)",
    "t": "VARCHAR(9)",
    "n": "BIGINT",
    "x": "DOUBLE",
    "d": "DATE",
    "m": "DATE",
    "f": "BOOLEAN",
}


def _in_mariadb(
    rows: Rows, place: Place, more: Sequence[str] = (), table: str = "t", **types: str
) -> Options:
    """A table of a MariaDB server; ``more`` are statements after it."""
    import pymysql  # the drivers of servers are needed by their forms alone

    server = place.mariadb
    assert server is not None, "a form of MariaDB, without the server"
    source = server.emptied()
    end = types.pop("end", "")
    columns = ", ".join(f"{name} {kind}" for name, kind in (_IN_MARIADB | types).items())
    places = ", ".join(["%s"] * len(_TYPES))
    with pymysql.connect(
        unix_socket=str(server.socket), user="root", database="clinic", autocommit=True
    ) as root:
        cursor = root.cursor()
        cursor.execute(f"CREATE TABLE t ({columns}) CHARACTER SET utf8mb4 {end}")
        values = [list(row.values()) for row in rows]
        cursor.executemany(f"INSERT INTO t VALUES ({places})", values)
        for statement in more:
            cursor.execute(statement)
    return {"source": source, "table": table}


_mariadb = partial(Form, server="mariadb")
IN_MARIADB = (
    _mariadb("MariaDB", _in_mariadb),
    *(
        _mariadb(
            f"MariaDB, {name}",
            partial(_in_mariadb, **dict.fromkeys(_TEXTS, f"VARCHAR(9) COLLATE {name}")),
        )
        for name in ("utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_nopad_ci")
    ),
    _mariadb(
        "MariaDB, an enumeration",
        partial(_in_mariadb, f="VARCHAR(1)", more=["ALTER TABLE t MODIFY f ENUM ('0', '1')"]),
    ),
    _mariadb("MariaDB, long texts", partial(_in_mariadb, w="LONGTEXT", t="TINYTEXT")),
    _mariadb(
        "MariaDB, decimals", partial(_in_mariadb, n="DECIMAL(9,3)", x="DECIMAL(30,2)", d="DATETIME")
    ),
    _mariadb("MariaDB, narrow types", partial(_in_mariadb, n="TINYINT", x="FLOAT", f="BIT(1)")),
    _mariadb("MariaDB, partitions", partial(_in_mariadb, end="PARTITION BY KEY (w) PARTITIONS 3")),
    _mariadb(
        "MariaDB, an index",
        partial(
            _in_mariadb, w="VARCHAR(9) COLLATE utf8mb4_general_ci", more=["CREATE INDEX i ON t(w)"]
        ),
    ),
    _mariadb(
        "MariaDB, a view",
        partial(_in_mariadb, more=["CREATE VIEW u AS SELECT * FROM t"], table="u"),
        _HAS_NO_TABLE,
    ),
    _mariadb("MariaDB, MyISAM", partial(_in_mariadb, end="ENGINE = MyISAM"), _HAS_NO_TABLE),
    _mariadb("MariaDB, bytes", partial(_in_mariadb, w="VARBINARY(9)"), _NOT_READ),
)

FORMS = (*FRAMES, *FILES, *IN_DUCKDB, *IN_SQLITE, *IN_POSTGRES, *IN_MARIADB)
