# SPDX-License-Identifier: Apache-2.0
"""A declared file as a FROM item, nothing sniffed."""

import csv
import logging
import re
from pathlib import Path

import duckdb

from sfumato.engines.reading import text
from sfumato.errors import InvalidSource

_OWNER = logging.getLogger("sfumato.owner")
_LONGEST_HEADER = 1_000_000


def from_file(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> str:
    """The FROM item of a Parquet or CSV file.

    Raises:
        InvalidSource: no such file, one of another kind, or CSV with a line that is cut, too
            long, wrongly quoted or not UTF-8.
    """
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
    header = _header(name, path)
    if not _is_well_formed(connection, path, header):
        # outside the handler: not even the context of the error may quote a line
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is not well-formed CSV.",
            allowed="UTF-8, commas, one kind of line end, as many fields in each line as in the first, RFC 4180 quotes",
            remedy="'sfumato check' and the log 'sfumato.owner' have the line. Write the file again, or as Parquet.",
        )
    return _csv(path, header)


def unreadable(name: str, source: object, kind: str) -> InvalidSource:
    """What cannot be read, without a word of what is in it."""
    return InvalidSource(
        f"Table {name!r}: {str(source)[:200]!r} cannot be read ({kind}).",
        allowed="an intact Parquet or CSV (UTF-8) file, or an Arrow, pandas or polars table",
    )


def _is_well_formed(connection: duckdb.DuckDBPyConnection, path: Path, header: list[str]) -> bool:
    try:
        connection.execute(f"SELECT count(COLUMNS(*)) FROM {_csv(path, header, checked=True)}")
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
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER).decode("utf-8-sig")
        header = next(csv.reader([line]), [])
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        raise unreadable(name, path, type(failure).__name__) from None
    if not header or len(set(header)) != len(header) or "" in header:
        raise InvalidSource(f"Table {name!r}: the first line of {path.name!r} does not name each column once.")
    return header
