# SPDX-License-Identifier: Apache-2.0
"""The cost of an event in the measures of an account's gates, and how costs add up."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.zcdp import zcdp_from_pure
from sfumato.privacy.guarantee import PureDP


@dataclass(frozen=True, slots=True)
class Profile:
    """The exact cost of an event in the three measures of a ledger account: pure epsilon, zCDP rho
    and delta.

    ``epsilon`` is the pure loss, None if unbounded (Gaussian noise); ``rho`` the zCDP cost;
    ``delta`` the delta that the event spends itself.

    >>> Profile.pure(Fraction(1, 10))
    Profile(epsilon=Fraction(1, 10), rho=Fraction(1, 200), delta=Fraction(0, 1))
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)

    @classmethod
    def pure(cls, epsilon: Fraction, delta: Fraction = Fraction(0)) -> "Profile":
        """Returns the cost of an epsilon-DP event: epsilon and the zCDP that it implies."""
        return cls(epsilon, zcdp_from_pure(PureDP(epsilon)).rho, delta)

    @classmethod
    def total(cls, parts: Sequence["Profile"]) -> "Profile":
        """Returns the cost of a sequential composition: losses, zCDP and deltas add up."""
        pure = [part.epsilon for part in parts if part.epsilon is not None]
        return cls(
            sum(pure, Fraction(0)) if len(pure) == len(parts) else None,
            sum((part.rho for part in parts), Fraction(0)),
            sum((part.delta for part in parts), Fraction(0)),
        )

    def times(self, count: int) -> "Profile":
        """Returns the cost of ``count`` repetitions."""
        epsilon = None if self.epsilon is None else count * self.epsilon
        return Profile(epsilon, count * self.rho, count * self.delta)
