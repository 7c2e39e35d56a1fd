# SPDX-License-Identifier: Apache-2.0
"""Encodes the codes of a row as coordinates with integer weights, from declarations only.

A coordinate is an entry of the feature vector: a value, a bin, an end of a line, or "missing". In
each feature a row puts its whole weight on one coordinate or divides it between two neighbours, so
the weights of a feature always add up to ``Features.scale``. Recipes build the features; models and
statistics encode rows with them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from math import isqrt, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.learning.bag import Bag
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING

# The whole weight of a feature, if some features divide it.
_DIVIDED = 64
# The number of bins of a numeric column without declared edges.
BINS = 16
# Bins of codes that are this near each other are looked up in a table.
_TABLE = 1 << 12
# The most cells of a group of several features: a table of them fits the cache.
_CELLS = 1 << 13
Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.unsignedinteger[Any]]
Weights: TypeAlias = NDArray[np.uint8]
# Coordinates with their weights; an integer is the weight of all.
Share: TypeAlias = tuple[Integers | Places, Integers | int]


@dataclass(frozen=True, slots=True)
class Listed:
    """The one-hot encoding of a column of declared values: one coordinate for each code from
    ``lower`` on, and one for missing values.
    """

    name: str
    lower: int
    count: int

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return self.count + 1

    def places(
        self,
        codes: Integers,
        scale: int,
    ) -> tuple[Integers, Integers | None]:
        """Returns the coordinate of each row, and None for the weight of a second coordinate: a row
        has its whole weight on one.

        ``Line`` divides the weight between two coordinates and returns the second one's weight
        instead.
        """
        known = (codes >= self.lower) & (codes < self.lower + self.count)
        at = np.where(known, codes - self.lower, self.count)
        return at, None


@dataclass(frozen=True, slots=True)
class Binned:
    """The encoding of a numeric column in bins: one coordinate for each bin between ascending
    ``edges`` (codes), and one for missing values.
    """

    name: str
    edges: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return len(self.edges) + 2

    def places(
        self,
        codes: Integers,
        scale: int,
    ) -> tuple[Integers, Integers | None]:
        """Returns the coordinate (bin) of each row, and None for the weight of a second coordinate:
        a row has its whole weight on one.
        """
        at = np.where(codes == MISSING, len(self.edges) + 1, self._bins(codes))
        return at, None

    def _bins(self, codes: Integers) -> Integers:
        """Returns the number of edges at or below each code."""
        edges = np.array(self.edges, np.int64)
        if not len(edges) or self.edges[-1] - self.edges[0] >= _TABLE:
            return np.searchsorted(edges, codes, side="right")
        # below the first edge and above the last one nothing changes: a table is ten times as fast
        first, last = self.edges[0] - 1, self.edges[-1]
        table = np.searchsorted(edges, np.arange(first, last + 1), side="right")
        found: Integers = table[np.clip(codes, first, last) - first]
        return found


@dataclass(frozen=True, slots=True)
class Line:
    """The linear encoding of a numeric column: a value between the codes ``lower`` and ``upper``
    divides its weight between two coordinates.

    A third coordinate is for missing values.
    """

    name: str
    lower: int
    upper: int

    width = 3

    def places(
        self,
        codes: Integers,
        scale: int,
    ) -> tuple[Integers, Integers | None]:
        """Returns the first coordinate of each row, and the weight of the coordinate after it.

        The two weights add up to ``scale``.
        """
        inside = np.clip(codes, self.lower, self.upper)
        size = self.upper - self.lower
        # rounded to the nearest; codes have at most 52 bits
        weight = (2 * scale * (inside - self.lower) + size) // (2 * size)
        missing = codes == MISSING
        return np.where(missing, 2, 0), np.where(missing, 0, weight)


@dataclass(frozen=True, slots=True)
class Bagged:
    """The encoding of a text column: one coordinate for each bucket of its bag of words, and one
    for a text without tokens.

    It reads ``bag.most`` codes (``Bag.codes``). Of a text with b different buckets each has the
    weight floor(64 / sqrt(b)): together at most 64 in L2.
    """

    name: str
    bag: Bag

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return self.bag.buckets + 1

    @property
    def farthest(self) -> int:
        """The largest L1 norm that the coordinate weights of one text can have."""
        return max(count * _weight(count) for count in range(1, self.bag.most + 1))

    def places(self, codes: Integers) -> tuple[Integers, Weights]:
        """Returns the coordinates of each row's text and their weights, as matrices; unused entries
        have the weight 0.
        """
        is_there = (codes >= 0) & (codes < self.bag.buckets)
        counts = is_there.sum(axis=1)
        at = np.where(is_there, codes, self.bag.buckets)
        # a text without tokens has its whole weight on the last coordinate
        is_there[:, 0] |= counts == 0
        weights = np.array([_weight(max(count, 1)) for count in range(self.bag.most + 1)], np.uint8)
        return at, is_there * weights[counts][:, np.newaxis]


def _weight(count: int) -> int:
    """Returns the weight of each of ``count`` buckets: floor(64 / sqrt(count))."""
    return isqrt(_DIVIDED**2 // count)


Feature: TypeAlias = Listed | Binned | Line | Bagged


@dataclass(frozen=True, slots=True)
class Group:
    """Several adjacent features, whose coordinates in a row are encoded as one number (a cell), for
    speed.

    The number is the cell of a grid with one side per feature. ``first`` is the first coordinate of
    the first feature, ``widths`` are the numbers of coordinates of the features.

    >>> pair = Group(10, (2, 3))
    >>> pair.cells([np.array([0, 1]), np.array([2, 1])]).tolist()
    [2, 4]
    """

    first: int
    widths: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of cells: the product of the features' numbers of coordinates."""
        return prod(self.widths)

    @property
    def narrow(self) -> type[np.unsignedinteger[Any]]:
        """The smallest unsigned integer type that holds every cell number."""
        return _narrowest(self.size)

    def cells(self, places: Sequence[Integers]) -> Places:
        """Returns the cell of each row, from its coordinates in each feature (each counted from
        0).
        """
        found = places[0]
        for width, at in zip(self.widths[1:], places[1:], strict=True):
            found = found * width + at
        return found.astype(self.narrow)

    def places(self, cells: Places) -> Iterator[Integers]:
        """Yields the coordinates of the rows in each feature, given their cells: the inverse of
        ``cells``.
        """
        starts = accumulate(self.widths[:-1], initial=self.first)
        for start, at in zip(starts, np.unravel_index(cells, self.widths), strict=True):
            yield start + at

    def table(self, weights: Integers) -> Integers:
        """Returns, for each cell, the sum of a linear model's ``weights`` at the coordinates that
        the cell stands for.
        """
        found = np.zeros(1, np.int64)
        ends = accumulate(self.widths, initial=self.first)
        for start, width in zip(ends, self.widths, strict=False):
            own = weights[start : start + width]
            found = np.add.outer(found, own).ravel()
        return found

    def folded(self, sums: Integers) -> Integers:
        """Returns sums by coordinate, given the sums by cell of the group."""
        grid, found = sums.reshape(self.widths), []
        for width in self.widths:
            # the first side, whose place the next one takes
            found.append(grid.reshape(width, -1).sum(axis=1))
            grid = np.moveaxis(grid, 0, -1)
        return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class Features:
    """The encoder of the feature columns of a row as coordinates with integer weights, the input of
    linear models.

    ``parts`` has an encoding for each column; coordinates are numbered through all of them.

    >>> sex = Features((Listed("sex", 0, 2),))
    >>> sex.width, sex.scale
    (3, 1)
    """

    parts: tuple[Feature, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise WrongUse("Rows without features.", remedy="SELECT a feature beside the label.")
        if len({part.bag for part in self.parts if isinstance(part, Bagged)}) > 1:
            raise WrongUse("Texts in different bags.", allowed="one bag for all texts")

    @property
    def width(self) -> int:
        """The number of coordinates of all features together."""
        return sum(part.width for part in self.parts)

    @property
    def starts(self) -> list[int]:
        """The number of the first coordinate of each feature, among the coordinates of all
        features.
        """
        ends = np.cumsum([part.width for part in self.parts])
        return [0, *ends[:-1].tolist()]

    @property
    def scale(self) -> int:
        """The total weight that a row divides among the coordinates of one feature (texts
        excepted).
        """
        if any(isinstance(part, Line | Bagged) for part in self.parts):
            return _DIVIDED
        return 1

    @property
    def farthest(self) -> int:
        """The largest L1 norm that the coordinate weights of one row can have, over all
        features.
        """
        scale = self.scale
        return sum(part.farthest if isinstance(part, Bagged) else scale for part in self.parts)

    @property
    def bag(self) -> Bag | None:
        """The bag of the texts among the features."""
        return next((part.bag for part in self.parts if isinstance(part, Bagged)), None)

    @property
    def columns(self) -> int:
        """The number of codes of a row that the features read."""
        return sum(map(_codes_of, self.parts))

    def _divided(self, codes: Sequence[Integers]) -> Iterator[tuple[int, Feature, list[Integers]]]:
        """Yields each feature with its first coordinate and the codes that it reads."""
        if len(codes) != self.columns:
            raise ValueError("codes of other features")
        left = iter(codes)
        for start, part in zip(self.starts, self.parts, strict=True):
            yield start, part, list(islice(left, _codes_of(part)))

    def bagged(self, codes: Sequence[Integers]) -> list[tuple[Places, Weights]]:
        """Returns, for each text feature, the coordinates of the rows and their weights: two
        matrices with one line for each row.
        """
        bags = []
        for start, part, own in self._divided(codes):
            if isinstance(part, Bagged):
                at, weight = part.places(np.stack(own, axis=1))
                bags.append(((at + start).astype(self.narrow), weight))
        return bags

    def shares(self, codes: Sequence[Integers]) -> Iterator[Share]:
        """Yields pairs of arrays over the rows, coordinates and their weights, until all weights of
        every row are yielded.
        """
        for at, weight in self.encoded(codes):
            yield from divided_shares(at, weight, self.scale)
        for places, weights in self.bagged(codes):
            yield from zip(places.T, weights.T.astype(np.int64), strict=True)

    def encoded(self, codes: Sequence[Integers]) -> list[tuple[Places, Weights | None]]:
        """Returns, for each feature that is no text, the coordinates of the rows, and the weights
        of the coordinates after them.

        The weights are None if the whole weight is on one coordinate.
        """
        encoded_features: list[tuple[Places, Weights | None]] = []
        for start, part, own in self._divided(codes):
            if isinstance(part, Bagged):
                continue
            at, weight = part.places(own[0], self.scale)
            divided = None
            if weight is not None:
                divided = weight.astype(np.uint8)
            encoded_features.append(((at + start).astype(self.narrow), divided))
        return encoded_features

    @property
    def groups(self) -> tuple[Group, ...]:
        """All features, divided into groups of neighbours that are encoded together as one number.

        All weights of the features must be whole numbers.
        """
        groups: list[Group] = []
        for start, part in zip(self.starts, self.parts, strict=True):
            if groups and groups[-1].size * part.width <= _CELLS:
                last = groups.pop()
                groups.append(Group(last.first, (*last.widths, part.width)))
            else:
                groups.append(Group(start, (part.width,)))
        return tuple(groups)

    def grouped(self, codes: Sequence[Integers]) -> list[Places]:
        """Returns, for each group of features, the cell of each row, from the codes of each column."""
        places = [
            part.places(column, 1)[0]
            for part, column in zip(self.parts, codes, strict=True)
            if not isinstance(part, Bagged)
        ]
        left = iter(places)
        return [group.cells([*islice(left, len(group.widths))]) for group in self.groups]

    @property
    def narrow(self) -> type[np.unsignedinteger[Any]]:
        """The smallest unsigned integer type that holds every coordinate."""
        return _narrowest(self.width)

    def blank(self, count: int) -> list[tuple[Places, Weights | None]]:
        """Returns empty arrays for ``count`` rows, of the shapes and types that ``encoded``
        returns.
        """
        found: list[tuple[Places, Weights | None]] = []
        for part in self.parts:
            if isinstance(part, Bagged):
                continue
            divided = np.empty(count, np.uint8) if isinstance(part, Line) else None
            found.append((np.empty(count, self.narrow), divided))
        return found


def divided_shares(at: Places, weight: Weights | None, scale: int) -> Iterator[Share]:
    """Yields the coordinates of one feature and their weights, for rows as ``Features.encoded``
    returns them. The weights of a row add up to ``scale``.
    """
    if weight is None:
        yield at, scale
        return
    places = at.astype(np.int64)
    next_one = weight.astype(np.int64)
    yield places, scale - next_one
    # a weight of 0 stays where it is: there may be no next coordinate
    yield places + (next_one > 0), next_one


def _codes_of(part: Feature) -> int:
    """Returns the number of codes that a feature reads."""
    return part.bag.most if isinstance(part, Bagged) else 1


def _narrowest(count: int) -> type[np.unsignedinteger[Any]]:
    """Returns the smallest unsigned type for numbers below ``count``."""
    return np.uint16 if count <= 1 << 16 else np.uint32


def binned(
    name: str,
    kind: ColumnType,
    edges: Mapping[str, Sequence[float]],
    bins: int,
) -> Feature:
    """Returns the encoding of a column in bins, between its declared ``edges`` or of ``bins`` equal
    ones; a category is encoded by value.

    >>> binned("age", Integer(0, 99), {"age": [18, 65]}, 16)
    Binned(name='age', edges=(18, 65))
    """
    if isinstance(kind, Category | Boolean):
        return _listed(name, kind)
    lower, upper = numeric_ends(name, kind)
    if name in edges:
        codes = {_code(kind, edge) for edge in edges[name]}
    else:
        size = upper - lower + 1
        count = min(bins, size)
        codes = {lower + size * place // count for place in range(1, count)}
    return Binned(name, tuple(sorted(code for code in codes if lower < code <= upper)))


def linear(name: str, kind: ColumnType) -> Feature:
    """Returns the linear encoding of a numeric column between its declared bounds; a category is
    encoded by value.

    >>> linear("age", Integer(0, 99, clip=80))
    Line(name='age', lower=0, upper=80)
    """
    if isinstance(kind, Category | Boolean):
        return _listed(name, kind)
    return Line(name, *numeric_ends(name, kind))


def require_edges(names: Sequence[str], edges: Mapping[str, Sequence[float]]) -> None:
    """Raises WrongUse for edges of a column that is no feature."""
    unknown = [name for name in edges if name not in names]
    if unknown:
        raise UnknownName(f"edges= of {shown(unknown[0])}.", allowed=", ".join(names))


def _listed(name: str, kind: Category | Boolean) -> Listed:
    return Listed(name, kind.lower_code, kind.upper_code - kind.lower_code + 1)


def numeric_ends(name: str, kind: ColumnType) -> tuple[int, int]:
    """Returns the lowest and the highest code of a numeric feature: the ends of its clipping range,
    or else its declared bounds.
    """
    if not isinstance(kind, Integer | Real | Date):
        raise WrongUse(
            f"{name} is a {type(kind).__name__}, which no model reads.",
            allowed="Category, Boolean, Integer, Real, Date",
            remedy="Compute a number of it: EXTRACT(hour FROM t).",
        )
    clip = None if isinstance(kind, Date) else kind.clip
    lower, upper = kind.lower_code, kind.upper_code
    if isinstance(clip, tuple):
        lower, upper = clip
    if lower >= upper:
        raise WrongUse(f"{name} has one value.", remedy="Leave it out.")
    return lower, upper


def _code(kind: ColumnType, edge: float) -> int:
    """Returns the code of an edge."""
    if not isinstance(kind, Integer | Real):
        raise WrongUse("edges= of a date.", remedy="Use equal bins.")
    return round(edge / kind.step)
