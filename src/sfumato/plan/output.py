# SPDX-License-Identifier: Apache-2.0
"""The post-processing of released numbers: SELECT list, HAVING, ORDER BY, LIMIT."""

from dataclasses import dataclass

from sfumato.plan.scalar import Scalar


@dataclass(frozen=True, slots=True)
class Item:
    """A column of an answer: its title, and the expression by which it is computed from released
    numbers.
    """

    name: str
    expression: Scalar


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key of ORDER BY; NULLs come last unless ``nulls_first`` is set."""

    expression: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """The post-processing of a SQL statement: how the rows of the answer are computed from noisy
    aggregates and group keys alone.

    ``items`` are its columns, ``having`` filters its rows, ``order`` sorts them. ``sets`` has, for
    each grouping set (ROLLUP, CUBE, GROUPING SETS), the positions of its keys; groups that agree in
    these keys are added up after the noise. Empty ``sets``: one set with all keys.
    """

    items: tuple[Item, ...]
    having: Scalar | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: tuple[tuple[int, ...], ...] = ()
