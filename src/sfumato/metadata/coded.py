# SPDX-License-Identifier: Apache-2.0
"""The base of column types with integer codes, and the strings that mean "missing"."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, shown

# Codes beyond 2^52 steps would not be exact as doubles inside an engine.
MAX_CODE = 2**52

Markers: TypeAlias = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Coded:
    """The base class of column types whose values have integer codes: all types but ``Text`` and
    ``Array``.

    Each value has an integer code from ``lower_code`` to ``upper_code``; plans and engines compute
    with codes alone. ``step`` is the value of one code.
    """

    lower_code: int
    upper_code: int
    step: Fraction
    missing: Markers

    @property
    def size(self) -> int:
        """The number of codes, and so of different values that a column of this type can have;
        missing values are not counted.
        """
        return self.upper_code - self.lower_code + 1


def set_codes(
    target: Coded, lower: int, upper: int, step: Fraction, missing: str | Sequence[str] | None
) -> None:
    """Sets the range of codes, the step and the missing markers of a type under construction.

    Raises:
        InvalidDeclaration: a code is beyond 2^52, or a marker is no string.
    """
    if max(abs(lower), abs(upper)) > MAX_CODE:
        raise InvalidDeclaration(
            "Bounds that are more than 2^52 steps from zero.",
            remedy="Declare narrower bounds, or a larger step= for a Real.",
        )
    for name, value in (
        ("lower_code", lower),
        ("upper_code", upper),
        ("step", step),
        ("missing", markers(missing)),
    ):
        object.__setattr__(target, name, value)


def markers(declared: object, name: str = "missing") -> Markers:
    """Returns the declared strings that mean "missing" as a tuple; None if there are none.

    Raises:
        InvalidDeclaration: the argument is neither a string nor a sequence of strings.

    >>> markers("N"), markers(["N", ""]), markers(None)
    (('N',), ('N', ''), None)
    """
    if declared is None:
        return None
    listed: tuple[object, ...] = (None,)
    if isinstance(declared, str):
        listed = (declared,)
    elif isinstance(declared, list | tuple):
        listed = tuple(declared)
    elif isinstance(declared, set):
        # the order of a set differs between processes; markers in another order are another plan
        listed = tuple(sorted(declared, key=str))
    texts = tuple(marker for marker in listed if isinstance(marker, str))
    if len(texts) < len(listed):
        raise InvalidDeclaration(
            f"{name}={shown(declared)}.", allowed="a text such as 'N', or several"
        )
    return texts


def shown_missing(missing: Markers) -> str:
    """Returns the argument ``missing=`` as the ``repr`` of a column type shows it.

    >>> shown_missing(("N",)), shown_missing(("N", "")), shown_missing(None)
    (", missing='N'", ", missing=('N', '')", '')
    """
    if missing is None:
        return ""
    only = missing[0] if len(missing) == 1 else missing
    return f", missing={only!r}"
