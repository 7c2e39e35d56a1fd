# SPDX-License-Identifier: Apache-2.0
"""Several releases with equal noise under one cost: a pure epsilon, a rho, or epsilon with delta.

Used by ``KMeans``, trees and other recipes with a fixed number of releases.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rounding import sqrt_up
from sfumato.learning.budget import Budgeted
from sfumato.learning.order import FullBatch
from sfumato.learning.recipe import Asked
from sfumato.mechanisms.additive import AdditiveMechanism, laplace
from sfumato.noise import RoundedGaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Event, Repeated


@dataclass(frozen=True, slots=True)
class Releases:
    """The noise mechanism of a fit with ``times`` noisy releases, whose statistics all have the
    same sensitivity ``distance``.

    ``budget`` is None if the cost is a pure epsilon.

    >>> one = Distance(Norm.L1, Fraction(6))
    >>> Releases.of(Asked(epsilon=1), one, 3, ()).mechanism.noise
    DiscreteLaplace(scale=Fraction(18, 1))
    """

    mechanism: AdditiveMechanism
    distance: Distance
    times: int
    budget: Budgeted | None

    @classmethod
    def of(
        cls,
        asked: Asked,
        distance: Distance,
        times: int,
        orders: Collection[Fraction],
    ) -> "Releases":
        """Returns the releases with the least noise for which all ``times`` of them together stay
        within a stated cost.

        ``distance`` must be in the norm of ``norm_of``.
        """
        if norm_of(asked) is Norm.L1:
            share = asked.allowance.amount / times
            return cls(laplace(distance, share), distance, times, None)
        budget = asked.budget
        multiplier = budget.multiplier(FullBatch(), times, orders)
        sigma = Fraction(math.ceil(multiplier * sqrt_up(distance.value)))
        return cls(AdditiveMechanism(RoundedGaussian(sigma)), distance, times, budget)

    @property
    def event(self) -> Event:
        """The privacy event of all releases together."""
        plan = Repeated(self.mechanism.event(self.distance), self.times)
        if self.budget is None:
            return plan
        return self.budget.whole(plan)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of each released integer."""
        return math.sqrt(self.mechanism.noise.variance.upper)


def norm_of(asked: Asked) -> Norm:
    """Returns the norm of the sensitivity for a stated cost: L1 (Laplace noise) for a pure epsilon,
    else L2 (Gaussian noise).

    >>> norm_of(Asked(epsilon=1)), norm_of(Asked(epsilon=1, delta="1e-6"))
    (<Norm.L1: 'L1'>, <Norm.L2: 'L2'>)
    """
    if asked.epsilon is not None and asked.rho is None and asked.delta is None:
        return Norm.L1
    return Norm.L2
