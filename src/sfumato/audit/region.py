# SPDX-License-Identifier: Apache-2.0
"""Chooses sets of outputs that distinguish two inputs, for ``attack`` to test on other runs.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy" (CCS 2018),
section 4; using different runs for choice and test makes the test exact.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from sfumato.audit.float_bits import FEATURES
from sfumato.audit.outcome import Key, Raised, key_of

# A feature of outputs: its name, and the function that computes it; None if an output has none.
View: TypeAlias = tuple[str, Callable[[Any], Any]]

_ENTRIES = 8
_CUTS = 64
_HUGE = 1e300


@dataclass(frozen=True, slots=True)
class Within:
    """The set of outputs with a numeric feature of at least (``above``) or at most a cut.

    ``look`` computes the feature, ``view`` describes it.
    """

    view: str
    look: Callable[[Any], Any]
    cut: float
    above: bool

    def __contains__(self, output: object) -> bool:
        value = _plain(self.look(output))
        if value is None:
            return False
        if self.above:
            return bool(value >= self.cut)
        return bool(value <= self.cut)

    def __str__(self) -> str:
        sign = ">=" if self.above else "<="
        return f"{self.view} {sign} {self.cut:g}"


@dataclass(frozen=True, slots=True)
class Among:
    """The set of outputs whose feature is one of some values."""

    view: str
    look: Callable[[Any], Any]
    keys: frozenset[Key]

    def __contains__(self, output: object) -> bool:
        return key_of(self.look(output)) in self.keys

    def __str__(self) -> str:
        return f"{self.view} is one of {len(self.keys)} values"


Region: TypeAlias = Within | Among


def best_region(
    one: Sequence[Any], other: Sequence[Any], delta: float, evidence: float
) -> tuple[Region, int]:
    """Returns the set of outputs with the largest estimated ln((P - delta) / Q), and the number of
    candidates.

    ``evidence`` is ln(1 / false alarm rate) of the test that follows. Floats and heuristics
    suffice: the chosen set is tested on other runs.
    """
    best: Region = Among("the output", _itself, frozenset())
    best_promise = -math.inf
    considered = 0
    for view, look in VIEWS:
        seen = [look(output) for output in one]
        against = [look(output) for output in other]
        if look is not _itself and set(map(type, [*seen, *against])) == {type(None)}:
            continue
        for region, p, q in _regions(view, look, seen, against):
            considered += 1
            promise = _promise(p, q, delta, evidence / len(one))
            if promise > best_promise:
                best, best_promise = region, promise
    return best, considered


def _regions(
    view: str, look: Callable[[Any], Any], seen: Sequence[Any], against: Sequence[Any]
) -> Iterator[tuple[Region, float, float]]:
    """Yields candidate sets of one feature, with their shares in the two samples."""
    keys = Counter(map(key_of, seen))
    others = Counter(map(key_of, against))
    # if nearly every value occurs once, a list of values says nothing
    if len(keys) <= len(seen) // 4 + 2:
        yield from _likely(view, look, keys, others)
    one, other = _sorted_numbers(seen), _sorted_numbers(against)
    if not len(one) or not len(other):
        return
    levels = np.linspace(0, 1, _CUTS)
    cuts = np.quantile(np.concatenate([one, other]), levels, method="lower")
    for cut in np.unique(cuts).tolist():
        for above in (False, True):
            p = _count(one, cut, above=above) / len(seen)
            q = _count(other, cut, above=above) / len(against)
            yield Within(view, look, cut, above), p, q


def _sorted_numbers(values: Sequence[Any]) -> Any:
    """The finite numbers among the values, as a sorted array of floats."""
    numbers = [number for number in map(_plain, values) if number is not None]
    return np.sort(np.array(numbers, np.float64))


def _likely(
    view: str, look: Callable[[Any], Any], keys: Mapping[Key, int], others: Mapping[Key, int]
) -> Iterator[tuple[Region, float, float]]:
    """Yields sets of the first few values, ordered by how much likelier the first sample has them."""
    n, m = sum(keys.values()), sum(others.values())

    def ratio(key: Key) -> tuple[float, int]:
        return keys[key] / (others.get(key, 0) + 0.5), keys[key]

    ranked = sorted(keys, key=ratio, reverse=True)
    sizes = {math.ceil(step * len(ranked) / _CUTS) for step in range(1, _CUTS + 1)}
    hits = misses = 0
    for size, key in enumerate(ranked, 1):
        hits += keys[key]
        misses += others.get(key, 0)
        if size in sizes:
            yield Among(view, look, frozenset(ranked[:size])), hits / n, misses / m


def _count(ordered: Any, cut: float, *, above: bool) -> int:
    if above:
        return len(ordered) - int(np.searchsorted(ordered, cut, side="left"))
    return int(np.searchsorted(ordered, cut, side="right"))


def _promise(p: float, q: float, delta: float, rate: float) -> float:
    """Estimates the bound of ln((P - delta) / Q) from a test on as many runs (Bernstein)."""
    low = p - math.sqrt(2 * p * (1 - p) * rate) - rate / 3
    high = q + math.sqrt(2 * q * (1 - q) * rate) + rate
    excess = low - delta
    if excess > high:
        return math.log(excess / high)
    # no positive bound: rank by the difference, which gives a number from -2 to 0
    return p - q - 1


def _plain(value: Any) -> int | float | Fraction | None:
    """A finite number as a Python number; None for anything else."""
    number = value
    if isinstance(value, np.integer | np.floating):
        number = value.item()
    if isinstance(number, bool) or not isinstance(number, int | float | Fraction):
        return None
    # also false for NaN, and for an integer larger than any float
    if -_HUGE < number < _HUGE:
        return number
    return None


def _numbers(output: Any) -> list[Any]:
    """The numbers of a flat sequence or array; empty if it contains anything else."""
    entries = output
    if isinstance(output, np.ndarray):
        entries = output.ravel().tolist()
    if not isinstance(entries, list | tuple):
        return []
    numbers = list(map(_plain, entries))
    if None in numbers:
        return []
    return numbers


def _entry(index: int) -> Callable[[Any], Any]:
    def look(output: Any) -> Any:
        numbers = _numbers(output)
        if index >= len(numbers):
            return None
        return numbers[index]

    return look


def _sum(output: Any) -> Any:
    numbers = _numbers(output)
    if not numbers:
        return None
    return sum(numbers)


def _difference(output: Any) -> Any:
    numbers = _numbers(output)
    if len(numbers) < 2:
        return None
    return numbers[0] - numbers[1]


def _names(output: Any) -> Hashable:
    if not isinstance(output, Mapping):
        return None
    return tuple(map(key_of, output))


def _size(output: Any) -> Any:
    if not isinstance(output, Mapping | list | tuple | set | frozenset):
        return None
    return len(output)


def _error(output: Any) -> Any:
    if not isinstance(output, Raised):
        return None
    return output.kind


def _itself(output: Any) -> Any:
    return output


# The features that are examined; fixed before any run.
VIEWS: tuple[View, ...] = (
    ("the output", _itself),
    ("the sum", _sum),
    ("entry 0 - entry 1", _difference),
    ("the keys", _names),
    ("the size", _size),
    ("the type of error", _error),
    *((f"entry {index}", _entry(index)) for index in range(_ENTRIES)),
    *FEATURES,
)
