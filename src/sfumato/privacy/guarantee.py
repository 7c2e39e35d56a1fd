# SPDX-License-Identifier: Apache-2.0
"""Privacy guarantees, as exact values. Conversions are explicit (``accounting.convert``).

Each guarantee holds in both directions between neighbours. ``one.implies(other)`` compares two
guarantees of the same kind; different kinds must be converted first.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number, to_fraction


@dataclass(frozen=True, slots=True, order=True, init=False)
class PureDP:
    """epsilon-DP: P(A) <= e^epsilon Q(A) for every event A (Dwork, McSherry, Nissim, Smith 2006).

    Raises:
        InvalidNumber: epsilon is below 0 or not a finite number.

    >>> PureDP("0.1") < PureDP(1), PureDP("0.1").implies(PureDP(1))
    (True, True)
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _amount("epsilon", epsilon))

    def implies(self, other: "PureDP") -> bool:
        """Whether every mechanism with this guarantee has the other."""
        _same_kind(self, other)
        return self <= other


@dataclass(frozen=True, slots=True, order=True, init=False)
class BoundedRangeDP:
    """eta-bounded range: the loss ln(P/Q) of all outputs lies in an interval of length eta.

    Source: Durfee, Rogers 2019.

    >>> BoundedRangeDP("0.1").implies(BoundedRangeDP(1))
    True
    """

    eta: Fraction

    def __init__(self, eta: Number) -> None:
        object.__setattr__(self, "eta", _amount("eta", eta))

    def implies(self, other: "BoundedRangeDP") -> bool:
        """Whether every mechanism with this guarantee has the other."""
        _same_kind(self, other)
        return self <= other


@dataclass(frozen=True, slots=True, init=False)
class ApproxDP:
    """(epsilon, delta)-DP: P(A) <= e^epsilon Q(A) + delta (Dwork et al. 2006).

    Only partly ordered: ``implies`` compares both numbers. ``accounting.delta_at`` gives the
    delta of a guarantee at another epsilon.

    Raises:
        InvalidNumber: epsilon below 0, or delta outside [0, 1].

    >>> one = ApproxDP(1, "1e-6")
    >>> one.implies(ApproxDP(2, "1e-6")), one.implies(ApproxDP(2, 0))
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _amount("epsilon", epsilon))
        slack = _amount("delta", delta)
        if slack > 1:
            raise InvalidNumber(f"delta = {delta}.", allowed="0 or greater, and at most 1")
        object.__setattr__(self, "delta", slack)

    def implies(self, other: "ApproxDP") -> bool:
        """Whether a mechanism with this guarantee also has the other: both numbers are at most the
        other's.

        Also true if the other says nothing (delta = 1).
        """
        _same_kind(self, other)
        if other.delta == 1:
            return True
        return self.epsilon <= other.epsilon and self.delta <= other.delta


@dataclass(frozen=True, slots=True, order=True, init=False)
class ZeroConcentratedDP:
    """rho-zCDP: the Renyi divergence of every order a > 1 is at most a rho (Bun, Steinke 2016).

    >>> ZeroConcentratedDP("0.005").implies(ZeroConcentratedDP("0.01"))
    True
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _amount("rho", rho))

    def implies(self, other: "ZeroConcentratedDP") -> bool:
        """Whether every mechanism with this guarantee also has ``other``: rho is at most its rho."""
        _same_kind(self, other)
        return self <= other


@dataclass(frozen=True, slots=True, init=False)
class RenyiDP:
    """(order, epsilon)-Renyi DP: the Renyi divergence of this order is at most epsilon.

    Source: Mironov 2017. Guarantees of the same order are ordered by epsilon; ``implies`` also
    uses that the divergence grows with the order (van Erven and Harremoes 2014, Theorem 3).

    Raises:
        InvalidNumber: an order of 1 or less, or epsilon below 0.

    >>> RenyiDP(8, 1) < RenyiDP(8, 2), RenyiDP(8, 1).implies(RenyiDP(4, 1))
    (True, True)
    """

    order: Fraction
    epsilon: Fraction

    def __init__(self, order: Number, epsilon: Number) -> None:
        exact = _amount("order", order)
        if exact <= 1:
            raise InvalidNumber(f"A Renyi order of {order}.", allowed="greater than 1")
        object.__setattr__(self, "order", exact)
        object.__setattr__(self, "epsilon", _amount("epsilon", epsilon))

    def implies(self, other: "RenyiDP") -> bool:
        """Whether a mechanism with this guarantee also has the other.

        The order must be at least the other's, and epsilon at most the other's.
        """
        _same_kind(self, other)
        return self.order >= other.order and self.epsilon <= other.epsilon

    def __lt__(self, other: "RenyiDP") -> bool:
        if not _same_order(self, other):
            return NotImplemented
        return self.epsilon < other.epsilon

    def __le__(self, other: "RenyiDP") -> bool:
        if not _same_order(self, other):
            return NotImplemented
        return self.epsilon <= other.epsilon


@dataclass(frozen=True, slots=True, order=True, init=False)
class GaussianDP:
    """mu-GDP: neighbours are at least as hard to distinguish as N(0, 1) from N(mu, 1).

    Source: Dong, Roth, Su 2022. The value is mu^2, since that adds up under composition and is
    rational for Gaussian noise.

    >>> GaussianDP("0.25").implies(GaussianDP(1))
    True
    """

    mu_squared: Fraction

    def __init__(self, mu_squared: Number) -> None:
        object.__setattr__(self, "mu_squared", _amount("mu_squared", mu_squared))

    def implies(self, other: "GaussianDP") -> bool:
        """Whether every mechanism with this guarantee also has ``other``: mu is at most its mu."""
        _same_kind(self, other)
        return self <= other


Guarantee: TypeAlias = (
    PureDP | BoundedRangeDP | ApproxDP | ZeroConcentratedDP | RenyiDP | GaussianDP
)


def _amount(name: str, value: Number) -> Fraction:
    """A number >= 0. A Fraction was computed and may have any length; others are user input."""
    number = value if type(value) is Fraction else to_fraction(name, value)
    if number < 0:
        raise InvalidNumber(f"{name} = {value}.", allowed="0 or greater")
    return number


def _same_kind(guarantee: object, other: object) -> None:
    if type(guarantee) is not type(other):
        raise InvalidDeclaration(
            f"{type(guarantee).__name__} compared with {type(other).__name__}.",
            allowed="two guarantees of one kind",
            remedy="Convert one of them by name first: sfumato.accounting.convert.",
        )


def _same_order(guarantee: RenyiDP, other: object) -> bool:
    return isinstance(other, RenyiDP) and guarantee.order == other.order
