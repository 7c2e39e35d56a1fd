# SPDX-License-Identifier: Apache-2.0
"""Sets of outputs that distinguish two inputs, chosen on runs that are not used in the test.

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

# What is looked at of an output: its name in words, and the function. None: there is no such thing
# in this output.
View: TypeAlias = tuple[str, Callable[[Any], Any]]

_ENTRIES = 8
_CUTS = 64
_HUGE = 1e300


@dataclass(frozen=True, slots=True)
class Within:
    """Outputs whose number is at most (at least) a cut."""

    view: str
    look: Callable[[Any], Any]
    cut: float
    above: bool

    def __contains__(self, output: object) -> bool:
        value = _plain(self.look(output))
        return value is not None and bool(value >= self.cut if self.above else value <= self.cut)

    def __str__(self) -> str:
        return f"{self.view} {'>=' if self.above else '<='} {self.cut:g}"


@dataclass(frozen=True, slots=True)
class Among:
    """Outputs of which a feature is one of some values."""

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
    """The set with the largest estimated ln((P - delta) / Q), and how many sets were considered.

    ``evidence`` is ln(1 / false alarm) of the test that follows. Floats and heuristics suffice:
    whatever set is chosen is tested on other runs.
    """
    best: Region = Among("the output", _itself, frozenset())
    promised, considered = -math.inf, 0
    for view, look in VIEWS:
        seen, against = [look(output) for output in one], [look(output) for output in other]
        if look is not _itself and all(output is None for output in (*seen, *against)):
            continue
        for region, p, q in _regions(view, look, seen, against):
            considered += 1
            promise = _promise(p, q, delta, evidence / len(one))
            if promise > promised:
                best, promised = region, promise
    return best, considered


def _regions(
    view: str, look: Callable[[Any], Any], seen: Sequence[Any], against: Sequence[Any]
) -> Iterator[tuple[Region, float, float]]:
    """Candidate sets of one feature, with their shares of the two samples."""
    keys, others = Counter(map(key_of, seen)), Counter(map(key_of, against))
    # where nearly every value is its own, to list them tells nothing
    if len(keys) <= len(seen) // 4 + 2:
        yield from _likely(view, look, keys, others)
    plain = [[_plain(value) for value in values] for values in (seen, against)]
    numbers = [
        np.array([value for value in values if value is not None], np.float64) for values in plain
    ]
    if min(map(len, numbers)) == 0:
        return
    ordered = [np.sort(number) for number in numbers]
    for cut in np.unique(
        np.quantile(np.concatenate(ordered), np.linspace(0, 1, _CUTS), method="lower")
    ).tolist():
        for above in (False, True):
            counts = [_count(key, cut, above=above) for key in ordered]
            yield Within(view, look, cut, above), counts[0] / len(seen), counts[1] / len(against)


def _likely(
    view: str, look: Callable[[Any], Any], keys: Mapping[Key, int], others: Mapping[Key, int]
) -> Iterator[tuple[Region, float, float]]:
    """The values that are likelier in one sample, most telling first, cumulatively."""
    n, m = sum(keys.values()), sum(others.values())
    ranked = sorted(
        keys, key=lambda key: (keys[key] / (others.get(key, 0) + 0.5), keys[key]), reverse=True
    )
    p = q = 0
    steps = {math.ceil((step + 1) * len(ranked) / _CUTS) for step in range(_CUTS)}
    for count, key in enumerate(ranked, 1):
        p, q = p + keys[key], q + others.get(key, 0)
        if count in steps:
            yield Among(view, look, frozenset(ranked[:count])), p / n, q / m


def _count(ordered: Any, cut: float, *, above: bool) -> int:
    if above:
        return len(ordered) - int(np.searchsorted(ordered, cut, side="left"))
    return int(np.searchsorted(ordered, cut, side="right"))


def _promise(p: float, q: float, delta: float, rate: float) -> float:
    """An estimate of the bound of ln((P - delta) / Q) that a test on as many runs would give
    (Bernstein).
    """
    low = p - math.sqrt(2 * p * (1 - p) * rate) - rate / 3
    high = q + math.sqrt(2 * q * (1 - q) * rate) + rate
    # where nothing can be shown, the set of the largest difference: below 0, and above -2
    return math.log((low - delta) / high) if low - delta > high else p - q - 1


def _plain(value: Any) -> int | float | Fraction | None:
    """A finite number, as Python has it; None for all else."""
    number = value.item() if isinstance(value, np.integer | np.floating) else value
    if isinstance(number, bool) or not isinstance(number, int | float | Fraction):
        return None
    # NaN is not below anything either; an integer may be beyond all floats
    return number if -_HUGE < number < _HUGE else None


def _numbers(output: Any) -> list[Any]:
    """The numbers of a flat sequence or array; none where it holds anything else."""
    parts = output.ravel().tolist() if isinstance(output, np.ndarray) else output
    if not isinstance(parts, list | tuple):
        return []
    numbers = list(map(_plain, parts))
    return [] if None in numbers else numbers


def _entry(index: int) -> Callable[[Any], Any]:
    def look(output: Any) -> Any:
        numbers = _numbers(output)
        return numbers[index] if index < len(numbers) else None

    return look


def _difference(output: Any) -> Any:
    numbers = _numbers(output)
    return numbers[0] - numbers[1] if len(numbers) >= 2 else None


def _names(output: Any) -> Hashable:
    return tuple(map(key_of, output)) if isinstance(output, Mapping) else None


def _size(output: Any) -> Any:
    return len(output) if isinstance(output, Mapping | list | tuple | set | frozenset) else None


def _itself(output: Any) -> Any:
    return output


# fixed before any run
VIEWS: tuple[View, ...] = (
    ("the output", _itself),
    ("the sum", lambda output: sum(numbers) if (numbers := _numbers(output)) else None),
    ("entry 0 - entry 1", _difference),
    ("the keys", _names),
    ("the size", _size),
    ("the type of error", lambda output: output.kind if isinstance(output, Raised) else None),
    *((f"entry {index}", _entry(index)) for index in range(_ENTRIES)),
    *FEATURES,
)
