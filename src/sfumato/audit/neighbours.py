# SPDX-License-Identifier: Apache-2.0
"""Pairs of inputs at the full allowed distance: the pairs with the largest loss.

They include the worst cases named by the proof notes of ``accounting`` and ``mechanisms``, small
enough to be explored. Proof: neighbours.proof.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InvalidDeclaration
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    Event,
    NoisyMax,
    RandomizedResponse,
    Selection,
    SparseVector,
    Thresholded,
)
from sfumato.privacy.unit import Relation

# e^-10 is left of a candidate so far behind
_BEHIND = 10
_CELLS = 2
# 2^9 sequences of verdicts at most
_BELOW, _MOST_ABOVE = 6, 3


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two inputs of a mechanism that may differ in one unit."""

    one: Any
    other: Any

    def __str__(self) -> str:
        return f"{self.one} | {self.other}"


def worst_neighbours(mechanism: Any, event: Event, distance: Distance) -> tuple[Neighbours, ...]:
    """The pairs to compare for a claimed distance.

    Guarantees:
        neighbours are no further apart than the distance

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms import laplace
    >>> distance = Distance(Norm.L1, Fraction(1))
    >>> mechanism = laplace(distance, epsilon=1)
    >>> [str(pair) for pair in worst_neighbours(mechanism, mechanism.event(distance), distance)]
    ['(0,) | (1,)', '(0, 0) | (1, 0)']
    """
    family = _FAMILIES.get(type(event))
    if family is None:
        raise InvalidDeclaration(
            f"No worst neighbours are known for {type(event).__name__}.",
            allowed=", ".join(kind.__name__ for kind in _FAMILIES),
            remedy="Name them: verify(..., neighbours=[(one, other)]).",
        )
    return tuple(
        dict.fromkeys(Neighbours(one, other) for one, other in family(mechanism, distance))
    )


def _shifts(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Shifts along one axis (also slightly smaller ones, since a discrete curve jumps), and shared
    by two cells.
    """
    whole = _whole(distance)
    declared = getattr(mechanism, "cells", None)
    for cells in (declared,) if declared else (1, _CELLS):
        zero = (0,) * cells
        for step in sorted(
            {whole, *(max(whole - less, 1) for less in (1, 2)), 1} if whole else {0}
        ):
            if cells == 1 or step == whole:
                yield zero, (step, *zero[1:])
        if cells > 1 and whole:
            for shift in _shared(distance, cells):
                yield zero, shift


def _whole(distance: Distance) -> int:
    """The largest change of one integer."""
    return math.isqrt(int(distance.value)) if distance.norm is Norm.L2 else int(distance.value)


def _shared(distance: Distance, cells: int) -> Iterator[tuple[int, ...]]:
    """A change of every cell, and of two cells in opposite directions."""
    if distance.norm is Norm.LINF:
        all_cells, half = int(distance.value), int(distance.value)
    elif distance.norm is Norm.L1:
        all_cells, half = int(distance.value / cells), int(distance.value / 2)
    else:
        all_cells, half = (
            math.isqrt(int(distance.value / cells)),
            math.isqrt(int(distance.value / 2)),
        )
    if all_cells:
        yield (all_cells,) * cells
    if half:
        yield (half, -half, *(0,) * (cells - 2))


def _keys(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """All keys of a unit its own; all shared, at the threshold; half and half."""
    keys, level = mechanism.keys, mechanism.threshold
    replaced = distance.relation is Relation.REPLACE_ONE
    for lone in sorted({keys, 0, keys // 2}):
        mine = {f"a{i}": 0 if i < lone else level - 1 for i in range(keys)}
        theirs = {f"b{i}": 0 if i < lone else level - 1 for i in range(keys)} if replaced else {}
        yield _there({**_more(mine), **theirs}), _there({**mine, **_more(theirs)})


def _there(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """The keys that are present, with their number of units."""
    return tuple((key, units) for key, units in counts.items() if units)


def _more(counts: dict[str, int]) -> dict[str, int]:
    return {key: units + 1 for key, units in counts.items()}


def _scores(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """The first candidate against the others: level with two and with one; if that is cheap, ahead
    and behind too.
    """
    step, rate = int(distance.value), getattr(mechanism, "rate", None)
    far = (math.ceil(_BEHIND / rate), -math.ceil(_BEHIND / rate)) if rate else ()
    for scores in ((0, 0, 0), (0, 0), *((lead, 0, 0) for lead in far)):
        yield from _moved(scores, step, monotone=mechanism.monotone)


def _moved(scores: tuple[int, ...], step: int, *, monotone: bool) -> Iterator[tuple[Any, Any]]:
    """One score falls and the others rise, or the reverse; monotone: only one side moves."""
    first, *rest = scores
    low, high = (0, step) if monotone else (-step, step)
    yield scores, (first + low, *(score + high for score in rest))
    yield scores, (first + high, *(score + low for score in rest))


def _streams(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Answers below the threshold that move up, then answers above it that move down or stay.

    One of each, whose code is run; and so many of the first that only the threshold can compensate.
    """
    level, step = mechanism.threshold, int(distance.value)
    above, near = min(mechanism.positives, _MOST_ABOVE), math.ceil(mechanism.query_noise.scale)
    for far, below, last in ((0, 1, 1), (2 * near, 1, 1), (near, _BELOW, above)):
        first, second = (level + far,) * below, (level - far,) * last
        moved = second if mechanism.monotone else tuple(answer - step for answer in second)
        yield (*first, *second), (*(answer + step for answer in first), *moved)


def _truths(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Any value against any other: by symmetry the first two."""
    if (
        distance.norm is not Norm.L1
        or distance.value != 2
        or distance.relation is not Relation.REPLACE_ONE
    ):
        raise InvalidDeclaration(
            "More than one report differs.",
            allowed="one replaced row: Distance(Norm.L1, 2, Relation.REPLACE_ONE)",
        )
    yield 0, 1


_FAMILIES: dict[type, Callable[[Any, Distance], Iterator[tuple[Any, Any]]]] = {
    AdditiveNoise: _shifts,
    Thresholded: _keys,
    Selection: _scores,
    NoisyMax: _scores,
    SparseVector: _streams,
    RandomizedResponse: _truths,
}
