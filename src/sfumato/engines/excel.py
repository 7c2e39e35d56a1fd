# SPDX-License-Identifier: Apache-2.0
"""Reads the cells of one Excel sheet as strings, once, when the table is opened.

Excel types each cell by itself, whatever its column is declared as. So every cell is read as the
string by which values are compared (``text_of``). For a formula, the stored result is read.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sfumato.engines.files import require_file, require_names, unreadable
from sfumato.engines.value_codes import text_of
from sfumato.errors import InvalidSource
from sfumato.metadata.column import ColumnType, Date
from sfumato.metadata.date_format import in_format
from sfumato.metadata.moment_format import in_moment_format
from sfumato.metadata.table import Table
from sfumato.metadata.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow

_OWNER = logging.getLogger("sfumato.owner")
# What a protected workbook begins with (and one of Excel 97); others are ZIP files.
_PROTECTED = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BATCH = 10_000
_ISO = "%Y-%m-%d"

Row: TypeAlias = Sequence[object]


def read_sheet(name: str, table: Table) -> "pyarrow.Table":
    """Returns the declared sheet of a table as an Arrow table of strings.

    The header row names the columns; a column without a name is left out. A row without any value
    is left out too.

    Raises:
        InvalidSource: there is no such file or sheet, it is protected, it cannot be read, or its
            header row does not name columns.
    """
    path = Path(str(table.source)).absolute()
    require_file(name, path)
    _require_open(name, path)
    rows = _rows(name, path, table.sheet)
    header = _header(name, path, rows, table.header_row or 1)
    return _arrow(rows, header, table.columns)


def cell_text(cell: object, kind: ColumnType | None = None) -> str | None:
    """Returns the string of a cell; None for an empty cell.

    A date with or without a time is written in the format that the declared type reads.

    >>> cell_text(7.0), cell_text(0.5), cell_text(True), cell_text("")
    ('7', '0.5', 'true', None)
    >>> from datetime import datetime
    >>> noon = datetime(2024, 12, 31, 12)
    >>> cell_text(noon), cell_text(noon, Date("2024-01-01", "2024-12-31", format="%d/%m/%Y"))
    ('2024-12-31 12:00:00', '31/12/2024')
    """
    if cell == "":
        return None
    if isinstance(kind, Date) and isinstance(cell, date):
        return in_format(cell, kind.format or _ISO)
    if isinstance(kind, Timestamp) and kind.format is not None and isinstance(cell, date):
        return in_moment_format(cell, kind.format)
    return text_of(cell)


def _require_open(name: str, path: Path) -> None:
    with path.open("rb") as file:
        is_protected = file.read(len(_PROTECTED)) == _PROTECTED
    if is_protected:
        raise InvalidSource(
            f"Table {name!r}: {path.name!r} is protected by a password, or is of Excel 97.",
            allowed="an .xlsx file without a password",
            remedy="Open it in Excel, and save it as .xlsx without a password.",
        )


def _rows(
    name: str,
    path: Path,
    sheet: str | None,
) -> Iterator[Row]:
    """Returns the rows of a sheet, from its first one; of the first sheet if none is declared."""
    failed = ""
    try:
        from python_calamine import CalamineWorkbook  # an extra
    except ImportError:
        raise InvalidSource(
            f"Table {name!r}: Excel files need the package python-calamine.",
            remedy="pip install 'sfumato[excel]'",
        ) from None
    try:
        workbook = CalamineWorkbook.from_path(path)
        sheets = workbook.sheet_names
        chosen = sheets[0] if sheet is None else sheet
        if chosen in sheets:
            # from row 1, even where it is empty: rows are numbered as in Excel
            return iter(workbook.get_sheet_by_name(chosen).iter_rows())
    except Exception as failure:
        failed = type(failure).__name__
    # outside the handler: the context of the error may quote a cell
    if failed:
        raise unreadable(name, path, failed)
    _OWNER.error(
        "table %s: %s has the sheets %s",
        name,
        path,
        ", ".join(map(repr, sheets)),
    )
    raise InvalidSource(
        f"Table {name!r}: {path.name!r} has no sheet {chosen!r}.",
        allowed="a sheet of the file; the log 'sfumato.owner' has their names",
    )


def _header(
    name: str,
    path: Path,
    rows: Iterator[Row],
    number: int,
) -> list[str | None]:
    """Reads the rows up to the header row, and returns its strings."""
    header: list[str | None] | None = None
    for row in islice(rows, number - 1, number):
        header = [cell_text(cell) for cell in row]
    if header is None and number == 1:
        raise InvalidSource(
            f"Table {name!r}: the sheet in {path.name!r} is empty.",
            remedy="Its first row has the names of the columns. Is it another sheet: sheet='Data'?",
        )
    header = header or []
    names = [column for column in header if column is not None]
    if not names:
        raise InvalidSource(
            f"Table {name!r}: row {number} of the sheet in {path.name!r} names no column.",
            remedy="Declare the row that has the names: header_row=3.",
        )
    require_names(name, path.name, names)
    return header


def _arrow(
    rows: Iterator[Row],
    header: Sequence[str | None],
    declared: Mapping[str, ColumnType],
) -> "pyarrow.Table":
    """Returns the named columns of the rows."""
    import pyarrow  # Excel files and frames need it, other files do not

    named = [(place, column) for place, column in enumerate(header) if column is not None]
    batches: list[list[list[str | None]]] = [[] for _ in named]
    while batch := list(islice(rows, _BATCH)):
        kept = [row for row in batch if _is_row(row, named)]
        for (place, column), texts in zip(named, batches, strict=True):
            kind = declared.get(column)
            texts.append([cell_text(row[place], kind) for row in kept])
    columns = {}
    for (_, column), texts in zip(named, batches, strict=True):
        columns[column] = pyarrow.chunked_array(texts, pyarrow.string())
    return pyarrow.table(columns)


def _is_row(row: Row, named: Sequence[tuple[int, str]]) -> bool:
    """Whether a row has a value in a named column."""
    return any(row[place] != "" for place, _ in named)
