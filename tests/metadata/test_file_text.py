# SPDX-License-Identifier: Apache-2.0
"""What is declared of the text of a CSV file, or of a sheet, is one of a few values."""

import codecs
import itertools
from encodings.aliases import aliases

import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.metadata.file_text import (
    DECIMALS,
    DELIMITERS,
    ENCODINGS,
    PLAIN,
    THOUSANDS,
    Numerals,
    encoding_named,
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
REFUSED = [
    "",
    "x",
    "x\0",
    "\ud800",
    "utf-7",
    "utf-16-le",
    "hz",
    "iso2022_jp",
    "rot13",
    ";;",
    1,
    b",",
    [","],
    True,
]


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_another_value_is_refused_with_those_that_are_allowed(name, value):
    with pytest.raises(InvalidDeclaration, match=f"{name}=") as refused:
        require_csv_text(**{name: value})
    assert refused.value.allowed == ", ".join(map(repr, ALLOWED[name]))


def test_every_spelling_of_python_names_the_encoding_that_python_decodes_with():
    spellings = {*aliases, *aliases.values(), *(alias.replace("_", "-") for alias in aliases)}
    supported = {codecs.lookup(name).name for name in ENCODINGS} | {"utf-8-sig"}
    named = {}
    for spelling in spellings:
        try:
            codec = codecs.lookup(spelling.upper()).name
        except LookupError:  # of another operating system
            continue
        named[spelling] = encoding_named(spelling.upper())
        assert (named[spelling] is not None) == (codec in supported), spelling
        if named[spelling] is not None:
            assert codecs.lookup(named[spelling]).name == codec.removesuffix("-sig")
    assert {named[spelling] for spelling in ("utf8", "u8")} == {"utf-8"}
    assert encoding_named("utf-8-SIG") == encoding_named("UTF_8_sig") == "utf-8"
    assert (named["sjis"], named["windows-1252"], named["ms949"]) == (
        "shift_jis",
        "cp1252",
        "cp949",
    )
    assert [encoding_named(name) for name in ENCODINGS] == list(ENCODINGS)


@pytest.mark.parametrize("spelling", ["", "x\0", "\ud800", "ü", "utf-7", "hz", None, 1, b"gbk"])
def test_what_is_no_spelling_of_a_supported_encoding_names_none(spelling):
    assert encoding_named(spelling) is None


@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name != "utf-16"])
def test_ascii_is_itself_and_no_wide_character_has_a_sign_of_csv(encoding):
    ascii_bytes = bytes(range(128))
    assert ascii_bytes.decode(encoding) == ascii_bytes.decode("ascii")
    signs = set(b',;\t\r\n"')
    for code in range(0x80, 0x10000):
        written = chr(code).encode(encoding, errors="ignore")
        assert not signs & set(written), hex(code)


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
