# SPDX-License-Identifier: Apache-2.0
"""The sum of one clipped vector a unit, as a statistic of rows. Proof: unit_sums.proof.md."""

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
from sfumato.query.statistic import BoundedStatistic, Opened

# Sums of a unit's codes stay below this, in 64 bits.
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class UnitSums(BoundedStatistic[list[int]]):
    """Adds up the codes of each unit's rows, clips that vector to ``bound`` in ``norm``, and adds up the units.

    A missing value counts as zero. Clipping shortens a vector towards zero, entry by entry rounded down.

    Guarantees:
        the sum moves by at most its proved distance

    Raises:
        InvalidDeclaration: a bound or a norm that is none, or codes whose sums may leave 62 bits.
    """

    plan: BoundedRows
    bound: int
    norm: Norm

    def __post_init__(self) -> None:
        kinds = [each.type for each in self.plan.rows.values]
        largest = max(
            max(abs(each.lower_code), abs(each.upper_code))
            for each in kinds
            if not isinstance(each, Text)
        )
        if self.norm not in (Norm.L1, Norm.L2) or type(self.bound) is not int or self.bound < 1:
            raise InvalidDeclaration(
                f"Vectors clipped to {self.bound} in {self.norm.value}.",
                allowed="1 or more, in L1 or in L2",
            )
        if self.plan.most * largest >= _MOST:
            raise InvalidDeclaration(
                f"Sums of {self.plan.most:,} codes up to {largest:,}.", allowed="sums below 2^62"
            )

    def distance(self, norm: Norm) -> Distance:
        """The bound, of the unit that is added or removed, or of both that are replaced."""
        units = 2 if self.plan.neighbours is Relation.REPLACE_ONE else 1
        moved = units * self.bound
        proved = Distance(
            self.norm, Fraction(moved**2 if self.norm is Norm.L2 else moved), self.plan.neighbours
        )
        if norm is Norm.LINF and self.norm is Norm.L1:
            return replace(proved, norm=norm)
        if norm is not self.norm:
            raise InvalidDeclaration(
                f"Vectors clipped in {self.norm.value}, released in {norm.value}."
            )
        return proved

    def exact(self, opened: Opened) -> list[int]:
        """The integers, one for each value."""
        return _added(_clipped(_vectors(opened.unit_rows(self.plan)), self.bound, self.norm))


def _vectors(rows: UnitRows) -> Integers:
    """The sum of each unit's codes; a unit has at least one row."""
    present = np.where(rows.codes == MISSING, 0, rows.codes)
    if not rows.units:
        return present
    found: Integers = np.add.reduceat(present, rows.starts[:-1], axis=0)
    return found


def _clipped(vectors: Integers, bound: int, norm: Norm) -> Integers:
    """Each vector, shortened to the bound where it is longer."""
    kept = vectors.copy()
    # a vector within this box is within the bound, whatever the norm
    small = bound // vectors.shape[1]
    for place in np.flatnonzero((np.abs(vectors) > small).any(axis=1)):
        kept[place] = _shortened([int(each) for each in vectors[place]], bound, norm)
    return kept


def _shortened(vector: list[int], bound: int, norm: Norm) -> list[int]:
    size = sum(map(abs, vector)) if norm is Norm.L1 else sum(each * each for each in vector)
    if size <= (bound if norm is Norm.L1 else bound * bound):
        return vector
    if norm is Norm.L1:
        shorter = [abs(each) * bound // size for each in vector]
    else:
        shorter = [isqrt(each * each * bound * bound // size) for each in vector]
    return [amount if each > 0 else -amount for amount, each in zip(shorter, vector, strict=True)]


def _added(vectors: Integers) -> list[int]:
    """The sum over units, in two halves of 31 bits and more, so that none of them overflows."""
    high, low = vectors >> 31, vectors & (2**31 - 1)
    return [(int(a) << 31) + int(b) for a, b in zip(high.sum(axis=0), low.sum(axis=0), strict=True)]
