# SPDX-License-Identifier: Apache-2.0
"""Writes synthetic rows to files and databases; each table is marked as synthetic, with its charge.

Rows come in parts (a batch of every table), so memory does not grow with their number.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.errors import Failed, InvalidSource, WrongUse, shown
from sfumato.metadata.server import POSTGRES, is_postgres
from sfumato.query.answer_files import rows_for_excel

if TYPE_CHECKING:
    import psycopg

# Some rows of each table, and what every table says of itself.
Part: TypeAlias = dict[str, pa.Table]
Facts: TypeAlias = Mapping[str, str]
_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_date, "date"),
)
_BESIDE = pyarrow.csv.WriteOptions(include_header=False)


def described(facts: Facts, table: str) -> str:
    """Returns the facts about a table as JSON, for its metadata.

    >>> described({"synthetic": "true"}, "people")
    '{"synthetic": "true", "table": "people"}'
    """
    return json.dumps({**facts, "table": table})


def write_files(
    parts: Iterator[Part],
    folder: Path,
    facts: Facts,
    *,
    csv: bool = True,
    excel: bool = False,
) -> list[Path]:
    """Writes one Parquet file per table; with ``csv`` a CSV file and a JSON file with its facts.

    ``excel``: the CSV file is written as Excel opens it.

    Raises:
        WrongUse: as ``require_replaceable``; then nothing was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[Path, Any] = {}
    written: list[Path] = []
    with ExitStack() as opened:
        for part in parts:
            if not writers:
                require_replaceable(folder, part, csv=csv)
            for name, rows in part.items():
                known = rows.replace_schema_metadata({**facts, "table": name})
                for path in rows_files(folder, name, csv=csv):
                    if path not in writers:
                        writers[path] = opened.enter_context(
                            _writer(path, known.schema, excel=excel)
                        )
                    writers[path].write_table(known)
    for path in writers:
        written.append(path)
        if path.suffix == ".csv":
            beside = path.with_name(f"{path.name}.json")
            told = {**facts, "table": path.stem}
            beside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
            written.append(beside)
    return written


def rows_files(
    folder: Path,
    name: str,
    *,
    csv: bool = True,
) -> list[Path]:
    """Returns the paths of the files of a table."""
    endings = (".parquet", ".csv") if csv else (".parquet",)
    return [folder / f"{name}{ending}" for ending in endings]


def require_replaceable(
    folder: Path,
    names: Iterable[str],
    *,
    csv: bool = True,
) -> None:
    """Refuses to overwrite a file that is not marked as synthetic: it may hold private rows.

    Raises:
        WrongUse: there is such a file.
    """
    for name in names:
        for path in rows_files(folder, name, csv=csv):
            if path.exists() and not _is_synthetic(path):
                raise WrongUse(
                    f"{shown(str(path))} would be overwritten, and it is not marked as synthetic.",
                    remedy="Write into another folder.",
                )


def _is_synthetic(path: Path) -> bool:
    """Whether a file is marked as synthetic, in its metadata or in the JSON file beside it."""
    try:
        if path.suffix == ".csv":
            told = json.loads(path.with_name(f"{path.name}.json").read_bytes())
            return isinstance(told, dict) and told.get("synthetic") == "true"
        known = pyarrow.parquet.read_schema(path).metadata or {}
    except (OSError, ValueError):
        # ValueError: no JSON, and what pyarrow raises of a file that is no Parquet
        return False
    return bool(known.get(b"synthetic") == b"true")


class _ExcelWriter:
    """Writes tables one after the other into a CSV file, as Excel opens it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def __enter__(self) -> "_ExcelWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write_table(self, rows: pa.Table) -> None:
        """Writes rows; the first ones below the names of their columns."""
        self._file.write(rows_for_excel(rows, is_first=not self._file.tell()))


def _writer(path: Path, schema: pa.Schema, *, excel: bool) -> Any:
    """Returns a Parquet or CSV writer, by the file's suffix."""
    if path.suffix == ".csv" and excel:
        return _ExcelWriter(path)
    if path.suffix == ".csv":
        return pyarrow.csv.CSVWriter(path, schema)
    return pyarrow.parquet.ParquetWriter(path, schema)


def write_duckdb(
    parts: Iterator[Part],
    path: Path,
    facts: Facts,
) -> None:
    """Writes the tables into a new or existing DuckDB file, with comments, in one transaction.

    Raises:
        WrongUse: the file is no DuckDB database, or has a table of the same name.
    """
    try:
        with duckdb.connect(path) as database:
            database.begin()
            made: set[str] = set()
            for part in parts:
                for name, rows in part.items():
                    _insert(database, name, rows, is_new=name not in made)
                    made.add(name)
            for name in made:
                told = described(facts, name).replace("'", "''")
                database.execute(f"COMMENT ON TABLE {_quote(name)} IS '{told}'")
            database.commit()
    except duckdb.Error as failed:
        raise WrongUse(
            f"The rows cannot be written to {shown(path)}: {failed}",
            allowed="a DuckDB file that has no such tables, or a new one",
        ) from None


def _insert(
    database: duckdb.DuckDBPyConnection,
    name: str,
    rows: pa.Table,
    *,
    is_new: bool,
) -> None:
    """Inserts rows into a table, which is created with the first ones."""
    database.register("sfumato_rows", rows)
    start = f"INSERT INTO {_quote(name)}"
    if is_new:
        start = f"CREATE TABLE {_quote(name)} AS"
    database.execute(f"{start} SELECT * FROM sfumato_rows")
    database.unregister("sfumato_rows")


def copy_postgres(
    parts: Iterator[Part],
    address: str,
    facts: Facts,
) -> None:
    """Creates the tables on a PostgreSQL server and copies the rows, with comments, in one
    transaction.

    Raises:
        WrongUse: no address, or the server has a table of the same name.
        InvalidSource: psycopg is missing.
        Failed: the server is not reached or refuses.
    """
    if not is_postgres(address):
        raise WrongUse("The address of a PostgreSQL server.", allowed=POSTGRES)
    try:
        import psycopg  # optional: the extra sfumato[postgres]
    except ImportError:
        raise InvalidSource(
            "Rows for a PostgreSQL server need the package psycopg.",
            remedy="pip install 'sfumato[postgres]'",
        ) from None
    trouble: Failed | WrongUse | None = None
    try:
        with psycopg.connect(address) as connection:
            _copy_tables(connection, parts, facts)
    except psycopg.errors.DuplicateTable:
        trouble = WrongUse(
            "The server has a table of this name.", remedy="Drop it, or name another database."
        )
    except psycopg.Error as failed:
        # the message of a connection may contain its address
        trouble = Failed(
            f"The rows were not written to the server: {type(failed).__name__}.",
            remedy="Try the same address with psql, which says more: does the server answer, is "
            "there such a database, and may the user create tables in it?",
        )
    if trouble is not None:
        raise trouble


def _copy_tables(
    connection: "psycopg.Connection[Any]",
    parts: Iterator[Part],
    facts: Facts,
) -> None:
    """Creates, fills and comments the tables in one transaction."""
    created: set[str] = set()
    for part in parts:
        for name, rows in part.items():
            if name not in created:
                connection.execute(_create_statement(name, rows.schema).encode())
                told = described(facts, name).replace("'", "''")
                connection.execute(f"COMMENT ON TABLE {_quote(name)} IS '{told}'".encode())
                created.add(name)
            text = io.BytesIO()
            # strings have quotes, so that an empty string is no missing value
            pyarrow.csv.write_csv(rows, text, _BESIDE)
            with connection.cursor().copy(f"COPY {_quote(name)} FROM STDIN CSV".encode()) as copy:
                copy.write(text.getvalue())


def _create_statement(name: str, schema: pa.Schema) -> str:
    """Returns the CREATE TABLE statement for a schema."""
    columns = []
    for one in schema:
        columns.append(f"{_quote(one.name)} {_postgres_type(one.type)}")
    return f"CREATE TABLE {_quote(name)} ({', '.join(columns)})"


def _postgres_type(kind: pa.DataType) -> str:
    """Returns the PostgreSQL type for an Arrow type; text if there is no other."""
    for is_kind, name in _TYPES:
        if is_kind(kind):
            return name
    if pa.types.is_timestamp(kind):
        zone = "with" if kind.tz else "without"
        return f"timestamp {zone} time zone"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return "text"


def _quote(name: str) -> str:
    """Quotes an SQL identifier."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
