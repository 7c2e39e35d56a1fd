# SPDX-License-Identifier: Apache-2.0
"""What is declared of the text of a CSV file, or of a sheet, is one of a few values."""

import itertools

import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.metadata.file_text import (
    DECIMALS,
    DELIMITERS,
    ENCODINGS,
    PLAIN,
    THOUSANDS,
    Numerals,
    numerals_of,
    require_csv_text,
    require_sheet,
)

ALLOWED = {
    "delimiter": DELIMITERS,
    "encoding": ENCODINGS,
    "decimal": DECIMALS,
    "thousands": THOUSANDS,
}
REFUSED = ["", "x", "utf8", "UTF-8", "cp1252", "gb2312", ";;", 1, b",", [","], True]


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_another_value_is_refused_with_those_that_are_allowed(name, value):
    with pytest.raises(InvalidDeclaration, match=f"{name}=") as refused:
        require_csv_text(**{name: value})
    assert refused.value.allowed == ", ".join(map(repr, ALLOWED[name]))


def test_the_two_signs_of_a_number_differ():
    for decimal, thousands in itertools.product((None, *DECIMALS), (None, *THOUSANDS)):
        if (decimal or ".") == thousands:
            with pytest.raises(InvalidDeclaration, match="as the sign of the fraction"):
                require_csv_text(decimal=decimal, thousands=thousands)
        else:
            require_csv_text(decimal=decimal, thousands=thousands)


def test_numbers_are_plain_where_nothing_else_is_declared():
    assert numerals_of(None, None) == numerals_of(".", None) == PLAIN == Numerals(".", "")
    plain = [
        (decimal, thousands)
        for decimal, thousands in itertools.product(DECIMALS, ("", *THOUSANDS))
        if Numerals(decimal, thousands).is_plain
    ]
    assert plain == [(".", "")]


@pytest.mark.parametrize("sheet", ["", 1, b"Data", ["Data"]])
def test_a_sheet_has_a_name(sheet):
    with pytest.raises(InvalidDeclaration, match="sheet="):
        require_sheet(sheet, None)


@pytest.mark.parametrize("row", [0, -1, 2**20 + 1, 1.0, "1", True])
def test_a_header_row_is_a_row_of_excel(row):
    with pytest.raises(InvalidDeclaration, match="header_row="):
        require_sheet("Data", row)
    for allowed in (None, 1, 2**20):
        require_sheet(None, allowed)
