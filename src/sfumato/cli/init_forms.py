# SPDX-License-Identifier: Apache-2.0
"""Guesses column types from the form of strings, never from the values, for ``sfumato init``."""

import re
from collections.abc import Iterable, Mapping, Sequence

_DATES = {
    rf"{parts[0]}{re.escape(sign)}\d{{1,2}}{re.escape(sign)}{parts[1]}": form.replace("/", sign)
    for sign in "/.-"
    for parts, form in (((r"\d{1,2}", r"\d{4}"), "%d/%m/%Y"), ((r"\d{4}", r"\d{1,2}"), "%Y/%m/%d"))
}
_CLOCKS = {r"\d\d:\d\d:\d\d": "%H:%M:%S", r"\d\d:\d\d(?::\d\d)?": "%H:%M"}
# Each form with the declaration that it suggests. A format has the day before the month, as most
# countries write it: no form can tell.
_FORMS: tuple[tuple[str, Mapping[str, str]], ...] = (
    (r"[+-]?(0|[1-9]\d*)", {"type": "integer"}),
    (r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?", {"type": "real"}),
    (r"\d{4}-\d\d-\d\d", {"type": "date"}),
    (r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?", {"type": "timestamp"}),
    *((pattern, {"type": "date", "format": form}) for pattern, form in _DATES.items()),
    *(
        (rf"{pattern}([ T]{clock})?", {"type": "timestamp", "format": f"{form} {time}"})
        for clock, time in _CLOCKS.items()
        for pattern, form in _DATES.items()
    ),
    (r"true|false|True|False|TRUE|FALSE", {"type": "boolean"}),
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
# Numbers whose thousands are apart, by the sign: a form that is no fraction.
_GROUPED = {
    ",": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    ".": re.compile(r"[+-]?[1-9]\d{0,2}((\.\d{3})+,\d+|(\.\d{3}){2,})"),
    " ": re.compile(r"[+-]?[1-9]\d{0,2}( \d{3})+([.,]\d+)?"),
    "'": re.compile(r"[+-]?[1-9]\d{0,2}('\d{3})+([.,]\d+)?"),
}


def guess(values: Iterable[str]) -> Mapping[str, str]:
    """Returns the declaration that the form of strings suggests; empty strings do not count.

    Which values there are, how large they are and how frequent does not matter. Digits with a
    leading 0 are codes, not numbers.

    >>> guess(["17", "", "90"]), guess(["0.5", "2"]), guess(["007", "12"]), guess([])
    ({'type': 'integer'}, {'type': 'real'}, {'type': 'category'}, {})
    >>> guess(["31/12/2024"])
    {'type': 'date', 'format': '%d/%m/%Y'}
    >>> guess(["31.12.2024 09:30", "1.12.2024"])
    {'type': 'timestamp', 'format': '%d.%m.%Y %H:%M'}
    """
    written = [value.strip() for value in values if value.strip()]
    if not written:
        return {}
    if any(map(_LEADING_ZERO.fullmatch, written)):
        return {"type": "category"}
    for pattern, declared in _FORMS:
        if all(re.fullmatch(pattern, value) for value in written):
            return declared
    return {"type": "category"}


def orders_of(form: str) -> tuple[str, str]:
    """Returns the two formats of the same form: day before month, and month before day.

    >>> orders_of("%d.%m.%Y")
    ('%d.%m.%Y', '%m.%d.%Y')
    """
    return form, form.replace("%d", "%D").replace("%m", "%d").replace("%D", "%m")


def has_decimal_comma(values: Iterable[str]) -> bool:
    """Whether one of the strings is a number with a decimal comma.

    >>> has_decimal_comma(["1,5"]), has_decimal_comma(["1.5", "a,b"])
    (True, False)
    """
    return any(re.fullmatch(r"[+-]?\d+,\d+", value.strip()) for value in values)


def looks_like_values(names: Iterable[str]) -> bool:
    """Whether one of the names has the form of a number, a date or a Boolean.

    If so, they are probably the first row of a file without a header.

    >>> looks_like_values(["age", "2024-01-31"]), looks_like_values(["age", "q1"])
    (True, False)
    """
    return any(_is_value(name.strip()) for name in names)


def _is_value(name: str) -> bool:
    forms = [pattern for pattern, _ in _FORMS]
    forms += [_LEADING_ZERO.pattern, _GROUPED[","].pattern]
    return any(re.fullmatch(form, name) for form in forms)


def thousands_of(columns: Iterable[Sequence[str]], delimiter: str) -> str:
    """Returns the thousands separator that the form of numbers suggests; "" if there is none.

    If commas are the delimiter, 1,500 has a separator; otherwise a single group may be a fraction.

    >>> thousands_of([["103,431", "7"]], ","), thousands_of([["1.500"]], ";")
    (',', '')
    """
    of_fractions = "." if delimiter == "," else ","
    written = [value.strip() for values in columns for value in values]
    for sign, grouped in _GROUPED.items():
        if sign != of_fractions and any(map(grouped.fullmatch, written)):
            return sign
    return ""


def without_thousands(values: Sequence[str], sign: str) -> Sequence[str]:
    """Removes the thousands separator ``sign`` from strings that are numbers with it."""
    if not sign:
        return values
    grouped = _GROUPED[sign]
    return [v.replace(sign, "") if grouped.fullmatch(v.strip()) else v for v in values]
