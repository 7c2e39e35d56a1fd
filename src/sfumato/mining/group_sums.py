# SPDX-License-Identifier: Apache-2.0
"""Sums of arrays by group, of which a unit adds one short vector. Proof: group_sums.proof.md."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.metadata.column import Array, Text
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.clip import LONGEST, clipped
from sfumato.query.statistic import BoundedStatistic, Opened, RowTokens, UnitRows

# The most numbers that are added up at once.
_CELLS = 1 << 21


@dataclass(frozen=True, slots=True)
class GroupSums(BoundedStatistic[Integers]):
    """The statistic of sums of array-valued rows by group, where the vector that one unit adds to
    all groups together is clipped to ``bound`` in L2.

    A row adds, to each of its groups, the codes of its array times ``scale`` less ``origin``, and
    after them ``weight``. It has one group if ``by`` is a value with codes, the missing one being
    the last; if that is a text, one for each different token of ``only``; without ``by``, there is
    one group. A row without an array adds nothing.

    Guarantees:
        sums of groups move by at most their proved distance

    Raises:
        InvalidDeclaration: no array, a group twice, or vectors of a unit beyond 2^31.
    """

    plan: BoundedRows
    picture: int
    by: int | None
    only: tuple[str, ...]
    scale: int
    origin: tuple[int, ...]
    weight: int
    bound: int

    def __post_init__(self) -> None:
        kinds = [value.type for value in self.plan.rows.values]
        kind = kinds[self.picture]
        is_text = self.by is not None and isinstance(kinds[self.by], Text)
        if not isinstance(kind, Array) or len(self.origin) != kind.length:
            raise InvalidDeclaration("Means of what is no array, or of another length.")
        if is_text != bool(self.only) or len(set(self.only)) != len(self.only):
            raise InvalidDeclaration("Groups by a text.", allowed="tokens that differ")
        if self.by is not None and isinstance(kinds[self.by], Array):
            raise InvalidDeclaration("Groups by an array.")
        if min(self.scale, self.weight, self.bound) < 1:
            raise InvalidDeclaration("A scale, weight or bound below 1.")
        ends = [kind.lower_code * self.scale, kind.upper_code * self.scale]
        farthest = max(abs(end - start) for end in ends for start in self.origin)
        row = max(len(self.only), 1) * (kind.length * farthest**2 + self.weight**2)
        if self.plan.most**2 * row >= LONGEST**2 or self.bound >= LONGEST:
            raise InvalidDeclaration("Vectors of a unit beyond 2^31.", allowed="a smaller scale")

    @property
    def groups(self) -> int:
        """The number of groups."""
        if self.by is None:
            return 1
        kind = self.plan.rows.values[self.by].type
        return len(self.only) if isinstance(kind, Text | Array) else kind.size + 1

    @property
    def width(self) -> int:
        """The number of integers of one group: the elements of the array, and the weight."""
        return len(self.origin) + 1

    def distance(self, norm: Norm) -> Distance:
        """Returns the squared L2 sensitivity: ``bound`` squared, or four times that if a unit is
        replaced.
        """
        if norm is not Norm.L2:
            raise InvalidDeclaration(f"Sums by group in {norm.value}.", allowed="L2")
        times = 4 if self.plan.neighbours is Relation.REPLACE_ONE else 1
        return Distance(norm, Fraction(times * self.bound**2), self.plan.neighbours)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact sums, group by group."""
        rows = opened.unit_rows(self.plan)
        total = np.zeros((self.groups, self.width), np.int64)
        for first, last in self._parts(rows):
            row, group = self._members(rows, int(rows.starts[first]), int(rows.starts[last]))
            unit = np.repeat(np.arange(last - first), np.diff(rows.starts[first : last + 1]))
            member = unit[row] * self.groups + group
            order = np.argsort(member, kind="stable")
            members, starts = np.unique(member[order], return_index=True)
            if not len(members):
                continue
            vectors = self._vectors(rows, int(rows.starts[first]) + row[order])
            if len(members) < len(vectors):
                vectors = np.add.reduceat(vectors, starts, axis=0)
            vectors = clipped(vectors, self.bound, Norm.L2, members // self.groups)
            for place in np.unique(members % self.groups):
                total[place] += vectors[members % self.groups == place].sum(axis=0)
            rows.free_pages()
        return total.reshape(-1)

    def _parts(self, rows: UnitRows) -> Iterator[tuple[int, int]]:
        """Yields the ends of ranges of units that are added up at once."""
        step = max(_CELLS // (self.width * max(len(self.only), 1)), 1)
        wanted = np.arange(0, rows.starts[-1], step)
        ends = np.unique(np.append(np.searchsorted(rows.starts, wanted), rows.units))
        yield from zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)

    def _members(self, rows: UnitRows, begin: int, end: int) -> tuple[Integers, Integers]:
        """Returns the pairs of a row, counted from ``begin``, and a group; each pair once."""
        start = self.plan.rows.starts[self.picture]
        present = (rows.codes[begin:end, start : start + len(self.origin)] != MISSING).all(axis=1)
        row, group = np.arange(end - begin), np.zeros(end - begin, np.int64)
        if self.by is not None and self.only:
            row, group = self._of_tokens(rows.tokens[self.by], begin, end)
        elif self.by is not None:
            kind = self.plan.rows.values[self.by].type
            assert not isinstance(kind, Text | Array), "refused"
            codes = rows.codes[begin:end, self.plan.rows.starts[self.by]].astype(np.int64)
            group = np.where(codes == MISSING, kind.size, codes - kind.lower_code)
        return row[present[row]], group[present[row]]

    def _of_tokens(self, tokens: RowTokens, begin: int, end: int) -> tuple[Integers, Integers]:
        """Returns the pairs of a row and the place in ``only`` of one of its tokens."""
        place_of = np.full(len(tokens.strings), -1)
        for place, token in enumerate(self.only):
            # strings are sorted
            number = bisect_left(tokens.strings, token)
            if number < len(tokens.strings) and tokens.strings[number] == token:
                place_of[number] = place
        starts = tokens.starts[begin : end + 1]
        row = np.repeat(np.arange(end - begin), np.diff(starts))
        places = place_of[tokens.numbers[starts[0] : starts[-1]]]
        pairs = np.unique((row * len(self.only) + places)[places >= 0])
        return pairs // len(self.only), pairs % len(self.only)

    def _vectors(self, rows: UnitRows, chosen: Integers) -> Integers:
        """Returns what some rows add to a group."""
        start = self.plan.rows.starts[self.picture]
        codes = rows.codes[chosen, start : start + len(self.origin)].astype(np.int64)
        vectors = np.full((len(chosen), self.width), self.weight)
        vectors[:, :-1] = codes * self.scale - np.array(self.origin, np.int64)
        return vectors
