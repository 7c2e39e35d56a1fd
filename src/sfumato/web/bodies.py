# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON body of a request: exact decimals, no key twice, nothing that is no JSON."""

import json
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sfumato.errors import WrongUse, shown

MOST_BYTES = 64 * 1024


class TooLarge(WrongUse):
    """The body of an HTTP request has more than 64 KiB."""


class NoSuchMethod(WrongUse):
    """The path of an HTTP request exists, but for other methods."""


def read_form(body: bytes, fields: Collection[str]) -> Mapping[str, Any]:
    """Parses the JSON object in a request body; numbers with a point or exponent become Decimals.

    Guarantees:
        a number counts by its digits

    Raises:
        WrongUse: no JSON object, a key that stands twice or is unknown, NaN, too deep.

    >>> read_form(b'{"epsilon": 0.10}', ["epsilon"])
    {'epsilon': Decimal('0.10')}
    """
    if not body:
        return {}
    try:
        form = json.loads(
            body.decode("utf-8"),
            parse_float=Decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except _Twice as error:
        raise WrongUse(f"The key {shown(error.key)} stands twice.") from None
    except (ValueError, ArithmeticError, RecursionError):
        raise WrongUse("The body is not JSON.", allowed="an object in UTF-8") from None
    if not isinstance(form, dict):
        raise WrongUse("The body is no object.", allowed='{"purpose": "study", ...}')
    for name in form:
        if name not in fields:
            raise WrongUse(f"Unknown key {shown(name)}.", allowed=", ".join(fields))
    return form


class _Twice(ValueError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _Twice(key)
        made[key] = value
    return made


def _refuse_constant(text: str) -> None:
    raise ValueError(text)
