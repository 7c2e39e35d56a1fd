# SPDX-License-Identifier: Apache-2.0
"""Rows of a CSV or Parquet file that a fitted model is applied to.

``predict`` and ``rows_score`` read them. They belong to whoever runs the command, so messages may
describe them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from sfumato.engines.value_codes import number_pattern, plain_number
from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.learning.frames import FrameColumn, number_of, unread_values
from sfumato.metadata.file_text import DELIMITERS, Numerals
from sfumato.metadata.table import Table

_CSV, _PARQUET = ".csv", ".parquet"
_ENDINGS = f"{_CSV}, {_PARQUET}"
# What pyarrow says of a line with too many or too few fields.
_SHAPE = re.compile(r"(Row #\d+: )?Expected \d+ columns, got \d+")


def read_rows(path: str, declared: Table | None = None) -> pa.Table:
    """Reads the rows of a file; all values of a CSV file are strings.

    ``declared`` says how a CSV file is written, where it is not UTF-8 with commas: its delimiter,
    its encoding and the line of its header.

    Raises:
        WrongUse: another file ending, no such file, or a file that cannot be read.
    """
    ending = Path(path).suffix.lower()
    if ending not in (_CSV, _PARQUET):
        raise WrongUse(f"{shown(path)} ends with {ending!r}.", allowed=_ENDINGS)
    try:
        if ending == _PARQUET:
            return parquet.read_table(path)
        return _read_csv(path, declared or Table(path))
    except FileNotFoundError:
        raise WrongUse(f"No file {shown(path)}.") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        if Path(path).is_file() and not Path(path).stat().st_size:
            raise WrongUse(
                f"{shown(path)} is empty.", allowed="a line with the names of the columns, and rows"
            ) from None
        shape = _SHAPE.search(str(error))
        reason = shape[0] if shape else type(error).__name__
        raise WrongUse(
            f"{shown(path)} cannot be read ({reason}).",
            allowed="Parquet, or CSV in UTF-8 with commas",
            remedy="Of another CSV, say how it is written: --delimiter, --encoding and "
            "--header-row of sfumato predict, the table in sfumato.toml for sfumato frontier.",
        ) from None


def write_rows(rows: pa.Table, path: str) -> None:
    """Writes rows to a CSV or Parquet file.

    Raises:
        WrongUse: the file cannot be written.
    """
    write = csv.write_csv if Path(path).suffix.lower() == _CSV else parquet.write_table
    try:
        write(rows, path)
    except OSError as error:
        raise WrongUse(
            f"{path!r} cannot be written ({error.strerror}).", remedy="Name another path."
        ) from None


def require_rows_file(path: str | None) -> None:
    """Refuses an output path that ends neither in .csv nor in .parquet; None passes.

    Raises:
        WrongUse: another file ending.
    """
    if path is not None and Path(path).suffix.lower() not in (_CSV, _PARQUET):
        raise WrongUse(f"{shown(path)} is no file of rows.", allowed=_ENDINGS)


def require_columns(rows: pa.Table, columns: Sequence[FrameColumn]) -> None:
    """Refuses rows without the columns that a model reads.

    Raises:
        UnknownName: the rows lack a column.
        WrongUse: a CSV file where the model reads lists of numbers.
    """
    for column in columns:
        if column.name not in rows.column_names:
            raise UnknownName(
                f"The rows have no column {column.name!r}.",
                allowed=", ".join(each.name for each in columns),
                remedy=_other_delimiter(rows.column_names)
                or "The columns are those of the SELECT of the model, under the same names.",
            )
        if column.length and pa.types.is_string(rows[column.name].type):
            raise WrongUse("Lists of numbers in a CSV file.", remedy="Write the rows as Parquet.")


def unread(rows: pa.Table, columns: Sequence[FrameColumn]) -> list[str]:
    """Returns one sentence about each column of the rows that has missing values, or values unknown
    to a fitted model.
    """
    notes = []
    for column in unread_values(rows, columns):
        if column.unknown:
            notes.append(f"note: {column.unknown:,} of {column.values:,} values of {column.name!r} are "
                         "no value that the model knows, and count as missing")  # fmt: skip
        if column.missing:
            notes.append(f"note: {column.missing:,} of {column.values:,} values of {column.name!r} are "
                         "missing")  # fmt: skip
    return notes


def with_plain_numbers(
    rows: pa.Table, numerals: Numerals, markers: Mapping[str, Sequence[str]]
) -> pa.Table:
    """Returns rows whose numbers that are strings are written as Python writes them.

    ``numerals`` say how they are written in the rows. ``markers`` are the strings that mean a
    missing value, by the names of the columns of numbers. A string that is no number so written
    becomes one that is no number at all.

    >>> rows = pa.table({"pay": ["1.234,5", "1.5"]})
    >>> with_plain_numbers(rows, Numerals(",", "."), {"pay": ()})["pay"].to_pylist()
    ['1234.5', 'no number: 1.5']
    """
    pattern = re.compile(number_pattern(numerals), re.ASCII)

    def plain(value: str, missing: Sequence[str]) -> str:
        if value in missing:
            return value
        if pattern.fullmatch(value):
            return plain_number(value, numerals)
        return value if number_of(value) != number_of(value) else f"no number: {value}"

    for name, missing in markers.items():
        place = rows.column_names.index(name)
        if pa.types.is_string(rows[name].type):
            values = [value and plain(value, missing) for value in rows[name].to_pylist()]
            rows = rows.set_column(place, name, pa.array(values, pa.string()))
    return rows


def _read_csv(path: str, declared: Table) -> pa.Table:
    """The rows of a CSV file, as strings."""
    parsed = csv.ParseOptions(delimiter=declared.delimiter or ",")
    reading = csv.ReadOptions(
        encoding=declared.encoding or "utf-8", skip_rows=(declared.header_row or 1) - 1
    )
    with csv.open_csv(path, parse_options=parsed, read_options=reading) as opened:
        names = opened.schema.names
    strings = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return csv.read_csv(path, parse_options=parsed, read_options=reading, convert_options=strings)


def _other_delimiter(names: Sequence[str]) -> str:
    """Returns a remedy if the only column has a name with another delimiter in it."""
    for delimiter in DELIMITERS:
        if len(names) == 1 and delimiter in names[0]:
            return f"Its first line is separated by {delimiter!r}: say --delimiter {delimiter!r}."
    return ""
