# SPDX-License-Identifier: Apache-2.0
"""The table of an answer as typed columns with intervals, and its file formats.

``Answer.to_arrow``, ``to_csv``, ``to_parquet`` and ``to_excel`` use it.
"""

import csv
import datetime
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sfumato.errors import WrongUse, shown
from sfumato.privacy.event import Json
from sfumato.query.table import is_untold
from sfumato.show.render import UNTOLD, place_of_error

if TYPE_CHECKING:
    import pyarrow

MARKS = "marks"
# What an answer states of the error of a cell, as it is named in the columns of a file.
_ENDS = ("low", "high", "rank_error", "leaf_low", "leaf_high")
_TIMES = ("timestamp", "local time")
# The types of released values whose intervals have ends of the same type; others have numbers.
_OWN_ENDS = ("date", *_TIMES)
# What Excel takes for the beginning of a formula in a text of CSV.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_EXCEL_FORMATS = {"date": "yyyy-mm-dd", "timestamp": "yyyy-mm-dd hh:mm:ss"}


@dataclass(frozen=True, slots=True)
class Filled:
    """A column of an answer that is to be exported: its name, its type as the answer states it, and
    its JSON values.
    """

    name: str
    type: str
    values: Sequence[Json]

    @property
    def typed(self) -> list[object]:
        """The values of the column, with dates and timestamps as ``datetime`` objects."""
        return [typed(value, self.type) for value in self.values]


def typed(value: Json, kind: str) -> object:
    """Returns the Python value of a JSON value of an answer, by the type of its column.

    >>> typed("2024-12-31", "date"), typed(None, "date"), typed(3, "integer")
    (datetime.date(2024, 12, 31), None, 3)
    """
    if value is None:
        return None
    if kind == "date":
        return datetime.date.fromisoformat(str(value))
    if kind in _TIMES:
        return datetime.datetime.fromisoformat(str(value))
    return value


def filled(
    columns: Sequence[dict[str, Json]],
    rows: Sequence[Sequence[Json]],
    errors: Sequence[Sequence[Json]] | None = None,
) -> list[Filled]:
    """Returns the columns of an answer for export, with their names and types.

    With ``errors``, the stored intervals of the cells, each released column ``n`` is followed by
    ``n_low`` and ``n_high``. A quantile also gets ``n_rank_error`` and, on a grid, the ends of its
    leaf. If a cell or its interval is unknown, a last column, ``marks``, names it.
    """
    used_names = {str(column["name"]) for column in columns}
    filled_columns = []
    for place, column in enumerate(columns):
        name = str(column["name"])
        kind = str(column["type"])
        filled_columns.append(Filled(name, kind, [row[place] for row in rows]))
        if errors is not None and column["released"]:
            cells = [cast(dict[str, Json], line[place]) for line in errors]
            own = kind if kind in _OWN_ENDS else "real"
            for end, type_of_end in zip(_ENDS, (own, own, "real", own, own), strict=True):
                if end in ("low", "high") or any(end in cell for cell in cells):
                    free = _unused_name(f"{name}_{end}", used_names)
                    filled_columns.append(Filled(free, type_of_end, [cell[end] for cell in cells]))
    marks = [_marks(columns, line) for line in errors or ()]
    if any(marks):
        filled_columns.append(Filled(_unused_name(MARKS, used_names), "text", marks))
    return filled_columns


def _unused_name(name: str, used_names: set[str]) -> str:
    """A name that no other column has."""
    while name in used_names:
        name += "_"
    used_names.add(name)
    return name


def _marks(columns: Sequence[dict[str, Json]], line: Sequence[Json]) -> str:
    """The names of the cells of a row that are unknown, as text."""
    untold = []
    for column, error in zip(columns, line, strict=True):
        if is_untold(error):
            untold.append(f"{column['name']}: {UNTOLD}")
        elif isinstance(error, dict) and "rank_error" in error and error["low"] is None:
            untold.append(f"interval of {column['name']}: {UNTOLD}")
    return "; ".join(untold)


def readable(value: Json, low: Json, high: Json) -> tuple[Json, Json, Json]:
    """Returns a number and the ends of its interval with the digits that the error allows: two of
    half the length of the interval. The interval is never made shorter.

    >>> readable(33291.39, 31294.24, 35288.55), readable(741, 681, 801)
    ((33300, 31200, 35300), (741, 681, 801))
    """
    numbers = value, low, high
    if not all(type(number) in (int, float) for number in numbers):
        return numbers
    exact, first, last = (Fraction(str(number)) for number in numbers)
    if first >= last:
        return numbers
    place = place_of_error(float(first), float(last))
    unit = Fraction(10) ** place
    rounded = round(exact / unit) * unit, floor(first / unit) * unit, ceil(last / unit) * unit
    one, two, three = (float(each) if place < 0 else int(each) for each in rounded)
    return one, two, three


def with_readable_numbers(
    rows: Sequence[Sequence[Json]], errors: Sequence[Sequence[Json]]
) -> tuple[list[list[Json]], list[list[Json]]]:
    """Returns the rows and intervals of an answer, with numbers rounded to the digits that the
    error allows.
    """
    shown_rows, shown_errors = [], []
    for row, line in zip(rows, errors, strict=True):
        cells, ends = list(row), list(line)
        for place, error in enumerate(line):
            if isinstance(error, dict):
                cells[place], low, high = readable(row[place], error["low"], error["high"])
                ends[place] = {**error, "low": low, "high": high}
        shown_rows.append(cells)
        shown_errors.append(ends)
    return shown_rows, shown_errors


def for_excel(text: str) -> str:
    """Returns a CSV text in the form that Excel opens: with a byte order mark and Windows line
    ends.
    """
    return "\ufeff" + text.replace("\n", "\r\n")


def without_formulas(columns: Iterable[Filled]) -> list[Filled]:
    """Returns the columns with a quote before each text that Excel would take for a formula, their
    names too.
    """
    safe = []
    for column in columns:
        values = [*map(_no_formula, column.values)]
        safe.append(Filled(_no_formula(column.name), column.type, values))
    return safe


def _no_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def csv_text(columns: Sequence[Filled]) -> str:
    """Returns columns as a CSV text; a cell without an estimate is empty."""
    rows = zip(*(column.values for column in columns), strict=True)
    return csv_of([column.name for column in columns], rows)


def csv_of(names: Sequence[str], rows: Iterable[Sequence[Any]], *, excel: bool = False) -> str:
    """Returns rows as a CSV text.

    With ``excel`` it has the form that Excel opens, and a number ``n`` beside columns ``n_low`` and
    ``n_high`` is rounded to the digits that its error allows.

    >>> csv_of(["n", "n_low", "n_high"], [[3.25, 1.5, 5.125]], excel=True).split()
    ['\\ufeffn,n_low,n_high', '3.2,1.5,5.2']
    """
    lines = list(map(list, rows))
    if excel:
        places = {name: place for place, name in enumerate(names)}
        for name, place in places.items():
            low, high = places.get(f"{name}_low"), places.get(f"{name}_high")
            if low is not None and high is not None:
                for line in lines:
                    shown = readable(line[place], line[low], line[high])
                    line[place], line[low], line[high] = shown
        names, *lines = ([*map(_no_formula, line)] for line in (names, *lines))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(lines)
    return for_excel(file.getvalue()) if excel else file.getvalue()


def rows_for_excel(rows: "pyarrow.Table", *, is_first: bool = True) -> bytes:
    """Returns the rows of an Arrow table as CSV as Excel opens it, with the values as they are.

    ``is_first``: they follow a byte order mark and the names of the columns. A text that Excel
    would take for a formula follows a quote.
    """
    cells = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    if is_first:
        file.write("\ufeff")
        writer.writerow(map(_no_formula, rows.column_names))
    writer.writerows([*map(_no_formula, line)] for line in cells)
    return file.getvalue().encode()


def arrow_table(columns: Iterable[Filled]) -> "pyarrow.Table":
    """Returns columns as a pyarrow table."""
    import pyarrow

    types = {
        "integer": pyarrow.int64(), "real": pyarrow.float64(), "text": pyarrow.string(),
        "date": pyarrow.date32(), "boolean": pyarrow.bool_(),
        "timestamp": pyarrow.timestamp("s", "UTC"), "local time": pyarrow.timestamp("s"),
    }  # fmt: skip
    names = []
    arrays = []
    for column in columns:
        values = column.typed
        kind = column.type
        if kind == "real" or any(map(_is_beyond_int64, values)):
            kind = "real"
            values = [_float_or_none(value) for value in values]
        names.append(column.name)
        arrays.append(pyarrow.array(values, types[kind]))
    return pyarrow.table(arrays, names=names)


def parquet_bytes(columns: Iterable[Filled]) -> bytes:
    """Returns columns as the bytes of a Parquet file."""
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(arrow_table(columns), file)
    return file.getvalue()


def excel_bytes(columns: Sequence[Filled], about: Sequence[str]) -> bytes:
    """Returns columns as the bytes of an Excel file, with lines of text (``about``) on a second
    sheet.
    """
    import xlsxwriter

    file = io.BytesIO()
    # a string is never a formula
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(file, options) as book:
        sheet = book.add_worksheet("answer")
        bold = book.add_format({"bold": True})
        for column_index, column in enumerate(columns):
            written = _EXCEL_FORMATS.get(column.type.replace("local time", "timestamp"))
            style = book.add_format({"num_format": written}) if written else None
            sheet.write(0, column_index, column.name, bold)
            for row, value in enumerate(column.typed, 1):
                sheet.write(row, column_index, _excel_value(value), style)
            sheet.set_column(column_index, column_index, 18)
        notes = book.add_worksheet("about")
        for row, line in enumerate(about):
            notes.write(row, 0, line)
        notes.set_column(0, 0, 120)
    return file.getvalue()


def _excel_value(value: Any) -> Any:
    """A value as Excel can hold it: moments without an offset, which all are in UTC."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return value


def write(path: str | Path, content: bytes) -> None:
    """Writes a file.

    Raises:
        WrongUse: the file cannot be written.
    """
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise WrongUse(
            f"{shown(path)} cannot be written ({error.strerror}).",
            remedy="Name another path. The answer is stored: asked again, it is free.",
        ) from None


def _is_beyond_int64(value: object) -> bool:
    """Whether a value is an integer that Arrow's 64-bit integers do not represent."""
    return isinstance(value, int) and abs(value) >= 2**63


def _float_or_none(value: object) -> float | None:
    """A number as a float; None stays None."""
    if value is None:
        return None
    return float(cast(float, value))
