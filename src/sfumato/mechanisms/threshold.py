# SPDX-License-Identifier: Apache-2.0
"""Which of the unknown keys can be shown: those with many units, by a noisy count of them.

Source: Korolova, Kenthapadi, Mishra, Ntoulas, "Releasing Search Queries and Clicks Privately"
(WWW 2009); Desfontaines, Voss, Gipson, Mandayam, "Differentially Private Partition Selection"
(PETS 2022). Proof: threshold.proof.md.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TypeAlias, TypeVar, cast

import numpy as np

from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, decimal_text, positive
from sfumato.exact.rounding import log_up
from sfumato.mechanisms.selection import count
from sfumato.noise import SYSTEM, DiscreteGaussian, DiscreteLaplace, Entropy, Noise
from sfumato.noise.law import Integers, open_unit
from sfumato.noise.search import smallest
from sfumato.noise.truncated import Truncated
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, Thresholded
from sfumato.privacy.unit import Relation

Key: TypeAlias = "int | str | bytes | tuple[Key, ...] | None"
K = TypeVar("K", bound=Key)

_ORDER = (int | np.integer, str, bytes, tuple)
# Noise is drawn for so many counts at once.
_AT_ONCE = 2**20
# The usual kinds of the parts of a key.
_PLAIN = frozenset({int, str, bytes, type(None)})


@dataclass(frozen=True, slots=True)
class ThresholdMechanism:
    """Shows the noisy number of units of each key where it is at least ``threshold``.

    The counts are of distinct units, each unit in at most ``keys`` keys and at most once in
    each (RULES 16): the caller bounds them so.

    Guarantees:
        a lone unit is shown with at most delta
        keys of neighbours are within epsilon and delta
        a key without units is never shown
        shown keys are in an order of their own
        a key is shown as often as stated

    Raises:
        InvalidNumber: a threshold or a number of keys that is not an integer >= 1.

    >>> mechanism = threshold_laplace(1, epsilon=1, delta="1e-6", relation=Relation.ADD_REMOVE)
    >>> mechanism.threshold
    15
    >>> shown = mechanism.release({"flu": 50_000, "a rare disease": 1})
    >>> list(shown), abs(shown["flu"] - 50_000) < 100
    (['flu'], True)
    """

    noise: Noise
    threshold: int
    keys: int

    def __post_init__(self) -> None:
        count("threshold", self.threshold)
        count("keys", self.keys)

    def event(self, distance: Distance) -> Thresholded:
        """What happens to counts that each move by at most one: ``distance`` is Linf of value 1."""
        if distance.norm is not Norm.LINF or distance.value != 1:
            raise InvalidDeclaration(
                f"Counts of units that move by {distance.value} in {distance.norm.value}.",
                allowed="by one a key: Distance(Norm.LINF, 1, relation)",
            )
        cells = _touched(self.keys, distance.relation)
        return Thresholded(AdditiveNoise(self.noise, distance, cells), self.threshold, self.keys)

    def release(self, counts: Mapping[K, int], entropy: Entropy = SYSTEM) -> dict[K, int]:
        """The shown keys with their noisy counts, sorted.

        A key with a count below 1 is one that is not there: no noise is drawn for it. So is a
        key that is not None, an integer, text, bytes or a tuple of these (up to 16 deep), on
        which alone an order is sure to be total: no key can make a release fail.

        Raises:
            InvalidDeclaration: counts that are not integers.
        """
        if not isinstance(counts, Mapping):
            raise InvalidDeclaration(
                f"Counts of type {type(counts).__name__}.", allowed="a mapping of keys to integers"
            )
        for kind in set(map(type, counts.values())):
            if issubclass(kind, bool | np.bool_) or not issubclass(kind, int | np.integer):
                raise InvalidDeclaration(f"A count of type {kind.__name__}.", allowed="an integer")
        placed = (
            counts
            if _are_plain(counts)
            else {key: units for key, units in counts.items() if _has_place(key)}
        )
        keys = [key for key, units in placed.items() if units >= 1]
        units = np.array([int(placed[key]) for key in keys], object)
        return self.release_many(units, lambda places: [keys[place] for place in places], entropy)

    def release_many(
        self,
        counts: Integers,
        keys_at: Callable[[Integers], Sequence[K]],
        entropy: Entropy = SYSTEM,
    ) -> dict[K, int]:
        """The same of many counts of different keys; ``keys_at`` tells the keys at the places that are shown.

        Those keys must have an order: None, integers, texts, bytes or tuples of these.

        Raises:
            InvalidDeclaration: counts that are not integers.
        """
        if counts.dtype.kind not in "iO":
            raise InvalidDeclaration(f"Counts of type {counts.dtype}.", allowed="integers")
        found: list[tuple[K, int]] = []
        for start in range(0, len(counts), _AT_ONCE):
            there = start + np.flatnonzero(counts[start : start + _AT_ONCE] >= 1)
            noisy = counts[there] + self.noise.sample(len(there), entropy)
            passed = noisy >= self.threshold
            found += zip(keys_at(there[passed]), noisy[passed].tolist(), strict=True)
        return dict(sorted(found, key=lambda each: _rank(each[0])))

    def shown(self, units: int) -> Bracket:
        """The probability that a key of so many units is shown."""
        return self.noise.above(self.threshold - units - 1) if units >= 1 else Bracket(0.0, 0.0)

    def smallest_shown(self, confidence: Number) -> int:
        """The fewest units with which a key is shown with at least this confidence."""
        wanted = open_unit("confidence", confidence)
        return smallest(
            lambda units: units >= 1 and self.shown(units).lower >= wanted, below=self.threshold
        )

    def error(self, confidence: Number) -> int:
        """h with P(|noise| <= h) >= confidence, over all keys, shown or not.

        Near the threshold the noise of what is SHOWN leans upwards.
        """
        return self.noise.half_width(confidence)


def threshold_laplace(
    keys: int, epsilon: Number, delta: Number, relation: Relation
) -> ThresholdMechanism:
    """Discrete Laplace noise of scale keys / epsilon (replace-one: 2 keys), and the smallest threshold for delta."""
    touched, cap = _touched(keys, relation), _delta(delta)
    noise = DiscreteLaplace(touched / positive("epsilon", epsilon))
    tail = touched / cap * (noise.scale + 1) / (2 * noise.scale + 1)
    return _calibrated(
        lambda threshold: ThresholdMechanism(noise, threshold, keys),
        noise,
        cap,
        relation,
        int(noise.scale * log_up(tail)),
    )


def threshold_gaussian(
    keys: int, rho: Number, delta: Number, relation: Relation
) -> ThresholdMechanism:
    """Discrete Gaussian noise of sigma^2 = keys / (2 rho) (replace-one: 2 keys), and the smallest threshold."""
    touched, cap = _touched(keys, relation), _delta(delta)
    noise = DiscreteGaussian(sigma_squared=touched / (2 * positive("rho", rho)))
    guess = math.isqrt(int(2 * noise.sigma_squared * log_up(touched / cap)))
    return _calibrated(
        lambda threshold: ThresholdMechanism(noise, threshold, keys), noise, cap, relation, guess
    )


def threshold_geometric(
    keys: int, epsilon: Number, delta: Number, relation: Relation
) -> ThresholdMechanism:
    """Discrete Laplace noise cut where the threshold stands: delta pays for the cut and the lone keys at once.

    With one key a unit no (epsilon, delta) selection shows any key more often, for the very
    delta that this spends (Desfontaines et al. 2022). From 2 threshold - 1 units on a key is always shown.

    >>> [make(1, "0.1", "1e-6", Relation.ADD_REMOVE).threshold for make in (threshold_laplace, threshold_geometric)]
    [133, 110]
    """
    touched, cap = _touched(keys, relation), _delta(delta)
    noise = DiscreteLaplace(touched / positive("epsilon", epsilon))
    return _calibrated(
        lambda threshold: ThresholdMechanism(
            Truncated(noise, 1 - threshold, threshold - 1), threshold, keys
        ),
        noise,
        cap,
        relation,
        int(noise.scale * log_up(touched / cap / (2 * noise.scale + 1))),
    )


def _delta(delta: Number) -> Fraction:
    return positive("delta", delta, at_most=Fraction(1, 2))


def _calibrated(
    build: Callable[[int], ThresholdMechanism],
    noise: DiscreteLaplace | DiscreteGaussian,
    cap: Fraction,
    relation: Relation,
    guess: int,
) -> ThresholdMechanism:
    """The mechanism of the smallest threshold whose event costs at most ``cap``; ``guess`` is of no effect on it."""
    one = Distance(Norm.LINF, Fraction(1), relation)

    def pays(threshold: int) -> bool:
        return threshold >= 1 and account(build(threshold).event(one)).delta <= cap

    far = 100 * (noise.half_width("0.999") + 2)
    if not pays(far):
        raise InvalidNumber(
            f"delta = {decimal_text(cap)} is below what this noise can be shown to keep.",
            allowed="a larger delta, or other noise",
        )
    return build(smallest(pays, below=min(max(guess, 1), far)))


def _touched(keys: int, relation: Relation) -> int:
    """The number of keys in which neighbours differ."""
    return count("keys", keys) * (1 if relation is Relation.ADD_REMOVE else 2)


def _rank(key: object) -> tuple[object, ...]:
    """Where a key stands: by kind, then by value; only equal keys have the same place."""
    for place, kind in enumerate(_ORDER):
        if isinstance(key, kind):
            return place, tuple(map(_rank, key)) if isinstance(key, tuple) else key
    return (len(_ORDER),)


def _are_plain(keys: Collection[object]) -> bool:
    """Whether all keys are tuples of the usual kinds, told at once."""
    if not set(map(type, keys)) <= {tuple}:
        return False
    return _PLAIN.issuperset(
        map(type, chain.from_iterable(cast(Collection[tuple[object, ...]], keys)))
    )


def _has_place(key: object, depth: int = 16) -> bool:
    """Whether ``_rank`` can tell where a key stands."""
    if isinstance(key, tuple):
        return depth > 0 and all(_has_place(part, depth - 1) for part in key)
    return key is None or isinstance(key, _ORDER)
