# SPDX-License-Identifier: Apache-2.0
"""Private partition selection: releases the undeclared keys whose noisy count of units is large.

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
# The number of counts for which noise is drawn in one batch.
_AT_ONCE = 2**20
# Types of the parts of a key for which one check of all types is enough.
_PLAIN = frozenset({int, str, bytes, type(None)})


@dataclass(frozen=True, slots=True)
class ThresholdMechanism:
    """The mechanism of private key (partition) selection: releases each key whose noisy number of
    units is at least ``threshold``, with this number.

    The caller must count distinct units, with each unit in at most ``keys`` keys and at most once
    in each (RULES 16).

    Guarantees:
        a lone unit is shown with at most delta
        keys of neighbours are within epsilon and delta
        a key without units is never shown
        shown keys are in an order of their own
        a key is shown as often as stated

    Raises:
        InvalidNumber: the threshold or the number of keys is not an integer >= 1.

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
        """Returns the event of a release; ``distance`` must be 1 in Linf, the change of each count."""
        if distance.norm is not Norm.LINF or distance.value != 1:
            raise InvalidDeclaration(
                f"Counts of units that move by {distance.value} in {distance.norm.value}.",
                allowed="by one a key: Distance(Norm.LINF, 1, relation)",
            )
        cells = _touched(self.keys, distance.relation)
        return Thresholded(AdditiveNoise(self.noise, distance, cells), self.threshold, self.keys)

    def release(self, counts: Mapping[K, int], entropy: Entropy = SYSTEM) -> dict[K, int]:
        """Returns the released keys with their noisy counts, sorted by key.

        Keys with a count below 1 are ignored, and no noise is drawn for them. So are keys that are
        not None, an integer, a string, bytes or a tuple of these (up to 16 deep): only for these a
        total order is certain. So no key can make a release fail.

        Raises:
            InvalidDeclaration: a count is not an integer.
        """
        if not isinstance(counts, Mapping):
            raise InvalidDeclaration(
                f"Counts of type {type(counts).__name__}.", allowed="a mapping of keys to integers"
            )
        for kind in set(map(type, counts.values())):
            if issubclass(kind, bool | np.bool_) or not issubclass(kind, int | np.integer):
                raise InvalidDeclaration(f"A count of type {kind.__name__}.", allowed="an integer")
        ordered = counts
        if not _are_plain(counts):
            ordered = {key: units for key, units in counts.items() if _has_place(key)}
        keys = [key for key, units in ordered.items() if units >= 1]
        units = np.array([int(ordered[key]) for key in keys], object)
        return self.release_many(units, lambda places: [keys[place] for place in places], entropy)

    def release_many(
        self,
        counts: Integers,
        keys_at: Callable[[Integers], Sequence[K]],
        entropy: Entropy = SYSTEM,
    ) -> dict[K, int]:
        """Returns the noisy counts of the released keys, for an array of exact counts, as
        ``release`` does.

        ``keys_at`` returns the keys at some indices of the array; it is called for released keys
        only. Keys must be different, and None, integers, strings, bytes or tuples of these.

        Raises:
            InvalidDeclaration: a count is not an integer.
        """
        if counts.dtype.kind not in "iO":
            raise InvalidDeclaration(f"Counts of type {counts.dtype}.", allowed="integers")
        released: list[tuple[K, int]] = []
        for start in range(0, len(counts), _AT_ONCE):
            there = start + np.flatnonzero(counts[start : start + _AT_ONCE] >= 1)
            noisy = counts[there] + self.noise.sample(len(there), entropy)
            passed = noisy >= self.threshold
            released += zip(keys_at(there[passed]), noisy[passed].tolist(), strict=True)
        return dict(sorted(released, key=lambda item: _rank(item[0])))

    def shown(self, units: int) -> Bracket:
        """Returns bounds of the probability that a key with this number of units is released."""
        if units < 1:
            return Bracket(0.0, 0.0)
        return self.noise.above(self.threshold - units - 1)

    def smallest_shown(self, confidence: Number) -> int:
        """Returns the smallest number of units with which a key is released with this confidence."""
        wanted = open_unit("confidence", confidence)

        def suffices(units: int) -> bool:
            return units >= 1 and self.shown(units).lower >= wanted

        return smallest(suffices, below=self.threshold)

    def error(self, confidence: Number) -> int:
        """Returns h with P(|noise| <= h) >= confidence, over all keys, released or not.

        Near the threshold the noise of the RELEASED keys is biased upwards.
        """
        return self.noise.half_width(confidence)


def threshold_laplace(
    keys: int,
    epsilon: Number,
    delta: Number,
    relation: Relation,
) -> ThresholdMechanism:
    """Returns the mechanism of private partition selection with discrete Laplace noise and the
    smallest threshold for delta.

    (epsilon, delta)-DP. ``keys`` is the most keys of a unit. The scale of the noise is keys /
    epsilon, under replace-one 2 keys / epsilon. Source: Korolova et al. (2009), with the exact law
    of the noise.

    Raises:
        InvalidNumber: epsilon or the number of keys is invalid, or delta is outside (0, 1/2] or too
            small.

    >>> threshold_laplace(1, "0.5", "1e-6", Relation.ADD_REMOVE).noise.scale
    Fraction(2, 1)
    """
    touched = _touched(keys, relation)
    cap = _delta(delta)
    noise = DiscreteLaplace(touched / positive("epsilon", epsilon))
    tail = touched / cap * (noise.scale + 1) / (2 * noise.scale + 1)
    guess = int(noise.scale * log_up(tail))

    def build(threshold: int) -> ThresholdMechanism:
        return ThresholdMechanism(noise, threshold, keys)

    return _calibrated(build, noise, cap, relation, guess)


def threshold_gaussian(
    keys: int,
    rho: Number,
    delta: Number,
    relation: Relation,
) -> ThresholdMechanism:
    """Returns the mechanism of private partition selection with discrete Gaussian noise and the
    smallest threshold for delta.

    rho-zCDP, except with probability delta. ``keys`` is the most keys of a unit. sigma^2 is keys /
    (2 rho), under replace-one 2 keys / (2 rho).

    Raises:
        InvalidNumber: rho or the number of keys is invalid, or delta is outside (0, 1/2] or too
            small.

    >>> threshold_gaussian(1, "0.125", "1e-6", Relation.ADD_REMOVE).noise.sigma_squared
    Fraction(4, 1)
    """
    touched = _touched(keys, relation)
    cap = _delta(delta)
    noise = DiscreteGaussian(sigma_squared=touched / (2 * positive("rho", rho)))
    guess = math.isqrt(int(2 * noise.sigma_squared * log_up(touched / cap)))

    def build(threshold: int) -> ThresholdMechanism:
        return ThresholdMechanism(noise, threshold, keys)

    return _calibrated(build, noise, cap, relation, guess)


def threshold_geometric(
    keys: int,
    epsilon: Number,
    delta: Number,
    relation: Relation,
) -> ThresholdMechanism:
    """Returns the mechanism of private partition selection with discrete Laplace noise truncated at
    the threshold.

    (epsilon, delta)-DP, with the smallest threshold for delta, which covers the truncation and keys
    of a single unit. With one key per unit, no (epsilon, delta)-DP selection releases any key more
    often for the delta that this spends (Desfontaines et al. 2022). Keys of 2 threshold - 1 or more
    units are always released.

    >>> threshold_laplace(1, "0.1", "1e-6", Relation.ADD_REMOVE).threshold
    133
    >>> threshold_geometric(1, "0.1", "1e-6", Relation.ADD_REMOVE).threshold
    110
    """
    touched = _touched(keys, relation)
    cap = _delta(delta)
    noise = DiscreteLaplace(touched / positive("epsilon", epsilon))
    guess = int(noise.scale * log_up(touched / cap / (2 * noise.scale + 1)))

    def build(threshold: int) -> ThresholdMechanism:
        truncated = Truncated(noise, 1 - threshold, threshold - 1)
        return ThresholdMechanism(truncated, threshold, keys)

    return _calibrated(build, noise, cap, relation, guess)


def _delta(delta: Number) -> Fraction:
    """``delta`` as an exact number in (0, 1/2]."""
    return positive("delta", delta, at_most=Fraction(1, 2))


def _calibrated(
    build: Callable[[int], ThresholdMechanism],
    noise: DiscreteLaplace | DiscreteGaussian,
    cap: Fraction,
    relation: Relation,
    guess: int,
) -> ThresholdMechanism:
    """The mechanism with the smallest threshold whose delta is at most ``cap``.

    ``guess`` is where the search starts; it has no effect on the result.
    """
    one = Distance(Norm.LINF, Fraction(1), relation)

    def pays(threshold: int) -> bool:
        """Whether a threshold costs at most ``cap``."""
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
    if relation is Relation.ADD_REMOVE:
        return count("keys", keys)
    return 2 * count("keys", keys)


def _rank(key: object) -> tuple[object, ...]:
    """A sort key: orders keys by type, then by value; only equal keys have equal ranks."""
    for place, kind in enumerate(_ORDER):
        if isinstance(key, tuple) and kind is tuple:
            return place, tuple(map(_rank, key))
        if isinstance(key, kind):
            return place, key
    return (len(_ORDER),)


def _are_plain(keys: Collection[object]) -> bool:
    """Whether all keys are tuples of integers, strings, bytes and None; quick for many keys."""
    if not set(map(type, keys)) <= {tuple}:
        return False
    tuples = cast(Collection[tuple[object, ...]], keys)
    return _PLAIN.issuperset(map(type, chain.from_iterable(tuples)))


def _has_place(key: object, depth: int = 16) -> bool:
    """Whether ``_rank`` can order a key."""
    if isinstance(key, tuple):
        return depth > 0 and all(_has_place(part, depth - 1) for part in key)
    return key is None or isinstance(key, _ORDER)
