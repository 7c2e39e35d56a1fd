# SPDX-License-Identifier: Apache-2.0
"""Questions that were answered before, by their text: what is stored is found without planning it again.

The key of an answer is a function of the text, the parameters, the price, the declarations, the
asker and, of a text that names today, the day. A wanted error is not remembered: what it
comes to mean depends on what is stored and spent by then.
"""

import datetime
from collections.abc import Hashable, Mapping
from decimal import Decimal
from fractions import Fraction

from sfumato.ledger.request import Request
from sfumato.query.asker import Asker
from sfumato.query.price import Price
from sfumato.query.release import Asked
from sfumato.sql.bind import Parameters

# So many are remembered; beyond, all are forgotten and planned again.
_REMEMBERED = 2**12
# What a parameter may be for its type and its representation to say all of it.
_PLAIN = (bool, int, float, str, Decimal, Fraction, datetime.date, type(None))


class Known:
    """Requests by the question that led to them, for all askers of one dataset.

    Guarantees:
        what is remembered is what planning would find
    """

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests: dict[Hashable, Asked | Request] = {}

    def find(self, name: Hashable) -> Request | None:
        """The request of a question, if it was asked before."""
        found = None if name is None else self._requests.get(name)
        if isinstance(found, Asked):
            self._requests[name] = found = found.request()
        return found

    def keep(self, name: Hashable, asked: Asked) -> None:
        """Remembers a question that was answered, as it is planned before anything of it is stored."""
        if name is not None:
            if len(self._requests) >= _REMEMBERED:
                self._requests.clear()
            self._requests[name] = asked


def name_of(sql: object, parameters: Parameters | None, price: Price, asker: Asker) -> Hashable:
    """All that the key of an answer depends on, or None where that is not known before planning."""
    values = _values(parameters)
    if not isinstance(sql, str) or values is None or price.target is not None:
        return None
    today = datetime.datetime.now(datetime.UTC).date()
    return sql, values, price, asker.analyst, asker.purpose, today


def _values(parameters: Parameters | None) -> Hashable:
    """Parameters as something that is equal only for the same values; None: there is no such thing."""
    if parameters is None:
        return ()
    try:
        named = (
            list(parameters.items())
            if isinstance(parameters, Mapping)
            else list(enumerate(parameters))
        )
    except TypeError:
        return None
    if not all(type(value) in _PLAIN and type(name) in (int, str) for name, value in named):
        return None
    return tuple((name, type(value), repr(value)) for name, value in named)
