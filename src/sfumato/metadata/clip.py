# SPDX-License-Identifier: Apache-2.0
"""Clips: the interval to which sums, means and variances may clip the values of a column.

A clip is declared apart from the bounds of the column, and lies within them.
"""

from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, cast

from sfumato.errors import InvalidDeclaration, InvalidNumber, WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.privacy.unit import AUTO, Auto

# As declared: the largest value, or the smallest and the largest one.
DeclaredClip: TypeAlias = Number | tuple[Number, Number] | Auto | None
Ends: TypeAlias = tuple[Fraction, Fraction]
# In codes: the smallest and the largest one.
Clip: TypeAlias = tuple[int, int] | Auto | None


class Values(Enum):
    """The choice between statistics (SUM, AVG, VARIANCE) of a column's declared values and
    statistics of the values clipped to its ``clip``.

    With ``TABLE``, both are shown side by side; the interval of the first includes the error that
    the clip makes.
    """

    TABLE = "table"
    CLIPPED = "clipped"

    def __repr__(self) -> str:
        return self.name.capitalize()


# Asks for statistics of the clipped values alone: ``session.query(..., values=sf.Clipped)``.
Clipped = Values.CLIPPED


def require_values(values: object) -> Values:
    """Checks that an argument is a member of ``Values``, and returns it."""
    if not isinstance(values, Values):
        raise WrongUse(
            f"values={shown(values)}.", allowed="sf.Clipped, or nothing for the table's own values"
        )
    return values


def clip_ends(clip: DeclaredClip, lower: Fraction, upper: Fraction) -> Ends | Auto | None:
    """Returns the lower and the upper end of the clipping range that a column declares with
    ``clip=``, in the units of the column.

    Args:
        clip: the largest value that is not clipped, or a pair of the smallest and the largest one.
        lower: the smallest possible value.
        upper: the largest possible value.

    Raises:
        InvalidDeclaration: the ends are no numbers, are not in order, or are not possible values.

    >>> clip_ends(200_000, Fraction(0), Fraction(10**6))
    (Fraction(0, 1), Fraction(200000, 1))
    """
    if clip is None or clip is AUTO:
        return clip
    try:
        low, high = _declared(clip, lower)
    except (InvalidNumber, TypeError, ValueError):
        raise _refused(clip) from None
    if not lower <= low < high <= upper:
        raise _refused(clip)
    return low, high


def _declared(clip: object, lower: Fraction) -> Ends:
    """Returns both ends of a declared clip as numbers."""
    if isinstance(clip, tuple | list):
        low, high = clip
        return to_fraction("clip", low), to_fraction("clip", high)
    return lower, to_fraction("clip", cast(Number, clip))


def _refused(clip: object) -> InvalidDeclaration:
    """The refusal of a clip."""
    return InvalidDeclaration(
        f"clip={shown(clip)}.",
        allowed="a number, or (smallest, largest), between lower and upper; or sf.AUTO "
        '("auto" in a configuration file)',
        remedy="lower and upper are what is possible; clip is what aggregates keep of it.",
    )


def clip_codes(ends: Ends | Auto | None, code: Callable[[Fraction], int]) -> Clip:
    """Returns the ends of a column's clipping range as integer codes; ``code`` rounds a value to
    its code. None and ``sf.AUTO`` are returned unchanged.

    Raises:
        InvalidDeclaration: both ends round to the same code.
    """
    if not isinstance(ends, tuple):
        return ends
    low, high = map(code, ends)
    if low >= high:
        raise InvalidDeclaration(
            "A clip whose ends fall on one step.", remedy="Declare a smaller step=."
        )
    return low, high
