# SPDX-License-Identifier: Apache-2.0
"""Group privacy: converts guarantees for one unit into ones for several, or for a replaced unit.

Proof: group.proof.md.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from sfumato.accounting.divergence import HUGE
from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rounding import exp_down, exp_up
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

_LARGEST = 256
Kind = TypeVar("Kind", bound=Guarantee)


def for_group(guarantee: Kind, size: int) -> Kind:
    """Returns the guarantee of the same kind for datasets that are ``size`` steps of the neighbour
    relation apart (group privacy).

    Pure and bounded range: size times (Dwork and Roth 2014, Theorem 2.2). Approximate: size
    epsilon, and delta (1 + e^epsilon + ... + e^((size-1) epsilon)). zCDP: size^2 rho (Bun and
    Steinke 2016, Proposition 1.9). GDP: size mu (Dong, Roth, Su 2022, Theorem 2.14). Renyi: at the
    smaller order b with 1 - 1/b = (1 - 1/order)^size, by Hoelder's inequality (a sharper form of
    Mironov 2017, Proposition 2).

    Guarantees:
        a group loses at most what its guarantee says

    Raises:
        InvalidNumber: the size is no integer >= 1, or is above 256 for Renyi.

    >>> for_group(PureDP("0.5"), 4), for_group(ZeroConcentratedDP("0.01"), 4).rho
    (PureDP(epsilon=Fraction(2, 1)), Fraction(4, 25))
    >>> for_group(RenyiDP(4, 1), 2)
    RenyiDP(order=Fraction(16, 7), epsilon=Fraction(7, 3))
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidNumber(f"A group of {shown(size)}.", allowed="an integer >= 1")
    rule = _RULES.get(type(guarantee))
    if rule is None:
        raise InvalidDeclaration(
            f"{shown(guarantee)} is no guarantee.",
            allowed=", ".join(kind.__name__ for kind in _RULES),
        )
    grown: Kind = rule(guarantee, size)
    return grown


def replace_one_from_add_remove(guarantee: Kind) -> Kind:
    """Returns the replace-one guarantee that an add-remove guarantee implies: two steps (RULES 2).

    There is no converse: a replace-one guarantee says nothing about adding or removing a unit.

    >>> replace_one_from_add_remove(PureDP(1))
    PureDP(epsilon=Fraction(2, 1))
    """
    return for_group(guarantee, 2)


def _approx(guarantee: ApproxDP, size: int) -> ApproxDP:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if delta == 0:
        return ApproxDP(size * epsilon, delta)
    if size * epsilon > HUGE:
        return ApproxDP(size * epsilon, Fraction(1))
    steps, growth = size * exp_up((size - 1) * epsilon), exp_down(epsilon) - 1
    if growth > 0:
        steps = min(steps, (exp_up(size * epsilon) - 1) / growth)
    return ApproxDP(size * epsilon, min(steps * delta, Fraction(1)))


def _renyi(guarantee: RenyiDP, size: int) -> RenyiDP:
    if size > _LARGEST:
        raise InvalidNumber(
            f"A group of {size} under a Renyi guarantee.",
            allowed=f"at most {_LARGEST}: the order is then so near 1 that nothing useful is left",
        )
    kept = 1 - 1 / guarantee.order
    return RenyiDP(
        1 / (1 - kept**size),
        guarantee.epsilon * (guarantee.order - 1) * (kept**-size - 1),
    )


_RULES: Mapping[type, Callable[[Any, int], Any]] = {
    PureDP: lambda one, size: PureDP(size * one.epsilon),
    BoundedRangeDP: lambda one, size: BoundedRangeDP(size * one.eta),
    ApproxDP: _approx,
    ZeroConcentratedDP: lambda one, size: ZeroConcentratedDP(size**2 * one.rho),
    RenyiDP: _renyi,
    GaussianDP: lambda one, size: GaussianDP(size**2 * one.mu_squared),
}
