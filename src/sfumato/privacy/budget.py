# SPDX-License-Identifier: Apache-2.0
"""The budget: the total privacy loss that a data owner allows."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rational import Number, decimal_text, positive, to_fraction


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Budget:
    """The limit of a dataset: all answers together are (epsilon, delta)-DP.

    With ``delta`` zero only pure epsilon-DP is accepted. Otherwise half of delta is for
    converting zCDP to (epsilon, delta), half for mechanisms that spend delta (RULES 4).

    Raises:
        InvalidNumber: epsilon outside (0, 10^6], delta outside [0, 1).

    >>> Budget(epsilon=3, delta="1e-6")
    Budget(epsilon=3, delta=0.000001)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon, at_most=Fraction(10**6)))
        exact = to_fraction("delta", delta)
        if exact != 0:
            positive("delta", exact, at_most=1 - Fraction(1, 10**24))
        object.__setattr__(self, "delta", exact)

    def __repr__(self) -> str:
        return f"Budget(epsilon={decimal_text(self.epsilon)}, delta={decimal_text(self.delta)})"
