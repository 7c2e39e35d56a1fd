# SPDX-License-Identifier: Apache-2.0
"""How a column of an outer statement is computed from released cells: forms, and their places.

A leaf of a form has hidden columns. While a statement is traced they are expressions, then names of
columns of a sub-query, and in the end places in the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

# Rows and columns of an answer in the code of a cell.
ROWS = 2**32
_COLUMNS = 2**12
# The code of a cell where LAG or LEAD has no row.
NO_ROW = -1
# The operation of a value that is one of several, or NULL: NULLIF, or CASE without ELSE.
ANY_OR_NULL = "any or NULL"


class Kind(Enum):
    """The kind of a traced number: one released number, a sum or mean of them, or a public
    number.
    """

    CELL = "cell"
    SUM = "sum"
    MEAN = "mean"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A released or public number from which an outer statement computes, and whose interval is
    known.

    ``hidden`` are its hidden columns: of a cell its code; of a sum the sum itself, the number of
    cells, that of different ones, the least and the largest code; of a public number itself. ``chosen``: which
    row it is depends on released numbers.
    """

    kind: Kind
    hidden: tuple[Any, ...]
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class FixedNumber:
    """A constant number in a traced expression of an outer statement."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Computed:
    """A number that an outer statement computes from others, for its error interval.

    ``operation`` is + - * /, "any" of the parts (``ANY_OR_NULL``: or NULL), the "first" that is
    not NULL, the first whose row is there ("lagged"), the "greatest", the "least", or "round" for
    the first one in multiples of the second.
    """

    operation: str
    parts: "tuple[Form, ...]"


Form: TypeAlias = Leaf | FixedNumber | Computed


@dataclass(frozen=True, slots=True)
class Known:
    """A traced column of an outer statement: how it is computed, and whether it depends on noise.

    ``form`` is None if no interval can be computed.
    """

    form: Form | None
    noisy: bool


def cell_of(code: int) -> tuple[int, int, int]:
    """Returns the (answer, column, row) of a released number, decoded from its integer code.

    >>> cell_of(code_of(2, 3) + 7)
    (2, 3, 7)
    """
    column, row = divmod(code, ROWS)
    return (*divmod(column, _COLUMNS), row)


def code_of(answer: int, column: int) -> int:
    """Returns the integer code of the released number in the first row of an answer's column."""
    return (answer * _COLUMNS + column) * ROWS


def quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def may_be_null(form: Form) -> bool:
    """Whether noise decides if a traced expression is NULL, other than by a cell that is NULL."""
    if not isinstance(form, Computed):
        return False
    return form.operation == ANY_OR_NULL or any(map(may_be_null, form.parts))


def in_scope(form: Form, alias: str) -> Form:
    """Returns a traced expression whose hidden columns belong to the table ``alias`` of FROM."""
    if isinstance(form, FixedNumber):
        return form
    if isinstance(form, Computed):
        return replace(form, parts=tuple(in_scope(part, alias) for part in form.parts))
    columns = [exp.column(quoted(name), table=quoted(alias)) for name in form.hidden]
    return replace(form, hidden=tuple(columns))


def with_places(form: Form | None, places: Mapping[str, int]) -> Form | None:
    """Returns a traced expression with the positions of its hidden columns in the result."""
    if form is None or isinstance(form, FixedNumber):
        return form
    if isinstance(form, Computed):
        parts = [with_places(part, places) for part in form.parts]
        return replace(form, parts=tuple(part for part in parts if part is not None))
    return replace(form, hidden=tuple(places[name] for name in form.hidden))


def as_chosen(form: Form | None) -> Form | None:
    """Returns a traced expression marked as from a row that was chosen by noisy numbers."""
    if form is None or isinstance(form, FixedNumber):
        return form
    if isinstance(form, Computed):
        parts = [as_chosen(part) for part in form.parts]
        return replace(form, parts=tuple(part for part in parts if part is not None))
    return replace(form, chosen=form.kind is not Kind.PUBLIC)


def shape(form: Form | None) -> object:
    """Returns the structure of a traced expression; the columns of a UNION ALL must have equal
    ones.
    """
    if form is None or isinstance(form, FixedNumber):
        return form
    if isinstance(form, Computed):
        return form.operation, tuple(map(shape, form.parts))
    return form.kind


def merged(first: Form | None, second: Form | None) -> Form | None:
    """Returns one traced expression for two of equal ``shape``; None if one of them is None.

    It is marked as chosen by noise where either is.
    """
    if first is None or second is None:
        return None
    if isinstance(first, Leaf) and isinstance(second, Leaf):
        return replace(first, chosen=first.chosen or second.chosen)
    if isinstance(first, Computed) and isinstance(second, Computed):
        parts = [merged(*pair) for pair in zip(first.parts, second.parts, strict=True)]
        return replace(first, parts=tuple(part for part in parts if part is not None))
    return first
