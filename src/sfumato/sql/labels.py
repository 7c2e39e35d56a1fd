# SPDX-License-Identifier: Apache-2.0
"""Functions of declared texts, computed here, once for each declared value.

A Category has a public list of values, so UPPER(region) is a public table from codes to
codes; no engine ever sees the text functions, or a pattern.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from sfumato.errors import UnsupportedSql
from sfumato.plan.scalar import Constant, Lookup, Member, Scalar
from sfumato.sql.lattice import common_step
from sfumato.sql.typed import Label, Number, Truth, text

# Literal characters, classes and dots, each with at most one quantifier; no groups, so no nesting.
_ATOM = r"(?:\\[dws.+*?()\[\]|^$\\-]|\[\^?[\w\s.,:;/_-]+\]|[\w\s.,:;/_@#%&=<>!'\"-])"
_SIMPLE = re.compile(rf"\^?(?:{_ATOM}(?:[*+?]|\{{\d{{1,2}}\}})?)*\$?")
_LONGEST_PATTERN = 200


def mapped(operand: Label, function: Callable[[str], str]) -> Label:
    """A text function of a declared text."""
    if isinstance(operand.expression, Constant):
        return text(function(operand.labels[0]))
    images = [function(each) for each in operand.labels]
    found = tuple(dict.fromkeys(images))
    if len(found) == len(images):
        return Label(operand.expression, found)
    return Label(Lookup(operand.expression, 0, tuple(found.index(each) for each in images)), found)


def joined(parts: Sequence[Label]) -> Label:
    """The texts one after the other; all but one of them are constants."""
    varying = [
        place for place, each in enumerate(parts) if not isinstance(each.expression, Constant)
    ]
    if len(varying) > 1:
        raise UnsupportedSql(
            "Two columns of text put together.",
            remedy="GROUP BY both columns, or CONCAT(column, 'constant').",
        )
    place = varying[0] if varying else 0
    before = "".join(each.labels[0] for each in parts[:place])
    after = "".join(each.labels[0] for each in parts[place + 1 :])
    return mapped(parts[place], lambda label: f"{before}{label}{after}")


def measured(operand: Label, function: Callable[[str], Fraction | int | None]) -> Number:
    """A number read off a declared text; NULL where the function gives None."""
    numbers = [function(each) for each in operand.labels]
    exact = [Fraction(each) for each in numbers if each is not None]
    step = common_step([Fraction(1), *(Fraction(1, each.denominator) for each in exact)])
    codes = tuple(None if each is None else int(each / step) for each in numbers)
    if isinstance(operand.expression, Constant):
        return Number(Constant(codes[0]), step)
    return Number(Lookup(operand.expression, 0, codes), step)


def matching(operand: Label, test: Callable[[str], bool]) -> Truth:
    """Whether a declared text passes a test."""
    codes = tuple(place for place, label in enumerate(operand.labels) if test(label))
    found: Scalar = Member(operand.expression, codes)
    return Truth(found)


def like(pattern: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """The test of LIKE (or ILIKE): % any text, _ one character."""
    _require_short(pattern)
    pieces = (pattern.casefold() if ignore_case else pattern).split("%")
    return lambda label: _is_like(label.casefold() if ignore_case else label, pieces)


def _is_like(label: str, pieces: list[str]) -> bool:
    """The first piece at the start, the last at the end, the others leftmost between: no backtracking."""
    if len(pieces) == 1:
        return len(label) == len(pieces[0]) and _fits(label, 0, pieces[0])
    start, *middle, end = pieces
    if (
        len(label) < len(start) + len(end)
        or not _fits(label, 0, start)
        or not _fits(label, len(label) - len(end), end)
    ):
        return False
    place, stop = len(start), len(label) - len(end)
    for piece in middle:
        while place + len(piece) <= stop and not _fits(label, place, piece):
            place += 1
        if place + len(piece) > stop:
            return False
        place += len(piece)
    return True


def _fits(label: str, place: int, piece: str) -> bool:
    return all(wanted in ("_", found) for wanted, found in zip(piece, label[place:], strict=False))


def regex(pattern: str, *, whole: bool) -> Callable[[str], bool]:
    """The test of a simple regular expression: alternatives of characters and classes, without groups."""
    _require_short(pattern)
    branches = pattern.split("|")
    if not all(
        _SIMPLE.fullmatch(each) and len(re.findall(r"[*+?]", each)) <= 2 for each in branches
    ):
        raise UnsupportedSql(
            "A regular expression with groups, or with more than two repetitions.",
            allowed="characters, classes [a-z] and \\d, each with one of * + ? {n}; ^ $ and |",
            remedy="Write LIKE with % and _, or IN ('value', ...).",
        )
    compiled = [re.compile(each, re.ASCII) for each in branches]
    if whole:
        return lambda label: any(each.fullmatch(label) for each in compiled)
    return lambda label: any(each.search(label) for each in compiled)


def substring(start: int, length: int | None) -> Callable[[str], str]:
    """SUBSTRING: positions from 1, a negative start from the end."""

    def cut(label: str) -> str:
        first = start - 1 if start > 0 else (len(label) + start if start < 0 else -1)
        last = len(label) if length is None else first + length
        return label[max(first, 0) : max(last, 0)]

    return cut


def to_number(label: str) -> Fraction | None:
    """TRY_CAST of a text to a number."""
    return (
        Fraction(label)
        if re.fullmatch(r"\s*[+-]?\d{1,15}(\.\d{1,9})?\s*", label, re.ASCII)
        else None
    )


def _require_short(pattern: str) -> None:
    if len(pattern) > _LONGEST_PATTERN:
        raise UnsupportedSql(
            f"A pattern of more than {_LONGEST_PATTERN} characters.", remedy="Write a shorter one."
        )
