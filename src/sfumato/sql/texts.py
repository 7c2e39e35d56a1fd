# SPDX-License-Identifier: Apache-2.0
"""Functions of a Text column, whose values are not declared: every engine computes them alike.

Letters change their case only from A to Z: beyond, engines and versions differ about what a letter
is.
"""

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.plan.scalar import (
    TO_THE_END,
    ChangeCase,
    Constant,
    Field,
    Like,
    Member,
    Scalar,
    Substring,
    Trim,
)
from sfumato.sql.typed import Label, Truth, Typed, Words, known

ASCII_NOTE = (
    "LOWER, UPPER and ILIKE change the letters A to Z of a Text column, and no others: 'Ä' is not "
    "'ä'."
)
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def words(values: Sequence[Typed]) -> list[Scalar] | None:
    """Returns texts of Text columns, and constants beside them, as expressions; None for others."""
    constants = [known(value) if isinstance(value, Label) else None for value in values]
    expressions: list[Scalar] = []
    for value, constant in zip(values, constants, strict=True):
        if isinstance(constant, str):
            expressions.append(Constant(constant))
        elif isinstance(value, Words):
            expressions.append(value.expression)
    return expressions if len(expressions) == len(values) else None


def in_case(text: Words, *, upper: bool) -> Words:
    """Returns UPPER(text) or LOWER(text)."""
    return Words(ChangeCase(text.expression, upper))


def beginning(text: Words, length: int) -> Words:
    """Returns LEFT(text, length)."""
    return Words(Substring(text.expression, 1, length))


def substring(text: Words, start: int, length: int | None) -> Words:
    """Returns SUBSTRING(text, start, length); without a length, to the end."""
    return Words(Substring(text.expression, start, TO_THE_END if length is None else length))


def trimmed(text: Words, position: str) -> Words:
    """Returns TRIM of spaces; ``position``: LEADING, TRAILING, or anything else for both ends."""
    return Words(Trim(text.expression, position != "TRAILING", position != "LEADING"))


def contains(text: Words, wanted: str, *, at_end: bool) -> Truth:
    """Returns the test that a text contains a constant one, or ends with it."""
    if set(wanted) & set("%_"):
        raise UnsupportedSql(
            "CONTAINS or ENDS_WITH of a Text column with % or _, which are places of LIKE.",
            remedy="LIKE '%text%', or leave these characters out.",
        )
    return Truth(Like(text.expression, f"%{wanted}" if at_end else f"%{wanted}%"))


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
