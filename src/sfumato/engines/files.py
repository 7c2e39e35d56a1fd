# SPDX-License-Identifier: Apache-2.0
"""A declared file as a FROM item, nothing sniffed."""

import csv
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import duckdb

from sfumato.engines.value_sql import text
from sfumato.errors import InvalidDeclaration, InvalidSource, shown, without_secrets

_OWNER = logging.getLogger("sfumato.owner")
_LONGEST_HEADER = 1_000_000

# The file that lies at a path, as far as that is seen without reading it: device, inode, size, time.
Mark: TypeAlias = tuple[int, int, int, int]


def marks(paths: Sequence[Path]) -> tuple[Mark | None, ...]:
    """What tells files from others at the same paths; None where there is none."""
    return tuple(_mark(path) for path in paths)


def _mark(path: Path) -> Mark | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths are one file: by their names, or by a link of any kind; neither needs to be there."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False


def from_file(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> str:
    """The FROM item of a Parquet or CSV file.

    Raises:
        InvalidSource: no such file, one of another kind, or CSV with a line that is cut, too
            long, wrongly quoted or not UTF-8.
    """
    if set("*?[") & set(str(path)):
        raise InvalidSource(
            f"Table {name!r}: {shown(path)} is a pattern.",
            allowed="the path of one file, without * ? [",
        )
    if not path.is_file():
        raise InvalidSource(f"Table {name!r}: no file {shown(path)}.", remedy="Check the path.")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        require_parquet_names(connection, name, path, path)
        return f"read_parquet({text(str(path))}, hive_partitioning = false)"
    if suffix != ".csv":
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is neither .parquet nor .csv.",
            allowed="Parquet, CSV, an Arrow frame",
        )
    header = _header(name, path)
    if not _is_well_formed(connection, path, header):
        # outside the handler: not even the context of the error may quote a line
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is not well-formed CSV.",
            allowed="UTF-8, commas, one kind of line end, as many fields in each line as in the first, RFC 4180 quotes",
            remedy=with_commas(header)
            or "'sfumato check' and the log 'sfumato.owner' have the line. Write the file again, or as Parquet.",
        )
    return _csv(path, header)


def unreadable(name: str, source: object, kind: str) -> InvalidSource:
    """What cannot be read, without a word of what is in it."""
    return InvalidSource(
        f"Table {name!r}: {without_secrets(str(source)[:200])!r} cannot be read ({kind}).",
        allowed="an intact Parquet or CSV (UTF-8) file, or an Arrow, pandas or polars table",
    )


def with_commas(columns: Sequence[str]) -> str:
    """What to do about a file whose only column has a name with another separator in it.

    >>> with_commas(["age;sex"])
    "Its first line is separated by ';': write the file with commas, or as Parquet."
    """
    found = next((each for each in ";\t|" if len(columns) == 1 and each in columns[0]), "")
    return (
        f"Its first line is separated by {found!r}: write the file with commas, or as Parquet."
        if found
        else ""
    )


def require_names(name: str, source: object, columns: Sequence[str]) -> None:
    """Refuses a source in which two columns have one name: which of them a declaration means is not said."""
    seen: dict[str, int] = {}
    for place, column in enumerate(columns, 1):
        other = seen.setdefault(column.lower(), place)
        if other != place:
            # what is called so may be a value: the first line of a file without a header
            _OWNER.error(
                "table %s: columns %d and %d are both called %r", name, other, place, column
            )
            raise InvalidSource(
                f"Table {name!r}: {shown(source)} has one name twice, for its columns {other} and {place}.",
                allowed="a name for each column, small and capital letters being the same",
                remedy="Rename one of them, or leave it out; the log 'sfumato.owner' has the name.",
            )


def no_column(table: str, column: str, columns: Sequence[str]) -> InvalidDeclaration:
    """The refusal of a declared column that the data does not have; what it has is told to the owner alone."""
    _OWNER.error("table %s has the columns: %s", table, ", ".join(map(repr, columns)))
    other_case = column.lower() in [each.lower() for each in columns]
    return InvalidDeclaration(
        f"Table {table!r} has no column {column!r} among its {len(columns):,}.",
        allowed="a column that the data has; the log 'sfumato.owner' has their names",
        remedy=with_commas(columns)
        or (
            "One differs in the case of its letters."
            if other_case
            else "Has the file a header line?"
        ),
    )


def require_parquet_names(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, place: Path
) -> None:
    """Refuses a Parquet file in which two columns have one name; ``place`` is what was declared, to be shown."""
    rows: list[tuple[str, int | None]] = []
    failed = ""
    try:
        rows = connection.execute(
            f"SELECT name, num_children FROM parquet_schema({text(str(path))})"
        ).fetchall()
    except (duckdb.Error, RuntimeError) as failure:
        failed = type(failure).__name__
    if failed:
        _OWNER.error("table %s: %s cannot be read (%s)", name, path, failed)
        raise unreadable(name, place, failed)
    # the schema lists what a column holds after the column: the first row is the file itself
    names, inside = [], [rows[0][1] or 0] if rows else []
    for column, children in rows[1:]:
        while not inside[-1]:
            inside.pop()
        if len(inside) == 1:
            names.append(column)
        inside[-1] -= 1
        inside.append(children or 0)
    require_names(name, place, names)


def _is_well_formed(connection: duckdb.DuckDBPyConnection, path: Path, header: list[str]) -> bool:
    try:
        connection.execute(
            f"SELECT count(COLUMNS(*)) FROM {_csv(path, header, checked=True)}"
        ).fetchall()
    except (duckdb.Error, RuntimeError) as failure:
        line = re.search(r"Line: (\d+)", str(failure))
        _OWNER.error("%s is not well-formed CSV%s", path, f" at line {line[1]}" if line else "")
        return False
    return True


def _csv(path: Path, header: list[str], *, checked: bool = False) -> str:
    """The FROM item of a CSV file.

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
    header, failed = [], ""
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER).decode("utf-8-sig")
        header = next(csv.reader([line]), [])
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        failed = type(failure).__name__
    if failed:
        # outside the handler: the context of the error would hold the line
        raise unreadable(name, path, failed)
    if not header or "" in header:
        raise InvalidSource(
            f"Table {name!r}: the first line of {path.name!r} does not name each column.",
            remedy="Write the names of the columns there, with commas between them.",
        )
    require_names(name, path.name, header)
    return header
