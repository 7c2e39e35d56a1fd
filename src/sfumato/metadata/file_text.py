# SPDX-License-Identifier: Apache-2.0
"""Declarations of how the text of a CSV file, or the sheet of an Excel file, is read."""

import codecs
from dataclasses import dataclass

from sfumato.errors import InvalidDeclaration, shown

DELIMITERS = (",", ";", "|", "\t")
# Each reads ASCII as ASCII, and has no comma, quote, line break, semicolon or tab in a wider
# character, so what does not decode moves no field. UTF-16 has that of its two bytes.
ENCODINGS = (
    "utf-8",
    "utf-16",
    "gb18030",
    "gbk",
    "gb2312",
    "big5",
    "cp950",
    "shift_jis",
    "cp932",
    "euc_jp",
    "cp949",
    "euc_kr",
    "latin-1",
    "cp1250",
    "cp1251",
    "cp1252",
    "koi8-r",
)
# Where Python's codec has another name. A byte order mark of UTF-8 is read with "utf-8" too.
_OF_CODEC = {"iso8859-1": "latin-1", "utf-8-sig": "utf-8"}
DECIMALS = (".", ",")
THOUSANDS = (".", ",", " ", "'")
_EXCEL_ROWS = 2**20

_ALLOWED = {
    "delimiter": DELIMITERS,
    "encoding": ENCODINGS,
    "decimal": DECIMALS,
    "thousands": THOUSANDS,
}


@dataclass(frozen=True, slots=True)
class Numerals:
    """The decimal sign and the thousands separator of numbers that are written as text.

    ``thousands`` is empty if there is no separator. Where a number has it, it is between all groups
    of three digits.

    >>> Numerals(",", ".").is_plain, Numerals().is_plain
    (False, True)
    """

    decimal: str = "."
    thousands: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether these are the separators of Python: a decimal point, and no thousands
        separator.
        """
        return self == PLAIN


PLAIN = Numerals()


def encoding_named(spelling: object) -> str | None:
    """Returns the supported encoding that Python knows by a spelling; None if there is none.

    >>> encoding_named("Latin1"), encoding_named("UTF8"), encoding_named("utf-7")
    ('latin-1', 'utf-8', None)
    """
    try:
        codec = codecs.lookup(spelling).name  # type: ignore[arg-type]
    except (LookupError, TypeError, ValueError):
        return None
    name = _OF_CODEC.get(codec, codec)
    return name if name in ENCODINGS else None


def require_csv_text(**declared: str | None) -> None:
    """Refuses an unsupported ``delimiter``, ``encoding``, ``decimal`` or ``thousands``.

    None means that it is not declared.

    Raises:
        InvalidDeclaration: one of them is not supported, or ``decimal`` and ``thousands`` are the
            same.
    """
    for name, value in declared.items():
        allowed = _ALLOWED[name]
        if value is not None and value not in allowed:
            raise InvalidDeclaration(
                f"{name}={shown(value)}.", allowed=", ".join(map(repr, allowed))
            )
    numerals = numerals_of(declared.get("decimal"), declared.get("thousands"))
    if numerals.decimal == numerals.thousands:
        raise InvalidDeclaration(
            f"{numerals.decimal!r} as the sign of the fraction and between thousands.",
            allowed="two signs",
            remedy="For 1.000,50 declare decimal=',' and thousands='.'.",
        )


def numerals_of(decimal: str | None, thousands: str | None) -> Numerals:
    """Returns the decimal sign and the thousands separator, with defaults for undeclared ones."""
    return Numerals(decimal or ".", thousands or "")


def require_sheet(sheet: str | None, header_row: int | None) -> None:
    """Refuses an invalid name of an Excel sheet, or an invalid number of its header row.

    Raises:
        InvalidDeclaration: the name is empty, or the number is not that of a row in Excel.
    """
    if sheet is not None and (not isinstance(sheet, str) or not sheet):
        raise InvalidDeclaration(f"sheet={shown(sheet)}.", allowed="the name of a sheet")
    if header_row is not None and (
        isinstance(header_row, bool)
        or not isinstance(header_row, int)
        or not 1 <= header_row <= _EXCEL_ROWS
    ):
        raise InvalidDeclaration(
            f"header_row={shown(header_row)}.", allowed=f"a number from 1 to {_EXCEL_ROWS:,}"
        )


def header_below(skip_rows: object, header_row: int | None) -> int:
    """Returns the line number (from 1) of the header row below ``skip_rows`` skipped rows.

    Raises:
        InvalidDeclaration: no number of rows, or a header row as well.

    >>> header_below(2, None)
    3
    """
    if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
        raise InvalidDeclaration(
            f"skip_rows={shown(skip_rows)}.", allowed="the number of rows above the names"
        )
    if header_row is not None:
        raise InvalidDeclaration(
            "skip_rows= and header_row=.", allowed="one of them", remedy="Drop one."
        )
    return skip_rows + 1
