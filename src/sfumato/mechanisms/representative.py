# SPDX-License-Identifier: Apache-2.0
"""Private selection from a public list: the candidate nearest to the rows, or the most frequent.

Uses the exponential mechanism (McSherry and Talwar, FOCS 2007). Proof: representative.proof.md.
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
    """A mechanism that selects a candidate with a small total distance to the rows, by the
    exponential mechanism.

    ``far(c, row)`` is the distance of a row from candidate c, whose score is minus the sum of
    min(far(c, row), cap) over the rows. ``candidates`` and ``far`` must be public, not derived from
    the rows. A distance below 0 counts as 0; one above ``cap``, a value that is not an integer, and
    an exception count as ``cap``. Without rows all candidates are equally likely. If the selection
    is monotone, neighbours must differ by added rows only, never by replaced ones.

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
        """Returns the event of a release; neighbours differ in at most ``distance`` rows (L1)."""
        return _event(self.selection, self.cap, distance)

    def release(self, rows: Iterable[object], entropy: Entropy = SYSTEM) -> Candidate:
        """Returns the selected candidate."""
        present = list(rows)
        scores = [-self._total(candidate, present) for candidate in self.candidates]
        return self.candidates[self.selection.release(scores, entropy)]

    def error(self, confidence: Number) -> Fraction:
        """Returns a bound of the selected total distance less the smallest one, with this
        confidence.

        It holds for any rows.
        """
        return self.selection.error(confidence, len(self.candidates))

    def _total(self, candidate: Candidate, rows: Sequence[object]) -> int:
        """The sum of the capped distances of a candidate to all rows."""
        return sum(self._distance(candidate, row) for row in rows)

    def _distance(self, candidate: Candidate, row: object) -> int:
        """The distance of a candidate to a row, an integer from 0 to ``cap``."""
        try:
            distance: object = self.far(candidate, row)
        except Exception:
            # an exception would reveal the row, so it counts as the cap
            return self.cap
        if not isinstance(distance, int | np.integer):
            return self.cap
        return min(max(int(distance), 0), self.cap)


@dataclass(frozen=True, slots=True)
class Mode(Generic[Key]):
    """A mechanism that selects a frequent candidate, by the exponential mechanism on the number of
    rows that equal it.

    Rows that equal no candidate are ignored. If each unit has one row per candidate of its own,
    this is the candidate of most units. If the selection is monotone, neighbours must differ by
    added rows only, as in ``Representative``.

    Guarantees:
        a mode follows the exponential mechanism
        a row moves a frequency by at most one

    >>> from sfumato.privacy import Norm
    >>> mechanism = mode(Distance(Norm.L1, Fraction(1)), 1, ["tea", "coffee"])
    >>> mechanism.release(["tea"] * 200 + ["coffee"])
    'tea'
    """

    candidates: tuple[Key, ...]
    selection: SelectionMechanism

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", _listed(self.candidates))
        if len(_different(self.candidates)) != len(self.candidates):
            raise InvalidDeclaration("A candidate that is given twice.", allowed="each once")

    def event(self, distance: Distance) -> Selection:
        """Returns the event of a release; neighbours differ in at most ``distance`` rows (L1)."""
        return _event(self.selection, 1, distance)

    def release(self, rows: Iterable[Any], entropy: Entropy = SYSTEM) -> Key:
        """Returns the selected candidate."""
        counts = dict.fromkeys(self.candidates, 0)
        for row in rows:
            if _is_among(row, counts):
                counts[row] += 1
        chosen = self.selection.release(list(counts.values()), entropy)
        return self.candidates[chosen]

    def error(self, confidence: Number) -> Fraction:
        """Returns a bound of the largest frequency less the selected one, with this confidence.

        It holds for any rows.
        """
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
    """Returns an epsilon-DP mechanism that selects the candidate most similar to the rows.

    ``distance`` is in rows (L1); the other arguments are those of ``Representative``.

    Raises:
        InvalidNumber: epsilon is invalid.
        InvalidDeclaration: there are no candidates, the cap is below 1, or scores are declared
            monotone under replace-one.

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
    distance: Distance,
    epsilon: Number,
    candidates: Sequence[Key],
    *,
    monotone: bool = False,
) -> Mode[Key]:
    """Selection of the most frequent candidate, epsilon-DP; ``distance`` in rows (L1).

    Raises:
        InvalidNumber: epsilon is invalid.
        InvalidDeclaration: there are no candidates, one occurs twice, or scores are declared
            monotone under replace-one.

    >>> from sfumato.privacy import Norm
    >>> float(mode(Distance(Norm.L1, Fraction(1)), "0.5", "abc").error(0.95))
    14.7...
    """
    listed = _listed(candidates)
    selection = exponential(_moved(distance, 1), epsilon, monotone=monotone)
    made = Mode(listed, selection)
    made.event(distance)
    return made


def _event(selection: SelectionMechanism, reach: int, distance: Distance) -> Selection:
    if selection.monotone and distance.relation is not Relation.ADD_REMOVE:
        raise InvalidDeclaration(
            f"Monotone scores of {distance.relation.value} neighbours: "
            "a replaced row moves scores both ways.",
            allowed="monotone scores under add-remove",
        )
    return selection.event(_moved(distance, reach))


def _moved(distance: Distance, reach: int) -> Distance:
    """The sensitivity of a score (Linf), if one row changes it by at most ``reach``."""
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
    if type(cap) is not int or cap < 1:
        raise InvalidDeclaration(f"cap = {shown(cap)}.", allowed="an integer >= 1")
    return cap


def _is_among(row: object, candidates: Container[object]) -> bool:
    try:
        return row in candidates
    except TypeError:  # the row is not hashable; every candidate is
        return False
