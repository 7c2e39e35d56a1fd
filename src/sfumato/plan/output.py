# SPDX-License-Identifier: Apache-2.0
"""What is made of the released numbers: columns, HAVING, ORDER BY, LIMIT. Post-processing."""

from dataclasses import dataclass

from sfumato.plan.scalar import Scalar


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the answer."""

    name: str
    expression: Scalar


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key; NULL last unless said otherwise."""

    expression: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """The shape of the answer, computed from released numbers and shown keys alone.

    ``sets``: the places of the keys that each grouping set keeps (ROLLUP, CUBE, GROUPING
    SETS); the groups that agree in them are added up after the noise. Empty: one set, of every key.
    """

    items: tuple[Item, ...]
    having: Scalar | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: tuple[tuple[int, ...], ...] = ()
