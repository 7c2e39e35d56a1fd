# SPDX-License-Identifier: Apache-2.0
"""DuckDB, embedded and locked down: it runs the SQL emitted from a bounded plan.

The connection reads the declared files and nothing else, loads no extension, and its
settings cannot be changed. Whatever goes wrong while it runs reaches the analyst as one
constant message (RULES 24); the owner's log gets the kind of failure, never its text,
which may quote values.
"""

import csv
import logging
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from sfumato.engines.base import Integers
from sfumato.engines.emit import Source, quote, statement, text, text_reading
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real, Text
from sfumato.metadata.table import Table
from sfumato.plan.relation import scanned
from sfumato.plan.status import Bounded

_OWNER = logging.getLogger("sfumato.owner")
# Without a handler of the owner nothing is printed: stderr may be what the analyst sees.
_OWNER.addHandler(logging.NullHandler())
_LONGEST_HEADER = 1_000_000


class DuckDB:
    """The engine over declared tables.

    Guarantees:
        an engine failure is one constant message

    Raises:
        InvalidSource: a file or frame that cannot be read.
        InvalidDeclaration: a declared column that the data does not have, or cannot hold.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        # spilled rows are personal data: a folder of our own, closed to others, gone with us
        self._spill = tempfile.mkdtemp(prefix="sfumato-")
        self._process = os.getpid()
        self._drop_spill = weakref.finalize(self, _drop, self._spill, self._process)
        self._lock = threading.Lock()
        self._connection = duckdb.connect(":memory:")
        self._declared = {name: _declared_types(table) for name, table in tables.items()}
        try:
            self._sources = {name: self._open(name, table) for name, table in tables.items()}
            self._lock_down([table.source for table in tables.values()])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drops the connection and everything it spilled."""
        if os.getpid() == self._process:
            self._connection.close()
            self._drop_spill()

    def read_through(self, tables: Mapping[str, Table]) -> None:
        """Reads every declared column once: a damaged page or text shows here, to the owner.

        Raises:
            InvalidSource: a column cannot be read to its end.
        """
        for name, table in tables.items():
            source = self._sources[name]
            for column in table.columns:
                reading = text_reading(quote(column), source.family(column))
                item = f"SELECT count(*) FROM {source.sql} WHERE length({reading}) < 0"
                if self._rows(item) is None:
                    raise InvalidSource(
                        f"Table {name!r}: column {column!r} cannot be read to its end.",
                        remedy="Write the file again. Until then a question about the column fails, and is charged.",
                    )

    def statement(self, plan: Bounded) -> str:
        """The SQL of a plan as the declarations alone make it: the same on any data (RULES 22).

        What runs differs from it by how the data happens to be stored: text that has to be
        read as numbers, whole numbers stored as floats.
        """
        name = scanned(plan.tracked.raw.relation).table
        return statement(plan, Source(quote(name), self._declared[name]), "<sampling key>")

    def run(self, plan: Bounded, sampling_key: str) -> Integers:
        """The exact integers of a plan."""
        sql = statement(plan, self._source(plan), sampling_key)
        width = len(plan.tracked.raw.keys)
        rows = self._rows(sql)
        if rows is None:
            # outside the handler, so that not even the context of our error holds its text
            raise EngineFailed()
        return {tuple(row[:width]): tuple(int(value) for value in row[width:]) for row in rows}

    def _rows(self, sql: str) -> list[tuple[Any, ...]] | None:
        try:
            with self._lock:
                return self._connection.execute(sql).fetchall()
        except (duckdb.Error, MemoryError, OSError, RuntimeError) as failure:
            _OWNER.error("the engine failed: %s", type(failure).__name__)
            return None

    def _source(self, plan: Bounded) -> Source:
        return self._sources[scanned(plan.tracked.raw.relation).table]

    def _open(self, name: str, table: Table) -> Source:
        sql = self._from_item(name, table.source)
        described, failed = [], ""
        try:
            described = self._connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()
        except (duckdb.Error, RuntimeError) as failure:
            failed = type(failure).__name__
        if failed:
            raise _unreadable(name, table.source, failed)
        source = Source(sql, {row[0]: row[1] for row in described})
        for column, kind in table.columns.items():
            _require_readable(name, source, column, kind)
        if table.unit is not None:
            _require_readable(name, source, table.unit.column, Text())
        return source

    def _from_item(self, name: str, source: object) -> str:
        if isinstance(source, str | Path):
            path = Path(source).absolute()
            item = _file(name, path)
            if item.startswith("read_csv"):
                self._require_well_formed(name, path)
            return item
        failed = ""
        try:
            import pyarrow  # an Arrow frame needs it, a file does not

            frame = pyarrow.table(source)
            self._connection.register(f"source_{name}", frame)
        except Exception as failure:
            failed = type(failure).__name__
        if failed:
            # outside the handler: Arrow quotes the value that it stumbled over
            raise _unreadable(name, type(source).__name__, failed)
        return quote(f"source_{name}")

    def _require_well_formed(self, name: str, path: Path) -> None:
        """Refuses a CSV file with a line that is cut, too long, wrongly quoted or not UTF-8."""
        if not self._is_well_formed(path, _header(name, path)):
            # outside the handler: not even the context of the error may quote a line
            raise InvalidSource(
                f"Table {name!r}: {path.name!r} is not well-formed CSV.",
                allowed="UTF-8, commas, one kind of line end, as many fields in each line as in the first, RFC 4180 quotes",
                remedy="'sfumato check' and the log 'sfumato.owner' have the line. Write the file again, or as Parquet.",
            )

    def _is_well_formed(self, path: Path, header: list[str]) -> bool:
        try:
            self._connection.execute(f"SELECT count(COLUMNS(*)) FROM {_csv(path, header, checked=True)}")
        except (duckdb.Error, RuntimeError) as failure:
            line = re.search(r"Line: (\d+)", str(failure))
            _OWNER.error("%s is not well-formed CSV%s", path, f" at line {line[1]}" if line else "")
            return False
        return True

    def _lock_down(self, sources: list[object]) -> None:
        paths = ", ".join(text(str(Path(source).absolute())) for source in sources if isinstance(source, str | Path))
        for setting in (
            f"SET temp_directory = {text(self._spill)}",
            f"SET allowed_paths = [{paths}]",
            f"SET allowed_directories = [{text(self._spill)}]",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET allow_community_extensions = false",
            "SET enable_external_access = false",
            "SET enable_progress_bar = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(setting)


def _drop(folder: str, process: int) -> None:
    """Removes a spill folder, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _declared_types(table: Table) -> dict[str, str]:
    """The physical types that fit the declarations best."""
    types = {table.unit.column: "VARCHAR"} if table.unit else {}
    for column, kind in table.columns.items():
        types[column] = (
            "DOUBLE" if isinstance(kind, Integer | Real) else "DATE" if isinstance(kind, Date) else "VARCHAR"
        )
    return types


def _file(name: str, path: Path) -> str:
    if set("*?[") & set(str(path)):
        raise InvalidSource(
            f"Table {name!r}: {str(path)!r} is a pattern.", allowed="the path of one file, without * ? ["
        )
    if not path.is_file():
        raise InvalidSource(f"Table {name!r}: no file {str(path)!r}.", remedy="Check the path.")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return f"read_parquet({text(str(path))}, hive_partitioning = false)"
    if suffix != ".csv":
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is neither .parquet nor .csv.", allowed="Parquet, CSV, an Arrow frame"
        )
    return _csv(path, _header(name, path))


def _csv(path: Path, header: list[str], *, checked: bool = False) -> str:
    """The FROM item of a CSV file, nothing sniffed.

    When it is opened every line is checked, so that one line can never change what another
    means; when it is asked nothing in it can raise, even if it was changed in between.
    """
    columns = ", ".join(f"{text(column)}: 'VARCHAR'" for column in header)
    total = "ignore_errors = true, null_padding = true, strict_mode = false, parallel = false"
    return (
        f"read_csv({text(str(path))}, auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
        f"columns = {{{columns}}}, hive_partitioning = false, {'strict_mode = true' if checked else total})"
    )


def _header(name: str, path: Path) -> list[str]:
    """The first line, and nothing after it: what the rows hold must not matter here."""
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER).decode("utf-8-sig")
        header = next(csv.reader([line]), [])
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        raise _unreadable(name, path, type(failure).__name__) from None
    if not header or len(set(header)) != len(header) or "" in header:
        raise InvalidSource(f"Table {name!r}: the first line of {path.name!r} does not name each column once.")
    return header


def _require_readable(table: str, source: Source, column: str, kind: ColumnType) -> None:
    if column not in source.types:
        raise InvalidDeclaration(
            f"Table {table!r} has no column {column!r}.",
            allowed=", ".join(source.types),
            remedy="Names are case-sensitive here.",
        )
    family = source.family(column)
    fits: tuple[str, ...]
    if isinstance(kind, Date):
        fits = ("date", "text", "null")
    elif isinstance(kind, Category | Boolean | Text):
        fits = ("text", "whole", "float", "decimal", "date", "boolean", "uuid", "null")
    else:
        fits = ("text", "whole", "float", "decimal", "boolean", "null")
    if family not in fits:
        raise InvalidDeclaration(
            f"Column {column!r} of table {table!r} is declared as {kind!r}, and the data holds {source.types[column]}.",
            remedy="Declare what it holds, or convert the column in the data.",
        )


def _unreadable(name: str, source: object, kind: str) -> InvalidSource:
    return InvalidSource(
        f"Table {name!r}: {str(source)[:200]!r} cannot be read ({kind}).",
        allowed="an intact Parquet or CSV (UTF-8) file, or an Arrow, pandas or polars table",
    )
