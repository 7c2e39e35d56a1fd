# SPDX-License-Identifier: Apache-2.0
"""Parses a TOML file without rounding its decimals, in quotes or not."""

import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidConfig, shown
from sfumato.metadata.server import is_address
from sfumato.metadata.side_file import side_text


def read_toml(path: str | Path, remedy: str = "Name another file.") -> dict[str, Any]:
    """Returns the content of a TOML file; ``remedy`` is the advice in the error for a missing file.

    Guarantees:
        no decimal of a file is rounded

    Raises:
        InvalidConfig: there is no such file, it is not TOML, or a decimal without quotes has more
            digits than a float keeps.

    >>> read_toml("nowhere.toml")
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidConfig: No file 'nowhere.toml'.
    What to do: Name another file.
    """
    if is_address(path):
        raise InvalidConfig("The address of a server where a file is needed.", remedy=remedy)
    try:
        return tomllib.loads(side_text(path), parse_float=_decimal)
    except FileNotFoundError:
        raise InvalidConfig(f"No file {shown(path)}.", remedy=remedy) from None
    except OSError as error:
        raise InvalidConfig(f"{shown(path)} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        # a syntax error, a number of thousands of digits, or lists in lists without end
        raise InvalidConfig(f"{shown(path)} is not TOML: {error}.") from None


def _decimal(written: str) -> float:
    """Parses a decimal to a float whose shortest form (RULES 3) is exactly what is written."""
    value = float(written)
    try:
        exact = Decimal(written)
        is_same = not exact.is_finite() or exact == Decimal(repr(value))
    except InvalidOperation:
        is_same = False
    if not is_same:
        raise InvalidConfig(
            f"The number {written[:60]} has more digits than one without quotes keeps.",
            remedy=f'Write it as a text: "{written[:60]}"',
        )
    return value
