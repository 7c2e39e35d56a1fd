# SPDX-License-Identifier: Apache-2.0
"""Numbers the points and hyperplanes of a projective space over a prime field.

``projective`` reports such points. A vector is written as digits in base q. A point is, of the
vectors that are multiples of one another, the vector whose leading digit is 1; points are numbered
by their digits. The hyperplane with number v has the digits of point v, in reverse order, as
coefficients. Proof: points.proof.md.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.noise import Integers


@dataclass(frozen=True, slots=True)
class Space:
    """A finite projective space: the points with ``dimension`` homogeneous coordinates in the field
    of ``prime`` elements.

    Guarantees:
        on numbers the points of a hyperplane
        beyond numbers the points off a hyperplane
        many points are those of one at a time

    >>> space = Space(2, 3)
    >>> space.points, sorted(space.on(0, place) for place in range(space.on_plane))
    (7, [0, 1, 2])
    """

    prime: int
    dimension: int

    @classmethod
    def of(cls, prime: int, values: int) -> "Space":
        """Returns the smallest projective space over the field of ``prime`` elements with at least
        ``values`` points.

        >>> Space.of(3, 1000).dimension
        7
        """
        dimension = 2
        while cls(prime, dimension).points < values:
            dimension += 1
        return cls(prime, dimension)

    @property
    def points(self) -> int:
        """The number of points, and of hyperplanes."""
        return self._below(self.dimension)

    @property
    def on_plane(self) -> int:
        """The number of points on each hyperplane."""
        return self._below(self.dimension - 1)

    @property
    def on_both(self) -> int:
        """The number of points in the intersection of two different hyperplanes."""
        return self._below(self.dimension - 2)

    def _below(self, digits: int) -> int:
        """Returns the number of points with at most so many digits."""
        return (self._power(digits) - 1) // (self.prime - 1)

    def _power(self, digits: int) -> int:
        """Returns how many vectors have so many digits."""
        power: int = self.prime**digits
        return power

    def vector(self, point: int) -> int:
        """Returns the homogeneous coordinates of a point as the digits of a number whose leading
        digit is 1.
        """
        free = self._free(point)
        return point - self._below(free) + self._power(free)

    def _free(self, point: int) -> int:
        """Returns how many digits of a point follow its leading 1."""
        free = 0
        while self._below(free + 1) <= point:
            free += 1
        return free

    def on(self, plane: int, place: int) -> int:
        """Returns the point with index ``place`` among the points on a hyperplane.

        All coordinates but one are a point of the space below; the one where the coefficient is the
        last 1 follows.
        """
        rest = Space(self.prime, self.dimension - 1).vector(place)
        return self._number(self._completed(plane, rest, 0))

    def beyond(self, plane: int, place: int) -> int:
        """Returns the point with index ``place`` among the points that are not on a hyperplane."""
        return self._number(self._scaled(self._completed(plane, place, 1)))

    def _completed(self, plane: int, rest: int, product: int) -> int:
        """The vector with all coordinates but one, whose product with the coefficients is given."""
        prime = self.prime
        coefficients = self.vector(plane)
        free = self._free(plane)
        cut = self._power(self.dimension - 1 - free)
        upper, lower = divmod(rest, cut)
        missing = product - self._product(coefficients, upper, free)
        return (upper * prime + missing % prime) * cut + lower

    def _product(self, coefficients: int, upper: int, free: int) -> int:
        """The sum of the products of ``free`` coefficients, from the last on, with coordinates."""
        prime = self.prime
        total = 0
        place = prime**free
        for _ in range(free):
            place //= prime
            total += coefficients % prime * (upper // place % prime)
            coefficients //= prime
        return total

    def _scaled(self, vector: int) -> int:
        """Returns the multiple of a vector whose leading digit is 1."""
        prime = self.prime
        digits = []
        while vector:
            digits.append(vector % prime)
            vector //= prime
        inverse = pow(digits[-1], prime - 2, prime) if prime > 2 else 1
        scaled = 0
        for digit in reversed(digits):
            scaled = scaled * prime + digit * inverse % prime
        return scaled

    def _number(self, vector: int) -> int:
        """Returns the number of the point of a vector whose leading digit is 1."""
        free = 0
        place = self.prime
        while place <= vector:
            free += 1
            place *= self.prime
        return vector - self._power(free) + self._below(free)

    def on_many(self, planes: Integers, places: Integers) -> Integers:
        """Returns ``on`` for arrays of hyperplanes and indices."""
        rest = Space(self.prime, self.dimension - 1).vectors(places)
        return self._numbers(self._completed_many(planes, rest, 0))

    def beyond_many(self, planes: Integers, places: Integers) -> Integers:
        """Returns ``beyond`` for arrays of hyperplanes and indices."""
        vectors = self._completed_many(planes, places, 1)
        prime = self.prime
        powers = self._powers
        leading = np.searchsorted(powers, vectors, side="right") - 1
        inverses = np.array([pow(digit, prime - 2, prime) for digit in range(prime)], np.int64)
        factor = inverses[vectors // powers[leading]] if prime > 2 else np.int64(1)
        scaled = np.zeros_like(vectors)
        for power in powers:
            scaled += vectors // power % prime * factor % prime * power
        return self._numbers(scaled)

    def vectors(self, points: Integers) -> Integers:
        """Returns the coordinates of each point of an array.

        >>> Space(3, 2).vectors(np.arange(4)).tolist()
        [1, 3, 4, 5]
        """
        free = self._free_many(points)
        return points - self._totals[free] + self._powers[free]

    @property
    def _powers(self) -> Integers:
        """The place values of the digits, from the last one on."""
        return np.array([self.prime**digit for digit in range(self.dimension)], np.int64)

    @property
    def _totals(self) -> Integers:
        """``_below`` of 0 to dimension - 1."""
        return np.array([self._below(digit) for digit in range(self.dimension)], np.int64)

    def _free_many(self, points: Integers) -> Integers:
        return np.searchsorted(self._totals, points, side="right") - 1

    def _completed_many(self, planes: Integers, rest: Integers, product: int) -> Integers:
        prime = self.prime
        coefficients = self.vectors(planes)
        free = self._free_many(planes)
        powers = self._powers
        cut = powers[self.dimension - 1 - free]
        upper, lower = np.divmod(rest, cut)
        total = np.zeros_like(rest)
        for digit in range(self.dimension - 1):
            # coordinate number ``digit`` before the missing one, where there is one
            power = powers[np.maximum(free - 1 - digit, 0)]
            term = coefficients // powers[digit] % prime * (upper // power % prime)
            total += np.where(digit < free, term, 0)
        return (upper * prime + (product - total) % prime) * cut + lower

    def _numbers(self, vectors: Integers) -> Integers:
        free = np.searchsorted(self._powers, vectors, side="right") - 1
        return vectors - self._powers[free] + self._totals[free]
