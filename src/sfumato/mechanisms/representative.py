# SPDX-License-Identifier: Apache-2.0
"""One of a public list of candidates: the most representative of the rows, or the most frequent.

By the exponential mechanism (McSherry and Talwar, FOCS 2007). Proof: representative.proof.md.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number
from sfumato.mechanisms.rows import rows_apart
from sfumato.mechanisms.selection import SelectionMechanism, exponential
from sfumato.noise import SYSTEM, Entropy
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Selection
from sfumato.privacy.unit import Relation

Candidate = TypeVar("Candidate")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Representative(Generic[Candidate]):
    """A candidate c selected by its score: minus the sum over the rows of min(far(c, row), cap).

    ``candidates`` and ``far`` are public: not made from the rows. ``far`` answers for every row;
    less than 0 counts as 0, more than ``cap`` or no integer as ``cap``. Without rows every
    candidate is equally likely. Where the selection is declared monotone, neighbours only have
    more rows, or only fewer, never one row for another.

    Guarantees:
        a representative follows the exponential mechanism
        a row moves a summed distance by at most the cap
        monotone scores move together

    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> mechanism = representative(row, 1, ["ab", "xyz"], lambda c, r: len(set(c) ^ set(r)), cap=4)
    >>> mechanism.release(["abc"] * 100)
    'ab'
    """

    candidates: tuple[Candidate, ...]
    far: Callable[[Candidate, Any], int]
    cap: int
    selection: SelectionMechanism

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", _listed(self.candidates))
        _capped(self.cap)

    def event(self, distance: Distance) -> Selection:
        """What happens to rows of which neighbours differ in at most ``distance`` (L1)."""
        return _event(self.selection, self.cap, distance)

    def release(self, rows: Iterable[object], entropy: Entropy = SYSTEM) -> Candidate:
        """The selected candidate."""
        present = list(rows)
        scores = [-sum(self._distance(each, row) for row in present) for each in self.candidates]
        return self.candidates[self.selection.release(scores, entropy)]

    def error(self, confidence: Number) -> Fraction:
        """By how much the selected one's summed distance may exceed the least, with this confidence, for any rows."""
        return self.selection.error(confidence, len(self.candidates))

    def _distance(self, candidate: Candidate, row: object) -> int:
        try:
            found = self.far(candidate, row)
        except Exception:
            # an error would tell of the row; like any answer that is no integer, it counts as the cap
            return self.cap
        return (
            min(max(int(found), 0), self.cap) if isinstance(found, int | np.integer) else self.cap
        )


@dataclass(frozen=True, slots=True)
class Mode(Generic[Key]):
    """A candidate selected by its score: the number of rows equal to it.

    Rows that are no candidate count for none. Where each unit gives one row for each of its
    candidates, it is the candidate of most units. Monotone as for ``Representative``.

    Guarantees:
        a mode follows the exponential mechanism
        a row moves a frequency by at most one

    >>> from sfumato.privacy import Norm
    >>> mode(Distance(Norm.L1, Fraction(1)), 1, ["tea", "coffee"]).release(["tea"] * 200 + ["coffee"])
    'tea'
    """

    candidates: tuple[Key, ...]
    selection: SelectionMechanism

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", _listed(self.candidates))
        if len(_different(self.candidates)) != len(self.candidates):
            raise InvalidDeclaration("A candidate that is given twice.", allowed="each once")

    def event(self, distance: Distance) -> Selection:
        """What happens to rows of which neighbours differ in at most ``distance`` (L1)."""
        return _event(self.selection, 1, distance)

    def release(self, rows: Iterable[Any], entropy: Entropy = SYSTEM) -> Key:
        """The selected candidate."""
        counts = dict.fromkeys(self.candidates, 0)
        for row in rows:
            if _is_among(row, counts):
                counts[row] += 1
        return self.candidates[self.selection.release(list(counts.values()), entropy)]

    def error(self, confidence: Number) -> Fraction:
        """By how many rows the selected one may fall short of the most frequent, with this confidence, for any rows."""
        return self.selection.error(confidence, len(self.candidates))


def representative(
    distance: Distance,
    epsilon: Number,
    candidates: Sequence[Candidate],
    far: Callable[[Candidate, Any], int],
    *,
    cap: int,
    monotone: bool = False,
) -> Representative[Candidate]:
    """The most representative of public candidates, epsilon-DP; ``distance`` in rows (L1).

    Raises:
        InvalidNumber: no epsilon.
        InvalidDeclaration: no candidates, a cap below 1, monotone scores under replace-one.

    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> mechanism = representative(row, 1, range(5), lambda c, r: abs(c - r), cap=4, monotone=True)
    >>> mechanism.selection.rate
    Fraction(1, 4)
    """
    selection = exponential(_moved(distance, _capped(cap)), epsilon, monotone=monotone)
    made = Representative(_listed(candidates), far, cap, selection)
    made.event(distance)
    return made


def mode(
    distance: Distance, epsilon: Number, candidates: Sequence[Key], *, monotone: bool = False
) -> Mode[Key]:
    """The most frequent of public candidates, epsilon-DP; ``distance`` in rows (L1).

    Raises:
        InvalidNumber: no epsilon.
        InvalidDeclaration: no candidates, one given twice, monotone scores under replace-one.

    >>> from sfumato.privacy import Norm
    >>> float(mode(Distance(Norm.L1, Fraction(1)), "0.5", "abc").error(0.95))
    14.7...
    """
    made = Mode(_listed(candidates), exponential(_moved(distance, 1), epsilon, monotone=monotone))
    made.event(distance)
    return made


def _event(selection: SelectionMechanism, reach: int, distance: Distance) -> Selection:
    if selection.monotone and distance.relation is not Relation.ADD_REMOVE:
        raise InvalidDeclaration(
            f"Monotone scores of {distance.relation.value} neighbours: a replaced row moves scores both ways.",
            allowed="monotone scores under add-remove",
        )
    return selection.event(_moved(distance, reach))


def _moved(distance: Distance, reach: int) -> Distance:
    """How far a score moves between neighbours, if a row moves it by ``reach``."""
    return Distance(Norm.LINF, rows_apart(distance) * reach, distance.relation)


def _listed(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    listed = tuple(candidates)
    if not listed:
        raise InvalidDeclaration("No candidates.", allowed="a public list of one or more")
    return listed


def _different(candidates: Sequence[Hashable]) -> set[Hashable]:
    try:
        return set(candidates)
    except TypeError:
        raise InvalidDeclaration(
            "A candidate that cannot be a dictionary key.",
            allowed="strings, numbers, tuples",
            remedy="Write a list as a tuple.",
        ) from None


def _capped(cap: int) -> int:
    if isinstance(cap, bool) or not isinstance(cap, int) or cap < 1:
        raise InvalidDeclaration(f"cap = {shown(cap)}.", allowed="an integer >= 1")
    return cap


def _is_among(row: object, candidates: Container[object]) -> bool:
    try:
        return row in candidates
    except TypeError:  # a row without a hash; each candidate has one
        return False
