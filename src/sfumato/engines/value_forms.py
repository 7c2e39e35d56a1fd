# SPDX-License-Identifier: Apache-2.0
"""The form of a stored string: the string with its letters and digits masked.

``inspect_columns`` shows the owner the forms of values that could not be read.
"""

import re

from sfumato.engines import sql_tree as sql

# Longer strings are cut, in characters.
LONGEST = 30

# What is replaced by what, in this order: control characters reach no terminal.
_MASKS = (
    (r"[^ -~\p{L}\p{Nd}]", "?"),
    (r"\p{Nd}", "9"),
    (r"\p{Lu}", "A"),
    (r"[\p{Ll}\p{Lt}\p{Lm}\p{Lo}]", "a"),
)
_FIRST, _SECOND = r"^([0-9]{1,2})[^0-9]", r"^[0-9]{1,2}[^0-9]([0-9]{1,2})[^0-9]"
_YEAR_LAST = re.compile(r"(9{1,2})([/. -])(9{1,2})\2(9999|99)(?!9)(.*)")
_YEAR_FIRST = re.compile(r"9999([/. -])(9{1,2})\1(9{1,2})(?!9)(.*)")
_DIGITS = "99999999"
# The largest number of a month.
_MONTHS = 12


def masked(text: sql.Expression) -> sql.Expression:
    """Returns the SQL of a string's form (its pattern without content): letters become A or a,
    digits 9, unprintable characters ?.

    Other ASCII characters stay. A form has at most ``LONGEST`` characters and "..." after them.
    """
    form: sql.Expression = sql.call("substr", text, 1, LONGEST)
    for pattern, by in _MASKS:
        words = sql.Constant(pattern), sql.Constant(by), sql.Constant("g")
        form = sql.call("regexp_replace", form, *words)
    is_long = sql.call("length", text) > LONGEST
    rest = sql.Case(((is_long, sql.Constant("...")),), sql.Constant(""))
    return sql.call("coalesce", sql.Concat((form, rest)), sql.Constant("?"))


def leading(text: sql.Expression) -> tuple[sql.Expression, sql.Expression]:
    """Returns the SQL of the first two numbers at the start of a string, of at most two digits
    each; NULL if there are none.
    """
    return _number(text, _FIRST), _number(text, _SECOND)


def _number(text: sql.Expression, pattern: str) -> sql.Expression:
    """Returns the number that the group of a pattern finds in a string."""
    digits = sql.call("regexp_extract", text, sql.Constant(pattern), 1)
    return sql.TryCast(digits, sql.SqlType.INTEGER)


def date_form(form: str, first: int | None, second: int | None) -> str:
    """Returns a date's form (see ``masked``) with its digits named as day, month and year, such as
    yyyy-mm-dd; any other form is returned unchanged.

    ``first`` and ``second`` are the largest first and second numbers of the values: a number above
    12 is not a month.

    >>> date_form("99/99/9999", 31, 12), date_form("99.99.99", 12, 30)
    ('dd/mm/yyyy', 'mm.dd.yy')
    >>> date_form("99/99/9999", 9, 9), date_form("99999999", None, None), date_form("aaa", 3, 4)
    ('dd/mm/yyyy or mm/dd/yyyy', 'yyyymmdd', 'aaa')
    """
    if form == _DIGITS:
        return "yyyymmdd"
    year_first = _YEAR_FIRST.fullmatch(form)
    if year_first is not None:
        sign, month, day, rest = year_first.groups()
        return f"yyyy{sign}{'m' * len(month)}{sign}{'d' * len(day)}{rest}"
    year_last = _YEAR_LAST.fullmatch(form)
    if year_last is None:
        return form
    one, sign, two, year, rest = year_last.groups()
    named = []
    for places, largest in (("dm", second), ("md", first)):
        if largest is None or largest <= _MONTHS:
            before, after = places[0] * len(one), places[1] * len(two)
            named.append(f"{before}{sign}{after}{sign}{'y' * len(year)}{rest}")
    return " or ".join(named) or form
