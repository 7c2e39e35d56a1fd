# SPDX-License-Identifier: Apache-2.0
"""What type the strings of a column look like, by their form alone: never by their values."""

import re
from collections.abc import Iterable, Mapping

# Each form with the declaration that it suggests. "?" is for what no form can tell.
_FORMS: tuple[tuple[str, Mapping[str, str]], ...] = (
    (r"[+-]?(0|[1-9]\d*)", {"type": "integer"}),
    (r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?", {"type": "real"}),
    (r"\d{4}-\d\d-\d\d", {"type": "date"}),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*", {"type": "timestamp"}),
    (r"\d{1,2}([/.-])\d{1,2}\1\d{4}", {"type": "date", "format": "?"}),
    (r"\d{4}([/.-])\d{1,2}\1\d{1,2}", {"type": "date", "format": "?"}),
    (r"true|false|True|False|TRUE|FALSE", {"type": "boolean"}),
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+")


def guess(values: Iterable[str]) -> Mapping[str, str]:
    """Returns the declaration that the form of strings suggests; empty strings say nothing.

    Which values there are, how large they are and how often they come does not matter. Digits that
    begin with 0 are codes, not numbers.

    >>> guess(["17", "", "90"]), guess(["0.5", "2"]), guess(["007", "12"]), guess([])
    ({'type': 'integer'}, {'type': 'real'}, {'type': 'category'}, {})
    >>> guess(["31/12/2024"])
    {'type': 'date', 'format': '?'}
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


def has_decimal_comma(values: Iterable[str]) -> bool:
    """Returns whether one of the strings is a number with a comma for the fraction.

    >>> has_decimal_comma(["1,5"]), has_decimal_comma(["1.5", "a,b"])
    (True, False)
    """
    return any(re.fullmatch(r"[+-]?\d+,\d+", value.strip()) for value in values)
