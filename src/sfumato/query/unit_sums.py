# SPDX-License-Identifier: Apache-2.0
"""The sum of clipped vectors, one for each unit, as a statistic. Proof: unit_sums.proof.md.

docs/tasks.md shows how a task of one's own releases it.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

import numpy as np

from sfumato.engines.base import UnitRows
from sfumato.errors import InvalidDeclaration
from sfumato.metadata.column import Text
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.clip import LONGEST, clipped
from sfumato.query.statistic import BoundedStatistic, Opened

# Sums of a unit's codes must stay below this, so that they fit 64 bits.
_MOST = 2**62
# Vectors that are cut to this length or a larger one are cut quickly.
_COARSE = 2**12


@dataclass(frozen=True, slots=True)
class UnitSums(BoundedStatistic[list[int]]):
    """The sum over units of a vector that is clipped to the length ``bound`` in ``norm``.

    The vector of a unit is the sum of the codes of its rows; a missing value counts as zero.
    Clipping scales a vector down, and rounds each entry towards zero.

    Guarantees:
        the sum moves by at most its proved distance

    Raises:
        InvalidDeclaration: the bound or the norm is invalid, or sums of codes may exceed 62 bits.
    """

    plan: BoundedRows
    bound: int
    norm: Norm

    def __post_init__(self) -> None:
        self.plan.rows.require_codes()
        if self.norm not in (Norm.L1, Norm.L2) or type(self.bound) is not int or self.bound < 1:
            raise InvalidDeclaration(
                f"Vectors clipped to {self.bound} in {self.norm.value}.",
                allowed="1 or more, in L1 or in L2",
            )
        if self._largest >= _MOST:
            raise InvalidDeclaration(
                f"Sums of {self.plan.most:,} codes up to {self._largest:,}.",
                allowed="sums below 2^62",
            )

    def distance(self, norm: Norm) -> Distance:
        """The bound for an added or removed unit; twice the bound for a replaced one."""
        units = 2 if self.plan.neighbours is Relation.REPLACE_ONE else 1
        moved = units * self.bound
        if self.norm is Norm.L2:
            moved = moved**2
        proved = Distance(self.norm, Fraction(moved), self.plan.neighbours)
        if norm is Norm.LINF and self.norm is Norm.L1:
            return replace(proved, norm=norm)
        if norm is not self.norm:
            raise InvalidDeclaration(
                f"Vectors clipped in {self.norm.value}, released in {norm.value}."
            )
        return proved

    def exact(self, opened: Opened) -> list[int]:
        """The exact sums, one for each value of the plan."""
        vectors = _vectors(opened.unit_rows(self.plan))
        # what that clip takes away from a length is far below the bound
        if self._largest * vectors.shape[1] < LONGEST and _COARSE <= self.bound < LONGEST:
            return _added(clipped(vectors, self.bound, self.norm))
        return _added(_clipped(vectors, self.bound, self.norm))

    @property
    def _largest(self) -> int:
        """The largest sum of a unit's codes in one place."""
        ends = [0]
        for value in self.plan.rows.values:
            assert not isinstance(value.type, Text), "refused"
            ends += [abs(value.type.lower_code), abs(value.type.upper_code)]
        return self.plan.most * max(ends)


def _vectors(rows: UnitRows) -> Integers:
    """The sum of each unit's codes; every unit has at least one row."""
    present = np.where(rows.codes == MISSING, 0, rows.codes)
    if not rows.units:
        return present
    sums: Integers = np.add.reduceat(present, rows.starts[:-1], axis=0)
    return sums


def _clipped(vectors: Integers, bound: int, norm: Norm) -> Integers:
    """Scales each vector down to the bound if it is longer; for entries that ``clip`` cannot take."""
    shorter = vectors.copy()
    # a vector within this box is within the bound in both norms
    small = bound // vectors.shape[1]
    for place in np.flatnonzero((np.abs(vectors) > small).any(axis=1)):
        shorter[place] = _shortened([int(each) for each in vectors[place]], bound, norm)
    return shorter


def _shortened(vector: list[int], bound: int, norm: Norm) -> list[int]:
    """One vector scaled down to the bound if it is longer, in exact integers."""
    amounts = [abs(entry) for entry in vector]
    if norm is Norm.L1:
        size = sum(amounts)
        if size <= bound:
            return vector
        shorter = [amount * bound // size for amount in amounts]
    else:
        size = sum(amount * amount for amount in amounts)
        if size <= bound * bound:
            return vector
        shorter = [isqrt(amount * amount * bound * bound // size) for amount in amounts]
    return [amount if entry > 0 else -amount for amount, entry in zip(shorter, vector, strict=True)]


def _added(vectors: Integers) -> list[int]:
    """The sum over units; the low 31 bits are added separately, so that no sum overflows."""
    high = (vectors >> 31).sum(axis=0)
    low = (vectors & (2**31 - 1)).sum(axis=0)
    return [(int(upper) << 31) + int(lower) for upper, lower in zip(high, low, strict=True)]
