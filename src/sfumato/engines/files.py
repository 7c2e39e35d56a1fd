# SPDX-License-Identifier: Apache-2.0
"""Builds the FROM item of a declared file; no type, header or dialect is guessed from its content.

``sources`` uses it to open Parquet and CSV files.
"""

import csv
import logging
import os
import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TypeAlias

import duckdb

from sfumato.engines.csv_decoding import UNDECODED, Decoded, decoded, without_undecoded
from sfumato.engines.duckdb_printer import text
from sfumato.errors import InvalidDeclaration, InvalidSource, shown, without_secrets
from sfumato.metadata.file_text import DELIMITERS, ENCODINGS

_OWNER = logging.getLogger("sfumato.owner")
_LONGEST_HEADER = 1_000_000
# Fields of a line; a quoted one may have ends of lines in it.
_RECORD = re.compile(rb'(?:[^"\r\n]|"[^"]*")*')
_SQLITE = b"SQLite format 3\0"

# The identity of a file, without reading it: device, inode, size, time of change.
Mark: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Form:
    """A CSV file, the names of its columns, what separates its fields, and its UTF-8."""

    path: Path
    header: list[str]
    delimiter: str
    copy: Decoded
    header_row: int = 1


def marks(paths: Sequence[Path]) -> tuple[Mark | None, ...]:
    """Returns a mark for the file at each path (None if there is none); a changed file has another
    mark.
    """
    return tuple(_mark(path) for path in paths)


def _mark(path: Path) -> Mark | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths are the same file, by name or by link; neither needs to exist."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def from_file(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    path: Path,
    delimiter: str | None = None,
    copy: Decoded | None = None,
    header_row: int = 1,
) -> str:
    """Returns the FROM item of a Parquet or CSV file.

    ``delimiter`` is that of a CSV file, by default a comma. ``copy`` is the result of ``utf8_copy``
    for a file whose encoding is declared. ``header_row`` is the line number of the header; lines
    above it are skipped.

    Raises:
        InvalidSource: there is no such file, it is of another type, or it is CSV with a line that
            is cut off, too long, wrongly quoted or not UTF-8.
    """
    require_file(name, path)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        require_parquet_names(connection, name, path, path)
        return f"read_parquet({text(str(path))}, hive_partitioning = false)"
    if suffix != ".csv":
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is neither .parquet nor .csv.",
            allowed="Parquet, CSV, Excel (.xlsx), an Arrow frame",
        )
    form = _form(name, path, delimiter or ",", copy, header_row)
    if not _is_well_formed(connection, form):
        # outside the handler: not even the context of the error may quote a line
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is not well-formed CSV.",
            allowed=f"UTF-8, fields separated by {form.delimiter!r}, one kind of line end, "
            "as many fields in each line as in the first, RFC 4180 quotes",
            remedy=_other_delimiter(form.header)
            or "Declare encoding= if it is not UTF-8 (gb18030, cp1252). If it is, 'sfumato check' "
            "and the log 'sfumato.owner' have the line: write the file again, or as Parquet.",
        )
    item = _csv(form)
    if form.copy.lost:
        return without_undecoded(item, form.header)
    return item


def utf8_copy(
    name: str,
    path: Path,
    encoding: str,
    folder: Path,
) -> Decoded:
    """Returns a UTF-8 version of a CSV file; writes a copy to the private folder if needed.

    The number of byte sequences that do not decode goes to the owner's log; their fields are
    missing values.

    Raises:
        InvalidSource: there is no such file, it cannot be read, or the copy cannot be written.
    """
    require_file(name, path)
    failed = ""
    try:
        copy = decoded(path, encoding, folder)
    except (OSError, UnicodeError) as failure:
        failed = type(failure).__name__
    if failed == "UnicodeError":
        raise _not_decoded(name, path, encoding)
    if failed:
        raise unreadable(name, path, failed)
    if copy.lost:
        _OWNER.warning(
            "table %s: %s: places that do not decode as %s: %d; their fields are missing",
            name,
            path,
            encoding,
            copy.lost,
        )
    return copy


def require_file(name: str, path: Path) -> None:
    """Refuses a path that is not a file, or that DuckDB would read as a glob pattern."""
    if set("*?[") & set(str(path)):
        raise InvalidSource(
            f"Table {name!r}: {shown(path)} is a pattern.",
            allowed="the path of one file, without * ? [",
        )
    if not path.is_file():
        raise InvalidSource(f"Table {name!r}: no file {shown(path)}.", remedy="Check the path.")


def unreadable(
    name: str,
    source: object,
    kind: str,
) -> InvalidSource:
    """Returns the error for a table whose file cannot be read; its message quotes nothing of the
    content.
    """
    return InvalidSource(
        f"Table {name!r}: {without_secrets(str(source)[:200])!r} cannot be read ({kind}).",
        allowed="an intact Parquet, CSV or Excel file, or an Arrow, pandas or polars table",
    )


def _other_delimiter(columns: Sequence[str]) -> str:
    """Returns a remedy if the only column has a name with another delimiter in it.

    >>> _other_delimiter(["age;sex"])
    "Its first line is separated by ';': declare delimiter=';'."
    """
    if len(columns) != 1:
        return ""
    for delimiter in DELIMITERS:
        if delimiter in columns[0]:
            return f"Its first line is separated by {delimiter!r}: declare delimiter={delimiter!r}."
    return ""


def require_names(
    name: str,
    source: object,
    columns: Sequence[str],
) -> None:
    """Refuses a source with two columns of one name, because a declaration would be ambiguous."""
    seen: dict[str, int] = {}
    for place, column in enumerate(columns, 1):
        other = seen.setdefault(column.lower(), place)
        if other != place:
            # the name may be a value: the first line of a file without a header
            _OWNER.error(
                "table %s: columns %d and %d are both called %r", name, other, place, column
            )
            raise InvalidSource(
                f"Table {name!r}: {shown(source)} has one name twice, "
                f"for its columns {other} and {place}.",
                allowed="a name for each column, small and capital letters being the same",
                remedy="Rename one of them, or leave it out; the log 'sfumato.owner' has the name.",
            )


def no_column(
    table: str,
    column: str,
    columns: Sequence[str],
) -> InvalidDeclaration:
    """Returns the error for a declared column that the data lacks.

    The names of the columns in the data go to the owner's log only.
    """
    _OWNER.error(
        "table %s has the columns: %s",
        table,
        ", ".join(map(repr, columns)),
    )
    remedy = _other_delimiter(columns)
    if not remedy:
        lower = [name.lower() for name in columns]
        remedy = "Has the file a header line?"
        if column.lower() in lower:
            remedy = "One differs in the case of its letters."
    return InvalidDeclaration(
        f"Table {table!r} has no column {column!r} among its {len(columns):,}.",
        allowed="a column that the data has; the log 'sfumato.owner' has their names",
        remedy=remedy,
    )


def require_parquet_names(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, place: Path
) -> None:
    """Refuses a Parquet file in which two columns have the same name.

    ``place`` is the declared path, which is shown in the error.
    """
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
    # the schema lists the children of a column after it; the first row is the file itself
    names = []
    inside = [rows[0][1] or 0] if rows else []
    for column, children in rows[1:]:
        while not inside[-1]:
            inside.pop()
        if len(inside) == 1:
            names.append(column)
        inside[-1] -= 1
        inside.append(children or 0)
    require_names(name, place, names)


def _is_well_formed(
    connection: duckdb.DuckDBPyConnection,
    form: _Form,
) -> bool:
    try:
        connection.execute(f"SELECT count(COLUMNS(*)) FROM {_csv(form, checked=True)}").fetchall()
    except (duckdb.Error, RuntimeError) as failure:
        line = re.search(r"Line: (\d+)", str(failure))
        where = f" at line {line[1]}" if line else ""
        _OWNER.error("%s is not well-formed CSV%s", form.path, where)
        return False
    return True


def _csv(
    form: _Form,
    *,
    checked: bool = False,
) -> str:
    """Returns the FROM item of a CSV file.

    When a file is opened, every line is checked (``checked``), so no line can change what another
    one means. When it is read for a question, no line can raise an error, even if the file has
    changed.
    """
    columns = ", ".join(f"{text(column)}: 'VARCHAR'" for column in form.header)
    total = "ignore_errors = true, null_padding = true, strict_mode = false, parallel = false"
    mode = "strict_mode = true" if checked else total
    return (
        f"read_csv({text(str(form.copy.path))}, auto_detect = false, header = true, "
        f"skip = {form.header_row - 1}, "
        f"delim = {text(form.delimiter)}, quote = '\"', escape = '\"', "
        f"columns = {{{columns}}}, hive_partitioning = false, {mode})"
    )


def _form(
    name: str,
    path: Path,
    delimiter: str,
    copy: Decoded | None = None,
    header_row: int = 1,
) -> _Form:
    """Reads the record of the names only, so that the rows cannot affect the result.

    It ends with its line, of Unix, Windows or an old Mac, unless a quote is open there.
    """
    copy = copy or Decoded(path)
    header = []
    head = record = b""
    line = failed = ""
    try:
        with copy.path.open("rb") as file:
            head = file.read(_LONGEST_HEADER)
        # DuckDB counts lines by quotes, so those above the names have none
        above = re.match(rb'([^"\r\n]*(?>\r\n|\r|\n)){%d}' % (header_row - 1), head)
        start = above.end() if above else len(head)
        record = next(_RECORD.finditer(head, start))[0]
        line = record.decode("utf-8-sig")
        lines = StringIO(line, newline="")
        header = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        failed = type(failure).__name__
    # outside the handler: the context of the error would quote the line
    if failed == "UnicodeDecodeError" or UNDECODED in line:
        raise _not_decoded(name, path, "the declared encoding" if copy.lost else "UTF-8")
    if failed:
        raise unreadable(name, path, failed)
    if not head.strip():
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is empty.",
            remedy="Its first line has the names of the columns. Was it written to the end?",
        )
    if not header or "" in header:
        raise InvalidSource(
            f"Table {name!r}: line {header_row} of {path.name!r} does not name each column, "
            "or a line above it has a quote.",
            remedy=f"Write the names of the columns there, with {delimiter!r} between them, "
            "or declare the line that has them: header_row=3.",
        )
    if head.startswith(BOM_UTF8) and len(record.splitlines()) > 1:
        # DuckDB would read the last line of the names as a row
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} begins with a byte order mark, and one of its names "
            "has a line break.",
            remedy="Declare encoding='utf-8': a copy without the mark is read.",
        )
    require_names(name, path.name, header)
    return _Form(path, header, delimiter, copy, header_row)


def _not_decoded(name: str, path: Path, encoding: str) -> InvalidSource:
    problem = f"the first line of {path.name!r} is not {encoding}"
    if encoding == "utf-16":
        problem = f"{path.name!r} does not begin with a byte order mark of UTF-16"
    return InvalidSource(
        f"Table {name!r}: {problem}.",
        allowed=f"encoding= of {', '.join(ENCODINGS)}",
        remedy="Declare the encoding in which it was written, or write it again as UTF-8.",
    )
