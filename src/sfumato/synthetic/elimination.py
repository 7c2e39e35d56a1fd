# SPDX-License-Identifier: Apache-2.0
"""Variable elimination: the marginals of small tables whose product is a distribution.

Columns are summed out one after the other, and the derivatives of the sum of all cells are computed
back. Where two tables meet, they are multiplied and summed at once, as matrices: so the table of a
clique, which has many more cells than they, is never computed.

Source: Dechter (1999), "Bucket elimination"; Darwiche (2003), "A differential approach to inference
in Bayesian networks".
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import Clique, JunctionTree

# Sums below this may have lost digits.
_LEAST_SUM = 1e-200


@dataclass(frozen=True)
class Elimination:
    """A plan for summing the product of some factors (tables over columns) over all columns; every
    table has a first axis of distributions, which are computed at once.

    >>> tree = JunctionTree.over([2, 2], [(0, 1)])
    >>> pair, column = np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.array([[1.0, 10.0]])
    >>> plan = Elimination.of(tree, [(0, 1), (1,)])
    >>> [table.tolist() for table in plan.marginals([pair, column], np.array([64.0]))]
    [[[[1.0, 20.0], [3.0, 40.0]]], [[4.0, 60.0]]]
    """

    factors: int
    steps: tuple["_Step", ...]

    @classmethod
    def of(cls, tree: JunctionTree, factors: Sequence[Clique]) -> "Elimination":
        """Returns the plan for factors over these sets of columns, each within a clique of the
        tree; columns are summed out from the tree's last clique on.
        """
        plan = _Plan(tree.sizes, [*factors])
        for clique, separator in zip(
            reversed(tree.cliques), reversed(tree.separators), strict=True
        ):
            plan.eliminate(set(clique) - set(separator))
        return cls(len(factors), tuple(plan.steps))

    def marginals(self, factors: Sequence[Floats], totals: Floats) -> list[Floats] | None:
        """Returns the marginal of the product over the columns of each factor, scaled to the total
        of each distribution; None if the sums underflow.

        Each table is part of one step, so its derivative follows from that of the step's result.
        """
        tables, scales = list(factors), [np.ones(len(totals))]
        for step in self.steps:
            table = step.forward(tables)
            if step.is_sum:
                largest = table.reshape(len(table), -1).max(axis=1)
                scales.append(np.maximum(largest, _LEAST_SUM))
                table = table / _spread(scales[-1], table.ndim)
            tables.append(table)
        if min(scale.min() for scale in scales) <= _LEAST_SUM:
            return None
        derivatives = [totals] * len(tables)
        for at in range(len(self.steps) - 1, -1, -1):
            step, derivative = self.steps[at], derivatives[self.factors + at]
            if step.is_sum:
                derivative = derivative / _spread(scales.pop(), derivative.ndim)
            step.backward(tables, derivative, derivatives)
        return [one * other for one, other in zip(factors, derivatives, strict=False)]


def _contraction(
    sizes: Sequence[int], left: Clique, right: Clique, kept_columns: Clique
) -> "_Contraction":
    """The product of two tables, summed over the columns that both have and the result has not."""
    summed = [each for each in left if each in right and each not in kept_columns]
    if not summed:
        shapes = [
            [sizes[each] if each in some else 1 for each in kept_columns] for some in (left, right)
        ]
        return _Spread(tuple(shapes[0]), tuple(shapes[1]))
    shared = [each for each in left if each in right and each in kept_columns]
    rows = [each for each in left if each not in right]
    columns = [each for each in right if each not in left]
    cells = [math.prod(sizes[each] for each in some) for some in (shared, rows, summed, columns)]
    batches, height, inner, width = cells
    made = [*shared, *rows, *columns]
    return _Matrices(
        (_order(left, [*shared, *rows, *summed]), _order(right, [*shared, *summed, *columns])),
        ((batches, height, inner), (batches, inner, width)),
        tuple(sizes[each] for each in made),
        _order(made, kept_columns),
    )


@dataclass(frozen=True)
class _Spread:
    """Without a sum: the shapes in which the tables broadcast against each other."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    def __call__(self, left: Floats, right: Floats) -> Floats:
        count = len(left)
        return left.reshape(count, *self.left) * right.reshape(count, *self.right)


@dataclass(frozen=True)
class _Matrices:
    """With a sum: for each combination of the columns that all have, a product of matrices."""

    orders: tuple[tuple[int, ...], tuple[int, ...]]
    shapes: tuple[tuple[int, int, int], tuple[int, int, int]]
    shape: tuple[int, ...]
    order: tuple[int, ...]

    def __call__(self, left: Floats, right: Floats) -> Floats:
        count = len(left)
        first = left.transpose(self.orders[0]).reshape(count, *self.shapes[0])
        second = right.transpose(self.orders[1]).reshape(count, *self.shapes[1])
        product: Floats = first @ second
        return product.reshape(count, *self.shape).transpose(self.order)


_Contraction = _Spread | _Matrices


@dataclass(frozen=True)
class _Product:
    """A step: two tables are multiplied, and summed over a column or not."""

    left: int
    right: int
    make: _Contraction
    to_left: _Contraction
    to_right: _Contraction

    @property
    def is_sum(self) -> bool:
        return isinstance(self.make, _Matrices)

    def forward(self, tables: Sequence[Floats]) -> Floats:
        return self.make(tables[self.left], tables[self.right])

    def backward(
        self,
        tables: Sequence[Floats],
        derivative: Floats,
        derivatives: list[Floats],
    ) -> None:
        derivatives[self.left] = self.to_left(derivative, tables[self.right])
        derivatives[self.right] = self.to_right(derivative, tables[self.left])


@dataclass(frozen=True)
class _Sum:
    """A step: a table is summed over one of its axes."""

    table: int
    axis: int
    is_sum: ClassVar[bool] = True

    def forward(self, tables: Sequence[Floats]) -> Floats:
        return np.asarray(tables[self.table].sum(axis=self.axis))

    def backward(
        self,
        tables: Sequence[Floats],
        derivative: Floats,
        derivatives: list[Floats],
    ) -> None:
        spread = np.expand_dims(derivative, self.axis)
        derivatives[self.table] = np.broadcast_to(spread, tables[self.table].shape)


class _Plan:
    """Steps so far; ``left`` are the tables that are not yet part of one."""

    def __init__(self, sizes: Sequence[int], columns: list[Clique]) -> None:
        self.sizes = sizes
        self.columns = columns
        self.left = list(range(len(columns)))
        self.steps: list[_Step] = []

    def eliminate(self, columns: set[int]) -> None:
        """Sums over columns, first those whose tables together have the fewest cells."""
        while columns:
            column = min(columns, key=lambda each: (self._cells(self._bucket(each)), each))
            columns.remove(column)
            bucket = self._bucket(column)
            while len(bucket) > 2:
                pair = min(combinations(bucket, 2), key=self._cells)
                bucket = [each for each in bucket if each not in pair]
                bucket.append(self._multiply(pair, self._union(pair)))
            kept = tuple(each for each in self._union(bucket) if each != column)
            if len(bucket) == 2:
                self._multiply((bucket[0], bucket[1]), kept)
            elif bucket:
                axis = 1 + self.columns[bucket[0]].index(column)
                self._add(_Sum(bucket[0], axis), bucket, kept)

    def _bucket(self, column: int) -> list[int]:
        return [each for each in self.left if column in self.columns[each]]

    def _union(self, tables: Iterable[int]) -> Clique:
        return tuple(sorted({column for each in tables for column in self.columns[each]}))

    def _cells(self, tables: Iterable[int]) -> int:
        return math.prod(self.sizes[each] for each in self._union(tables))

    def _multiply(self, pair: tuple[int, int], kept_columns: Clique) -> int:
        left, right = (self.columns[each] for each in pair)
        step = _Product(
            *pair,
            _contraction(self.sizes, left, right, kept_columns),
            _contraction(self.sizes, kept_columns, right, left),
            _contraction(self.sizes, kept_columns, left, right),
        )
        return self._add(step, pair, kept_columns)

    def _add(self, step: "_Step", used: Sequence[int], kept: Clique) -> int:
        self.steps.append(step)
        self.columns.append(kept)
        made = len(self.columns) - 1
        self.left = [*(each for each in self.left if each not in used), made]
        return made


def _spread(numbers: Floats, axes: int) -> Floats:
    """A number for each distribution, shaped so that it broadcasts against a table."""
    return numbers.reshape(-1, *[1] * (axes - 1))


def _order(columns: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """The axes of a table with some columns in another order, after the first axis."""
    return (0, *(1 + columns.index(each) for each in wanted))


_Step = _Product | _Sum
