# SPDX-License-Identifier: Apache-2.0
"""Functions of a Text column, whose values are not declared: every engine computes them alike.

Letters change their case only from A to Z: beyond, engines and versions differ about what a letter
is.
"""

from string import ascii_lowercase, ascii_uppercase

from sfumato.errors import MissingDeclaration
from sfumato.plan.scalar import (
    TO_THE_END,
    ChangeCase,
    Field,
    Like,
    Member,
    Substring,
)
from sfumato.sql.typed import Truth, Words

ASCII_NOTE = (
    "LOWER, UPPER and ILIKE change the letters A to Z of a Text column, and no others: 'Ä' is not "
    "'ä'."
)
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def in_case(text: Words, *, upper: bool) -> Words:
    """Returns UPPER(text) or LOWER(text)."""
    return Words(ChangeCase(text.expression, upper))


def beginning(text: Words, length: int) -> Words:
    """Returns LEFT(text, length)."""
    return Words(Substring(text.expression, 1, length))


def substring(text: Words, start: int, length: int | None) -> Words:
    """Returns SUBSTRING(text, start, length); without a length, to the end."""
    return Words(Substring(text.expression, start, TO_THE_END if length is None else length))


def like(text: Words, pattern: str, *, ignore_case: bool) -> Truth:
    """Returns the test of LIKE or ILIKE."""
    if ignore_case:
        return Truth(Like(ChangeCase(text.expression, upper=False), pattern.translate(_LOWER)))
    return Truth(Like(text.expression, pattern))


def starts_with(text: Words, wanted: str) -> Truth:
    """Returns the test STARTS_WITH(text, wanted)."""
    first = Substring(text.expression, 1, len(wanted))
    return Truth(Member(first, (wanted,)))


def bounds_needed(what: str, typed: Words) -> MissingDeclaration:
    """Returns the error for a Text column where a number with declared bounds is needed."""
    name = "column"
    declared = "sf.Text()"
    if isinstance(typed.expression, Field):
        column = typed.expression.column
        name = column.name.rpartition(".")[2]
        declared = repr(column.type)
    return MissingDeclaration(
        f"{what} needs declared bounds, and {name!r} is declared as {declared}.",
        allowed="sf.Integer(lower, upper) or sf.Real(lower, upper)",
        remedy=f"Declare columns={{{name!r}: sf.Real(lower, upper)}} with bounds that are public.",
    )
