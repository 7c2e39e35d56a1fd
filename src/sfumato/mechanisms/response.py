# SPDX-License-Identifier: Apache-2.0
"""Randomized response: each person reports the true category or, with some probability, another.

Source: Warner, "Randomized Response" (JASA 1965); k categories: Kairouz, Oh, Viswanath,
"Extremal Mechanisms for Local Differential Privacy" (JMLR 2016). Proof: response.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.exponential import exp_scaled
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import float_up
from sfumato.mechanisms.deviation import deviation
from sfumato.mechanisms.selection import count
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.coin import BernoulliLogistic
from sfumato.noise.entropy import Words, below
from sfumato.noise.law import size_of
from sfumato.noise.uniform import below_many
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import RandomizedResponse, Repeated
from sfumato.privacy.unit import Relation

# For a smaller epsilon estimates could overflow a float, and no number of reports is informative.
_FAINTEST = Fraction(1, 10**100)
_MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class ResponseMechanism:
    """The mechanism of k-ary randomized response over the categories 0 to k-1.

    Reports the true category with probability e^epsilon / (e^epsilon + k - 1), otherwise a uniform
    one of the others. A value outside the categories counts as the nearest one, and a value that is
    not an integer as 0, so that no value can make a report fail.

    Guarantees:
        a report has exactly the stated probabilities
        reports of neighbours are within e to the epsilon
        every value has a report
        no bit beyond the count is reported
        estimated counts are unbiased
        the error of a count covers as often as stated

    Raises:
        InvalidNumber: epsilon is below 1e-100.
        InvalidDeclaration: there are fewer than 2 categories, or more than 2^31.

    >>> mechanism = randomized_response("1.5", categories=4)
    >>> mechanism.release(2) in range(4)
    True
    >>> mechanism.estimate([0] * 40 + [1] * 20 + [2] * 20 + [3] * 20).round(1).tolist()
    [57.2, 14.3, 14.3, 14.3]
    """

    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        if type(self.categories) is not int or self.categories > _MOST:
            raise InvalidDeclaration(
                f"categories = {shown(self.categories)}.", allowed="an integer from 2 to 2^31"
            )
        RandomizedResponse(self.epsilon, self.categories)
        if self.epsilon < _FAINTEST:
            raise InvalidNumber("An epsilon below 1e-100.", allowed="1e-100 or more")

    def event(self, distance: Distance) -> RandomizedResponse | Repeated:
        """Returns the event of the reports; neighbours differ in ``distance`` / 2 replaced rows
        (L1).

        The number of reports is public, so add-remove neighbours are refused.
        """
        pairs = distance.value / 2
        if (
            distance.norm is not Norm.L1
            or distance.relation is not Relation.REPLACE_ONE
            or pairs.denominator != 1
        ):
            raise InvalidDeclaration(
                f"Randomised response for neighbours at {distance.value} in {distance.norm.value}, "
                f"{distance.relation.value}.",
                allowed="replaced rows: Distance(Norm.L1, 2 for each, Relation.REPLACE_ONE)",
            )
        one = RandomizedResponse(self.epsilon, self.categories)
        return one if pairs == 1 else Repeated(one, int(pairs))

    def release(self, value: object, entropy: Entropy = SYSTEM) -> int:
        """Returns the report of one value: a category, drawn at random."""
        truth = self._category(value)
        # always drawn, so that the time does not show whether the report is true
        other = 1 + below(self.categories - 1, entropy)
        return (truth + other * self._lie.sample_one(entropy)) % self.categories

    def release_many(self, values: ArrayLike, entropy: Entropy = SYSTEM) -> Integers:
        """Returns independent reports of many values, as an int64 array of the same shape."""
        if isinstance(values, np.ndarray) and values.dtype.kind not in "iubO":
            raise _not_categories(str(values.dtype))
        given = values if isinstance(values, np.ndarray) else np.asarray(values, object)
        reports = self._categories(given)
        lies = np.flatnonzero(self._lie.sample(len(reports), entropy))
        others = below_many(self.categories - 1, len(lies), entropy)
        reports[lies] += 1 + others
        reports[reports >= self.categories] -= self.categories
        return reports.reshape(given.shape)

    def _categories(self, values: NDArray[Any]) -> Integers:
        """The category of each value, in one dimension, as a new array."""
        if values.dtype.kind == "O":
            return np.array([self._category(value) for value in values.flat], np.int64)
        widest = np.uint64 if values.dtype.kind == "u" else np.int64
        clipped = np.clip(values.astype(widest), 0, self.categories - 1)
        return clipped.astype(np.int64).ravel()

    def _category(self, value: object) -> int:
        """The category nearest to an integer of any size; 0 for any other value."""
        if not isinstance(value, int | np.integer | np.bool_):
            return 0
        return min(max(int(value), 0), self.categories - 1)

    def release_bits(self, values: Words, count: int, entropy: Entropy = SYSTEM) -> Words:
        """Returns the reports of ``count`` yes-or-no values, packed in 64-bit words, lowest bit
        first.

        The bits after the last report are zero.
        """
        whole, rest = divmod(size_of(count), 64)
        length = whole + (rest > 0)
        fits = values.dtype == np.uint64 and values.shape == (length,)
        if self.categories != 2 or not fits:
            raise InvalidDeclaration(
                f"Packed values for {self.categories} categories and {count} bits.",
                allowed="2 categories, and an array of count / 64 uint64 words, rounded up",
            )
        reports = self._lie.bits(count, entropy)
        reports ^= values
        if rest:
            reports[-1] &= np.uint64((1 << rest) - 1)
        return reports

    def estimate(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Returns unbiased estimates of the number of people in each category, from all reports."""
        flat = np.asarray(reports).ravel()
        integral = flat.dtype.kind in "iub"
        if len(flat) and not (integral and 0 <= flat.min() <= flat.max() < self.categories):
            raise InvalidDeclaration(
                "These are not reports.", allowed=f"integers from 0 to {self.categories - 1}"
            )
        counts = np.bincount(flat.astype(np.int64), minlength=self.categories)
        return self.estimate_counts(counts)

    def estimate_counts(self, counts: Sequence[int] | Integers) -> NDArray[np.float64]:
        """Returns ``estimate`` of the reports, given how many reports name each category."""
        given = np.asarray(counts)
        if given.shape != (self.categories,) or given.dtype.kind not in "iu" or given.min() < 0:
            raise InvalidDeclaration(
                "These are not counts.", allowed=f"{self.categories} integers >= 0"
            )
        seen: NDArray[np.float64] = given.astype(np.float64)
        excess = self.categories * seen - seen.sum()
        seen += excess * float(self._weight[0])
        return seen

    def error(self, confidence: Number, people: int) -> float:
        """Returns a bound h of the error of an estimated count, which holds with the given
        confidence.

        It is proved for one category, ``people`` reports and any data: ``deviation`` (Hoeffding or
        Bernstein). For all k categories together pass the confidence 1 - (1 - confidence) / k.
        """
        spread = deviation(count("people", people), self._variance, confidence)
        # far above the rounding errors of ``estimate_counts``
        rounding = Fraction(people, 1 << 48)
        slope = 1 + self.categories * self._weight[1]
        return float_up((spread + rounding) * slope)

    @property
    def _lie(self) -> BernoulliLogistic:
        """The coin that decides whether another category is reported."""
        return BernoulliLogistic(self.epsilon, self.categories - 1)

    @property
    def _variance(self) -> Fraction:
        """An upper bound of the variance of the indicator "the report is j".

        It is largest for people whose category is j.
        """
        lower, upper = self._decay
        others = self.categories - 1
        return others * upper / (1 + others * lower) ** 2

    @property
    def _weight(self) -> tuple[Fraction, Fraction]:
        """Bounds of 1 / (e^epsilon - 1)."""
        lower, upper = self._decay
        return lower / (1 - lower), upper / (1 - upper)

    @property
    def _decay(self) -> tuple[Fraction, Fraction]:
        """Bounds of e^-epsilon that differ by less than 2^-120 (1 - e^-epsilon)."""
        precision = 128 + self.epsilon.denominator.bit_length()
        lower, upper = exp_scaled(self.epsilon.numerator, self.epsilon.denominator, precision)
        least = Fraction(lower, 1 << precision)
        most = Fraction(upper, 1 << precision)
        return least, most


def randomized_response(epsilon: Number, categories: int = 2) -> ResponseMechanism:
    """Randomized response over k categories, epsilon-DP for the value of each row (Warner 1965).

    >>> from sfumato.accounting import account
    >>> replaced = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)
    >>> account(randomized_response("0.5").event(replaced)).epsilon
    Fraction(1, 2)
    """
    return ResponseMechanism(positive("epsilon", epsilon), categories)


def _not_categories(kind: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"Values of type {kind}.", allowed="integers: the number of the category"
    )
