# SPDX-License-Identifier: Apache-2.0
"""Functions of dates are those of DuckDB (test_meaning); what has no meaning of a row is refused."""

import pytest
from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql.date_functions import DATE_FUNCTIONS
from sfumato.sql.functions import FUNCTIONS


def test_they_are_among_the_functions_of_a_row():
    assert DATE_FUNCTIONS.items() <= FUNCTIONS.items()
    assert exp.DateTrunc in DATE_FUNCTIONS and exp.Upper not in DATE_FUNCTIONS


def test_a_format_may_come_first(ask):
    key = "SELECT COUNT(*) FROM events GROUP BY {}"
    wanted = ask(key.format("STRFTIME(day, '%Y-%m')")).raw
    assert ask(key.format("STRFTIME('%Y-%m', day)")).raw.keys[0].codes == wanted.keys[0].codes
    assert ask(key.format("TO_CHAR(day, 'YYYY-MM')")).raw.keys[0].value.type == (
        wanted.keys[0].value.type
    )
    assert wanted.keys[0].size == 12


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("STRFTIME(day, product)", "format that is not a constant"),
        ("TO_CHAR(age, 'YYYY')", "where a date is needed"),
        ("DAYNAME(age)", "where a date is needed"),
        ("LAST_DAY(age)", "where a date is needed"),
        ("EXTRACT(DAY FROM AGE(day, day))", "other parts than years"),
        ("AGE(day, day)", "AGE is not part"),
        ("DATE_PART('month', age)", "where a date is needed"),
        ("day + INTERVAL x DAY", "INTERVAL"),
    ],
)
def test_what_has_no_meaning_is_refused(value, text, says):
    with pytest.raises(UnsupportedSql, match=says):
        value(text)
