# SPDX-License-Identifier: Apache-2.0
"""Forms of strings against ones written by hand, and against Python's own classes of letters."""

import unicodedata

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines import sql_tree as sql
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.value_forms import LONGEST, date_form, leading, masked

TEXT = sql.Column("t")


def computed(value, *nodes):
    """What DuckDB computes of a string."""
    items = ", ".join(printed(node) for node in nodes)
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {items} FROM (SELECT ? AS t)", [value]).fetchone()


def form_of(value):
    """The form of a string, a character at a time."""
    form = "".join(map(_mask, value[:LONGEST]))
    return form + ("..." if len(value) > LONGEST else "")


def _mask(character):
    kind = unicodedata.category(character)
    if kind == "Nd":
        return "9"
    if kind == "Lu":
        return "A"
    if kind.startswith("L"):
        return "a"
    return character if " " <= character <= "~" else "?"


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("1,000", "9,999"),
        ("31/12/2024", "99/99/9999"),
        ("Y", "A"),
        (" 12 kg", " 99 aa"),
        ("", ""),
        (None, "?"),
        ("Zoë 山田", "Aaa aa"),
        ("\x1b[31mred\x07", "?[99aaaa?"),
        ("x" * 31, "a" * 30 + "..."),
        ("x" * 30, "a" * 30),
        ("MÃ¤nner", "AA?aaaa"),
        ("it's", "aa'a"),
    ],
)
def test_letters_and_digits_are_masked(value, form):
    assert computed(value, masked(TEXT)) == (form,)


# characters that both tables of Unicode know
KNOWN = st.characters(
    max_codepoint=0x2FFF, exclude_categories=("Cs", "Cn"), exclude_characters="\0"
)


@given(st.text(KNOWN, max_size=LONGEST + 3))
def test_no_letter_digit_or_control_character_is_left(value):
    assert computed(value, masked(TEXT)) == (form_of(value),)


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("31/12/2024", (31, 12)),
        ("1.2.24", (1, 2)),
        ("2024-01-31", (None, None)),
        ("abc", (None, None)),
        (None, (None, None)),
    ],
)
def test_the_leading_numbers_of_a_date(value, numbers):
    assert computed(value, *leading(TEXT)) == numbers


@pytest.mark.parametrize(
    ("form", "first", "second", "named"),
    [
        ("99/99/9999", 31, 12, "dd/mm/yyyy"),
        ("99/99/9999", 12, 31, "mm/dd/yyyy"),
        ("99/99/9999", 12, 12, "dd/mm/yyyy or mm/dd/yyyy"),
        ("99/99/9999", 31, 31, "99/99/9999"),
        ("9.9.99", 5, 6, "d.m.yy or m.d.yy"),
        ("99/99/9999 99:99", 31, 1, "dd/mm/yyyy 99:99"),
        ("9999/99/99", None, None, "yyyy/mm/dd"),
        ("9999-99-99", None, None, "yyyy-mm-dd"),
        ("99999999", None, None, "yyyymmdd"),
        ("99/99-9999", 31, 12, "99/99-9999"),
        ("999999", None, None, "999999"),
        ("Aaa 9, 9999", None, None, "Aaa 9, 9999"),
        ("", None, None, ""),
    ],
)
def test_the_parts_of_a_date_are_named(form, first, second, named):
    assert date_form(form, first, second) == named
