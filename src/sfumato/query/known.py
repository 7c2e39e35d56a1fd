# SPDX-License-Identifier: Apache-2.0
"""A cache of ledger requests by statement, so that a repeated question is not planned again.

``Session.query`` looks here first. The key of an answer is a function of the SQL, the parameters,
the price, the declarations, the asker and the current date. A question with a wanted error is not
cached, since its plan depends on what is stored and spent at that time.
"""

import datetime
from collections.abc import Hashable, Mapping
from decimal import Decimal
from fractions import Fraction

from sfumato.ledger.request import Request
from sfumato.metadata.clip import Values
from sfumato.query.asker import Asker
from sfumato.query.outer import Outer
from sfumato.query.price import Price
from sfumato.query.release import Asked
from sfumato.sql.bind import Parameters

# The most requests in the cache; it is emptied when it is full.
_REMEMBERED = 2**12
# The most of SQL over private answers, whose trees are large.
_REMEMBERED_OUTERS = 256
# The types of parameters that are determined by their type and ``repr``.
_PLAIN = (bool, int, float, str, Decimal, Fraction, datetime.date, type(None))


class Known:
    """A cache of the ledger requests of answered questions, for all askers of one dataset.

    A repeated question is looked up in the ledger by it, without planning.

    SQL over private answers is kept as it was split and described, without its charges.

    Guarantees:
        what is remembered is what planning would find
    """

    __slots__ = ("_outers", "_requests")

    def __init__(self) -> None:
        self._requests: dict[Hashable, Asked | Request] = {}
        self._outers: dict[Hashable, Outer] = {}

    def find(self, name: Hashable) -> Request | None:
        """Returns the cached ledger request of a question; None if there is none."""
        request = None if name is None else self._requests.get(name)
        if isinstance(request, Asked):
            request = request.request()
            self._requests[name] = request
        return request

    def keep(self, name: Hashable, question: Asked) -> None:
        """Caches the request of an answered question, as planned before any part of it was stored."""
        if name is not None:
            if len(self._requests) >= _REMEMBERED:
                self._requests.clear()
            self._requests[name] = question

    def outer(self, name: Hashable) -> Outer | None:
        """Returns the cached plan of SQL over private answers; None if there is none."""
        known = None if name is None else self._outers.get(name)
        return None if known is None else known.afresh()

    def keep_outer(self, name: Hashable, outer: Outer) -> None:
        """Caches the plan of SQL over private answers."""
        if name is not None:
            if len(self._outers) >= _REMEMBERED_OUTERS:
                self._outers.clear()
            self._outers[name] = outer


def name_of(
    sql: object,
    parameters: Parameters | None,
    price: Price,
    asker: Asker,
    clipped: Values = Values.TABLE,
) -> Hashable:
    """Returns the key of a question in the cache of requests; None if it cannot be known before
    planning.

    It contains everything on which the key of the answer depends.
    """
    values = _values(parameters)
    if not isinstance(sql, str) or values is None or price.target is not None:
        return None
    today = datetime.datetime.now(datetime.UTC).date()
    return sql, values, price, clipped, asker.analyst, asker.purpose, today


def _values(parameters: Parameters | None) -> Hashable:
    """Parameters as a hashable value, equal only for equal parameters; None without parameters."""
    if parameters is None:
        return ()
    try:
        pairs = parameters.items() if isinstance(parameters, Mapping) else enumerate(parameters)
        named = list(pairs)
    except TypeError:
        return None
    values = []
    for name, value in named:
        if type(value) not in _PLAIN or type(name) not in (int, str):
            return None
        values.append((name, type(value), repr(value)))
    return tuple(values)
