# SPDX-License-Identifier: Apache-2.0
"""Pairs of inputs at the full allowed distance: those with the largest privacy loss.

``verify`` compares them by default. They include the worst cases that the proof notes of
``accounting`` and ``mechanisms`` name, small enough to be explored. Proof: neighbours.proof.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.ladder import LadderMechanism
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

# A candidate this far behind, times 1 / rate, has e^-10 of the weight of the best.
_BEHIND = 10
_CELLS = 2
# Answers of a long stream below and above the threshold: at most 2^9 sequences of verdicts.
_BELOW, _MOST_ABOVE = 6, 3


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two neighbouring inputs of a mechanism: they may differ by one unit.

    >>> print(Neighbours((0,), (1,)))
    (0,) | (1,)
    """

    one: Any
    other: Any

    def __str__(self) -> str:
        return f"{self.one} | {self.other}"


def worst_neighbours(mechanism: Any, event: Event, distance: Distance) -> tuple[Neighbours, ...]:
    """Returns the pairs of inputs at the claimed ``distance`` on which a mechanism's privacy is
    tested: the worst ones known for its type.

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
    pairs = [Neighbours(one, other) for one, other in family(mechanism, distance)]
    return tuple(dict.fromkeys(pairs))


def _shifts(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Pairs that differ by a shift of one integer, or by a change shared by two cells.

    Slightly smaller shifts are included, since a discrete curve has jumps.
    """
    largest_shift = _whole(distance)
    declared = getattr(mechanism, "cells", None)
    sizes = (declared,) if declared else (1, _CELLS)
    for cells in sizes:
        zero = (0,) * cells
        steps = _steps(largest_shift) if cells == 1 else [largest_shift]
        for step in steps:
            yield zero, (step, *zero[1:])
        if cells > 1 and largest_shift:
            for shift in _shared(distance, cells):
                yield zero, shift


def _steps(largest_shift: int) -> list[int]:
    """The shifts of one integer to try: the largest, those smaller by 1 and 2, and 1."""
    if not largest_shift:
        return [0]
    return sorted({1, max(largest_shift - 2, 1), max(largest_shift - 1, 1), largest_shift})


def _whole(distance: Distance) -> int:
    """The largest change of one integer."""
    if distance.norm is Norm.L2:
        return math.isqrt(int(distance.value))
    return int(distance.value)


def _shared(distance: Distance, cells: int) -> Iterator[tuple[int, ...]]:
    """A change of every cell, and of two cells in opposite directions."""
    if distance.norm is Norm.LINF:
        all_cells = half = int(distance.value)
    else:
        all_cells = int(distance.value / cells)
        half = int(distance.value / 2)
    if distance.norm is Norm.L2:
        all_cells, half = math.isqrt(all_cells), math.isqrt(half)
    if all_cells:
        yield (all_cells,) * cells
    if half:
        yield (half, -half, *(0,) * (cells - 2))


def _keys(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Pairs in which one unit adds keys, for a threshold.

    All keys are new; or all are shared with other units, one below the threshold; or half of them.
    With replacement, the other unit does the same with keys of other names.
    """
    keys = mechanism.keys
    replaced = distance.relation is Relation.REPLACE_ONE
    for lone in sorted({keys, 0, keys // 2}):
        units = [0] * lone + [mechanism.threshold - 1] * (keys - lone)
        mine = {f"a{index}": count for index, count in enumerate(units)}
        theirs: dict[str, int] = {}
        if replaced:
            theirs = {f"b{index}": count for index, count in enumerate(units)}
        yield _present({**_one_more(mine), **theirs}), _present({**mine, **_one_more(theirs)})


def _present(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """The keys with at least one unit, and their numbers of units."""
    return tuple((key, units) for key, units in counts.items() if units)


def _one_more(counts: dict[str, int]) -> dict[str, int]:
    """The counts after one more unit with all these keys."""
    return {key: units + 1 for key, units in counts.items()}


def _scores(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Pairs of scores in which the first candidate is level with two others or with one.

    For a weighted selection, which has a formula, it is also far ahead and far behind.
    """
    if isinstance(mechanism, LadderMechanism):
        yield from _ladders(int(distance.value))
        return
    step = int(distance.value)
    starts: list[tuple[int, ...]] = [(0, 0, 0), (0, 0)]
    rate = getattr(mechanism, "rate", None)
    if rate:
        lead = math.ceil(_BEHIND / rate)
        starts += [(lead, 0, 0), (-lead, 0, 0)]
    for scores in starts:
        yield from _moved(scores, step, monotone=mechanism.monotone)


def _ladders(steps: int) -> Iterator[tuple[Any, Any]]:
    """Pairs of an exact integer and a width, of which no rung moves by more than ``steps``.

    In one step the width moves by at most one and the integer by at most the lesser width.
    """
    for width in (0, 2):
        rise = sum(width + step for step in range(steps))
        yield (0, width), (rise, width + steps)
        yield (0, width), (steps * width, width)
        yield (0, width), (0, width + steps)


def _moved(scores: tuple[int, ...], step: int, *, monotone: bool) -> Iterator[tuple[Any, Any]]:
    """Pairs in which one score falls and the others rise, or the reverse.

    If ``monotone``, only one side moves.
    """
    first, *rest = scores
    fall = 0 if monotone else step
    fallen = [score - fall for score in rest]
    risen = [score + step for score in rest]
    yield scores, (first - fall, *risen)
    yield scores, (first + step, *fallen)


def _streams(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Pairs of answers for a sparse vector: below the threshold and rising, above it and falling.

    There is one answer of each kind, so that the code is run; and many of the first kind, so that
    only the noise of the threshold can compensate.
    """
    near = math.ceil(mechanism.query_noise.scale)
    above = min(mechanism.positives, _MOST_ABOVE)
    rise = int(distance.value)
    fall = 0 if mechanism.monotone else rise
    for far, many_first, many_last in ((0, 1, 1), (2 * near, 1, 1), (near, _BELOW, above)):
        first, last = mechanism.threshold + far, mechanism.threshold - far
        one = (first,) * many_first + (last,) * many_last
        other = (first + rise,) * many_first + (last - fall,) * many_last
        yield one, other


def _truths(mechanism: Any, distance: Distance) -> Iterator[tuple[Any, Any]]:
    """Pairs of true values for randomised response: by symmetry only the first two values."""
    if distance != Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE):
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
