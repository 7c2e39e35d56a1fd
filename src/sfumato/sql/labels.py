# SPDX-License-Identifier: Apache-2.0
"""String functions of Category columns, evaluated at planning time for each declared value.

A Category has a public list of values, so UPPER(region) becomes a public lookup table from codes to
codes. Engines never see a string function or a pattern. ``functions`` uses it.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod

from sfumato.errors import UnsupportedSql
from sfumato.plan.scalar import Arithmetic, Constant, Lookup, Member, Operation, Scalar
from sfumato.sql.lattice import common_step, times
from sfumato.sql.typed import Label, Number, Truth, text

# Literal characters, classes and dots, each with at most one quantifier. No groups, no nesting.
_ATOM = r"(?:\\[dws.+*?()\[\]|^$\\-]|\[\^?[\w\s.,:;/_-]+\]|[\w\s.,:;/_@#%&=<>!'\"-])"
_SIMPLE = re.compile(rf"\^?(?:{_ATOM}(?:[*+?]|\{{\d{{1,2}}\}})?)*\$?")
_LONGEST_PATTERN = 200
_MOST_COMBINATIONS = 10_000


def mapped(operand: Label, function: Callable[[str], str]) -> Label:
    """Applies a string function to every label of a value; equal results share a code."""
    if isinstance(operand.expression, Constant):
        return text(function(operand.labels[0]))
    images = [function(label) for label in operand.labels]
    labels = tuple(dict.fromkeys(images))
    if len(labels) == len(images):
        return Label(operand.expression, labels)
    table = tuple(labels.index(image) for image in images)
    return Label(Lookup(operand.expression, 0, table), labels)


def alphabetical(label: Label) -> Label:
    """Returns the same categorical SQL value with integer codes in alphabetical order."""
    ordered = tuple(sorted(label.labels))
    if ordered == label.labels:
        return label
    table = tuple(ordered.index(name) for name in label.labels)
    return Label(Lookup(label.expression, 0, table), ordered)


def joined(parts: Sequence[Label]) -> Label:
    """Returns the concatenation of labels; NULL where one of them is.

    Raises:
        UnsupportedSql: several of them are not constants, and have too many combinations.
    """
    varying = []
    for place, part in enumerate(parts):
        if not isinstance(part.expression, Constant):
            varying.append(place)
    if len(varying) > 1:
        return _combined(parts)
    place = varying[0] if varying else 0
    before = "".join(part.labels[0] for part in parts[:place])
    after = "".join(part.labels[0] for part in parts[place + 1 :])
    return mapped(parts[place], lambda label: f"{before}{label}{after}")


def _combined(parts: Sequence[Label]) -> Label:
    """Returns the concatenation of several columns, by the combinations of their values."""
    if prod(len(part.labels) for part in parts) > _MOST_COMBINATIONS:
        raise UnsupportedSql(
            f"Columns of text put together that have more than {_MOST_COMBINATIONS:,} "
            "combinations.",
            remedy="GROUP BY both columns, or CONCAT(column, 'constant').",
        )
    joint = parts[0]
    for part in parts[1:]:
        names = tuple(f"{one}{other}" for one in joint.labels for other in part.labels)
        tens = times(joint.expression, len(part.labels))
        joint = Label(Arithmetic(Operation.ADD, tens, part.expression), names)
    return mapped(joint, str)


def measured(operand: Label, function: Callable[[str], Fraction | int | None]) -> Number:
    """Applies a numeric function to every label of a value; a result of None is NULL."""
    numbers = [function(label) for label in operand.labels]
    known = [Fraction(number) for number in numbers if number is not None]
    steps = [Fraction(1, number.denominator) for number in known]
    step = common_step([Fraction(1), *steps])
    codes: list[int | None] = []
    for number in numbers:
        if number is None:
            codes.append(None)
        else:
            codes.append(int(number / step))
    if isinstance(operand.expression, Constant):
        return Number(Constant(codes[0]), step)
    return Number(Lookup(operand.expression, 0, tuple(codes)), step)


def matching(operand: Label, test: Callable[[str], bool]) -> Truth:
    """Applies a test to every label of a value; returns the Boolean."""
    codes = []
    for place, label in enumerate(operand.labels):
        if test(label):
            codes.append(place)
    membership: Scalar = Member(operand.expression, tuple(codes))
    return Truth(membership)


def like(pattern: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """Returns the test of LIKE (or ILIKE): % matches any string, _ any one character."""
    _require_short(pattern)
    if ignore_case:
        folded = lower_case(pattern).split("%")
        return lambda label: _is_like(lower_case(label), folded)
    pieces = pattern.split("%")
    return lambda label: _is_like(label, pieces)


def upper_case(label: str) -> str:
    """Returns a label in upper case, letter by letter as in DuckDB: no letter becomes two.

    >>> upper_case("straße"), upper_case("ŉ")
    ('STRAẞE', 'ŉ')
    """
    if label.isascii():
        return label.upper()
    return "".join(map(_upper_letter, label))


def _upper_letter(letter: str) -> str:
    for capital in (letter.upper(), letter.title(), letter.replace("ß", "ẞ")):
        if len(capital) == 1:
            return capital
    raise AssertionError("a letter is itself, if nothing else")


def lower_case(label: str) -> str:
    """Returns a label in lower case, letter by letter as in DuckDB: no letter becomes two.

    >>> lower_case("İstanbul")
    'istanbul'
    """
    return "".join(letter.lower()[0] for letter in label)


def _is_like(label: str, pieces: list[str]) -> bool:
    """Whether a string matches a LIKE pattern that was split at its % signs.

    The first piece must match at the start, the last at the end, the others between them, each as
    far left as possible. That needs no backtracking.
    """
    if len(pieces) == 1:
        return len(label) == len(pieces[0]) and _fits(label, 0, pieces[0])
    start, *middle, end = pieces
    stop = len(label) - len(end)
    if stop < len(start):
        return False
    if not _fits(label, 0, start) or not _fits(label, stop, end):
        return False
    place = len(start)
    for piece in middle:
        while place + len(piece) <= stop and not _fits(label, place, piece):
            place += 1
        if place + len(piece) > stop:
            return False
        place += len(piece)
    return True


def _fits(label: str, place: int, piece: str) -> bool:
    """Whether a piece of a pattern matches a string at a position; _ matches any character."""
    pairs = zip(piece, label[place:], strict=False)
    return all(wanted in ("_", character) for wanted, character in pairs)


def regex(pattern: str, *, whole: bool) -> Callable[[str], bool]:
    """Returns the test of a simple regular expression: alternatives of characters and classes.

    Groups are not allowed. ``whole``: the entire string must match, else any part of it.

    Raises:
        UnsupportedSql: another regular expression.
    """
    _require_short(pattern)
    branches = pattern.split("|")
    if not all(_is_simple(branch) for branch in branches):
        raise UnsupportedSql(
            "A regular expression with groups, or with more than two repetitions.",
            allowed="characters, classes [a-z] and \\d, each with one of * + ? {n}; ^ $ and |",
            remedy="Write LIKE with % and _, or IN ('value', ...).",
        )
    compiled = [re.compile(branch, re.ASCII) for branch in branches]
    if whole:
        return lambda label: any(branch.fullmatch(label) for branch in compiled)
    return lambda label: any(branch.search(label) for branch in compiled)


def _is_simple(branch: str) -> bool:
    """Whether one alternative has no groups and at most two repetitions."""
    if _SIMPLE.fullmatch(branch) is None:
        return False
    return len(re.findall(r"[*+?]", branch)) <= 2


def substring(start: int, length: int | None) -> Callable[[str], str]:
    """Returns SUBSTRING as a function; positions count from 1, negative ones from the end."""

    def cut(label: str) -> str:
        first = start - 1
        if start < 0:
            first = len(label) + start
        last = len(label) if length is None else first + length
        return label[max(first, 0) : max(last, 0)]

    return cut


def to_number(label: str) -> Fraction | None:
    """Returns TRY_CAST of a string to a number; None if it does not denote one."""
    if re.fullmatch(r"\s*[+-]?\d{1,15}(\.\d{1,9})?\s*", label, re.ASCII):
        return Fraction(label)
    return None


def _require_short(pattern: str) -> None:
    if len(pattern) > _LONGEST_PATTERN:
        raise UnsupportedSql(
            f"A pattern of more than {_LONGEST_PATTERN} characters.", remedy="Write a shorter one."
        )
