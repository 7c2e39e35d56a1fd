# SPDX-License-Identifier: Apache-2.0
"""The same rows in many physical forms: files, databases, types and collations.

Tests vary values; systems also break by the form of a table. Each form writes one table into a
folder of its own, and says how it is declared.
"""

import csv
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import duckdb
import pyarrow as pa
from pyarrow import compute, parquet

from sfumato.audit.made_up import key_columns, with_source
from sfumato.metadata.table import Table

# Writes a table into a folder; returns the source, and other options of ``Table``.
Write: TypeAlias = Callable[[pa.Table, Table, Path], tuple[object, dict[str, Any]]]

_DUCKDB_COLLATIONS = ("NOCASE", "NOACCENT", "NFC")
_SQLITE_COLLATIONS = ("BINARY", "NOCASE", "RTRIM")


@dataclass(frozen=True, slots=True)
class Form:
    """A physical form in which a table can be stored, such as an Arrow table or a file format.

    >>> [form.name for form in FORMS][:2]
    ['arrow', 'arrow dictionary']
    """

    name: str
    write: Write

    def declare(self, frame: pa.Table, table: Table, folder: Path) -> Table:
        """Writes the rows of a table in this form; returns the declaration that reads them."""
        folder.mkdir(parents=True, exist_ok=True)
        source, options = self.write(frame, table, folder)
        return with_source(table, source, **options)


def _arrow(change: Callable[[pa.Table], pa.Table]) -> Write:
    return lambda frame, table, folder: (change(frame), {})


def _cast(of: Callable[[pa.DataType], bool], to: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    """Casts the columns of some types; one whose values do not fit stays."""

    def change(frame: pa.Table) -> pa.Table:
        for place, field in enumerate(frame.schema):
            if of(field.type):
                try:
                    column = frame.column(place).cast(to)
                except pa.ArrowInvalid:
                    continue
                frame = frame.set_column(place, field.name, column)
        return frame

    return change


def _dictionaries(frame: pa.Table) -> pa.Table:
    for place, field in enumerate(frame.schema):
        if pa.types.is_string(field.type):
            frame = frame.set_column(place, field.name, frame.column(place).dictionary_encode())
    return frame


def _days(frame: pa.Table) -> pa.Table:
    """Writes the columns of times that are all midnights as days."""
    for place, field in enumerate(frame.schema):
        if pa.types.is_timestamp(field.type):
            days = frame.column(place).cast(pa.date32())
            if days.cast(field.type) == frame.column(place):
                frame = frame.set_column(place, field.name, days)
    return frame


def _chunks(frame: pa.Table) -> pa.Table:
    return pa.concat_tables([frame.slice(start, 3) for start in range(0, len(frame), 3)])


def _parquet(change: Callable[[pa.Table], pa.Table] = lambda frame: frame, **options: Any) -> Write:
    def write(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
        parquet.write_table(change(frame), folder / "rows.parquet", **options)
        return folder / "rows.parquet", {}

    return write


def _parquet_folder(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
    for start in range(0, len(frame), 4):
        parquet.write_table(frame.slice(start, 4), folder / f"{start}.parquet")
    return folder, {}


def _linked_folder(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
    """A folder in which a symbolic link leads to a part of the rows."""
    real, linked = folder / "real", folder / "linked"
    real.mkdir()
    linked.mkdir()
    half = len(frame) // 2
    parquet.write_table(frame.slice(0, half), linked / "0.parquet")
    parquet.write_table(frame.slice(half), real / "1.parquet")
    (linked / "more").symlink_to(real, target_is_directory=True)
    return linked, {}


def _hive_folder(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
    """A folder whose parts have the values of a text column in their names."""
    texts = [name for name in _texts(frame) if name in table.columns]
    if not texts:
        return _parquet_folder(frame, table, folder)
    name = texts[0]
    column = frame[name]
    for value in dict.fromkeys(column.to_pylist()):
        chosen = compute.is_null(column) if value is None else compute.equal(column, value)
        spelled = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe="")
        part = folder / f"{name}={spelled}"
        part.mkdir()
        rows = frame.filter(compute.fill_null(chosen, fill_value=False)).drop_columns([name])
        parquet.write_table(rows, part / "0.parquet")
    return folder, {}


def _csv(
    *,
    encoding: str = "utf-8",
    newline: str = "\n",
    quote: int = csv.QUOTE_MINIMAL,
    change: Callable[[pa.Table], pa.Table] = lambda frame: frame,
) -> Write:
    declared = {} if encoding in ("utf-8", "utf-8-sig") else {"encoding": encoding}

    def write(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
        path = folder / "rows.csv"
        with path.open("w", encoding=encoding, newline="") as lines:
            writer = csv.writer(lines, lineterminator=newline, quoting=quote)  # type: ignore[arg-type]
            writer.writerow(frame.column_names)
            columns = (column.to_pylist() for column in change(frame).columns)
            for row in zip(*columns, strict=True):
                writer.writerow([_text(value) for value in row])
        return path, declared

    return write


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _duckdb(
    types: Callable[[pa.Table, Table], dict[str, str]], after: str = "", name: str = "t"
) -> Write:
    """A table of a DuckDB file, with its columns in the types of ``types`` where it has some."""

    def write(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
        path = folder / "rows.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.register("given", frame)
            connection.execute("CREATE TABLE plain AS SELECT * FROM given")
            known = connection.execute("SELECT name, type FROM pragma_table_info('plain')")
            columns = dict(known.fetchall()) | types(frame, table)
            listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
            connection.execute(f"CREATE TABLE t ({listed})")
            connection.execute("INSERT INTO t SELECT * FROM given")
            connection.execute("DROP TABLE plain")
            if after:
                connection.execute(after.format(column=frame.column_names[0]))
        return path, {"table": name}

    return write


def _generated(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
    """A table of a DuckDB file whose columns are computed from others."""
    path = folder / "rows.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", frame)
        known = connection.execute("SELECT column_name, column_type FROM (DESCRIBE given)")
        columns = ", ".join(
            f'"stored {name}" {kind}, "{name}" {kind} GENERATED ALWAYS AS ("stored {name}")'
            for name, kind in known.fetchall()
        )
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.execute("INSERT INTO t SELECT * FROM given")
    return path, {"table": "t"}


def _texts(frame: pa.Table) -> list[str]:
    return [field.name for field in frame.schema if pa.types.is_string(field.type)]


def _collated(collation: str, *, unit: bool) -> Callable[[pa.Table, Table], dict[str, str]]:
    """Texts with a collation: those of the unit's id, or all others."""

    def types(frame: pa.Table, table: Table) -> dict[str, str]:
        chosen = [name for name in _texts(frame) if (name in key_columns(table)) is unit]
        return dict.fromkeys(chosen, f"VARCHAR COLLATE {collation}")

    return types


def _enums(frame: pa.Table, table: Table) -> dict[str, str]:
    types = {}
    for name in _texts(frame):
        values = sorted({value for value in frame[name].to_pylist() if value is not None})
        quoted = ", ".join("'{}'".format(value.replace("'", "''")) for value in values)
        types[name] = f"ENUM ({quoted})"
    return types


def _narrow(frame: pa.Table, table: Table) -> dict[str, str]:
    """Integers as decimals, dates as times."""
    types = {}
    for field in frame.schema:
        if pa.types.is_int64(field.type):
            types[field.name] = "DECIMAL(30, 3)"
        elif pa.types.is_date(field.type):
            types[field.name] = "TIMESTAMP"
    return types


def _as_it_is(frame: pa.Table, table: Table) -> dict[str, str]:
    return {}


def _sqlite(collation: str) -> Write:
    def write(frame: pa.Table, table: Table, folder: Path) -> tuple[object, dict[str, Any]]:
        path = folder / "rows.sqlite"
        columns = ", ".join(_sqlite_column(field, collation) for field in frame.schema)
        places = ", ".join("?" for _ in frame.schema)
        rows = zip(*(column.to_pylist() for column in frame.columns), strict=True)
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(f"CREATE TABLE t ({columns})")
            given = [[_stored(value) for value in row] for row in rows]
            connection.executemany(f"INSERT INTO t VALUES ({places})", given)
        connection.close()
        return path, {"table": "t"}

    return write


def _sqlite_column(field: pa.Field, collation: str) -> str:
    if pa.types.is_integer(field.type) or pa.types.is_boolean(field.type):
        return f'"{field.name}" INTEGER'
    if pa.types.is_floating(field.type):
        return f'"{field.name}" REAL'
    return f'"{field.name}" TEXT COLLATE {collation}'


def _stored(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _every() -> Iterator[Form]:
    is_text = pa.types.is_string
    yield Form("arrow", _arrow(lambda frame: frame))
    yield Form("arrow dictionary", _arrow(_dictionaries))
    yield Form("arrow large text", _arrow(_cast(is_text, pa.large_string())))
    yield Form("arrow text view", _arrow(_cast(is_text, pa.string_view())))
    yield Form("arrow chunks", _arrow(_chunks))
    yield Form("arrow narrow integers", _arrow(_cast(pa.types.is_int64, pa.int16())))
    yield Form("arrow, midnights as days", _arrow(_days))
    yield Form("arrow decimals", _arrow(_cast(pa.types.is_int64, pa.decimal128(30, 2))))
    yield Form("parquet", _parquet())
    yield Form(
        "parquet, groups of 2 rows",
        _parquet(row_group_size=2, use_dictionary=False, write_statistics=False),
    )
    for unit in ("s", "ms", "ns"):
        changed = _cast(pa.types.is_timestamp, pa.timestamp(unit))
        yield Form(f"parquet, times in {unit}", _parquet(changed))
    yield Form("parquet folder", _parquet_folder)
    yield Form("folder with a symbolic link", _linked_folder)
    yield Form("folder with hive keys", _hive_folder)
    yield Form("csv", _csv())
    yield Form("csv, midnights as days", _csv(change=_days))
    yield Form("csv with a byte order mark", _csv(encoding="utf-8-sig"))
    yield Form("csv, CRLF, all quoted", _csv(newline="\r\n", quote=csv.QUOTE_ALL))
    yield Form("csv in UTF-16", _csv(encoding="utf-16"))
    yield Form("csv in GB 18030", _csv(encoding="gb18030"))
    yield Form("duckdb", _duckdb(_as_it_is))
    yield Form("duckdb, generated columns", _generated)
    for collation in _DUCKDB_COLLATIONS:
        yield Form(f"duckdb, {collation} values", _duckdb(_collated(collation, unit=False)))
        yield Form(f"duckdb, {collation} unit", _duckdb(_collated(collation, unit=True)))
    yield Form("duckdb enum", _duckdb(_enums))
    yield Form("duckdb decimals and times", _duckdb(_narrow))
    yield Form("duckdb view", _duckdb(_as_it_is, "CREATE VIEW u AS SELECT * FROM t", "u"))
    yield Form("duckdb index", _duckdb(_as_it_is, 'CREATE INDEX i ON t ("{column}")'))
    for collation in _SQLITE_COLLATIONS:
        yield Form(f"sqlite {collation}", _sqlite(collation))


FORMS: Sequence[Form] = tuple(_every())
