# SPDX-License-Identifier: Apache-2.0
"""What an analyst is ready to pay, or which error is wanted."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidNumber, WrongUse
from sfumato.exact.rational import Number, positive, to_fraction

_LEAST, _MOST = Fraction(1, 10**12), Fraction(10**6)


@dataclass(frozen=True, slots=True)
class OnAverage:
    """An error wanted on average over the cells of each column: ``error=OnAverage("5%")``.

    The root of the mean squared error, which no mean of absolute errors exceeds; about a third to
    a half of what the 95% half-width of every cell would cost.
    """

    error: Number


Wish: TypeAlias = Number | OnAverage


@dataclass(frozen=True, slots=True)
class Target:
    """A wanted error: absolute, or a part of a public reference.

    The 95% half-width of every cell, or with ``average`` the root of the mean squared error over
    the cells of a column.
    """

    amount: Fraction
    relative: bool
    average: bool = False


@dataclass(frozen=True, slots=True)
class Price:
    """Exactly one of ``epsilon``, ``rho`` and ``target``; ``most`` caps a target's cost.

    ``delta``: what may be spent on showing groups that are not public.
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    target: Target | None = None
    most: Fraction | None = None
    delta: Fraction | None = None

    def scaled(self, share: Fraction) -> "Price":
        """A share of it, of a question that is one of several; a delta is not shared."""
        if share != 1 and self.target is not None:
            raise WrongUse(
                "error= of a question that needs another one answered first (a sub-query, or a limit that is sf.AUTO).",
                remedy="Ask with epsilon= or rho=; it is shared among them.",
            )
        epsilon = None if self.epsilon is None else self.epsilon * share
        rho = None if self.rho is None else self.rho * share
        return replace(self, epsilon=epsilon, rho=rho)


def price(
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    error: Wish | None = None,
    max_epsilon: Number | None = None,
) -> Price:
    """The price that the keywords of ``query`` and ``preview`` state.

    Raises:
        WrongUse: not exactly one of epsilon, rho and error; an error without max_epsilon.
        InvalidNumber: a cost outside [1e-12, 10^6], or not a number.

    >>> price(epsilon="0.1").epsilon
    Fraction(1, 10)
    """
    if sum(each is not None for each in (epsilon, rho, error)) != 1:
        raise WrongUse(
            "A question needs exactly one of epsilon=, rho= and error=.",
            remedy="epsilon=0.1 buys pure differential privacy, rho=0.01 zCDP; error=100, max_epsilon=0.5 asks for an error.",
        )
    if (error is None) != (max_epsilon is None):
        raise WrongUse("error= and max_epsilon= go together.", remedy="error=100, max_epsilon=0.5")
    if error is not None and max_epsilon is not None:
        if delta is not None:
            raise WrongUse("error= with delta=.", remedy="delta= goes with epsilon= or rho=.")
        return Price(target=_target(error), most=_cost("max_epsilon", max_epsilon))
    spent = None if delta is None else _delta(delta)
    if rho is not None:
        return Price(rho=_cost("rho", rho), delta=spent)
    return Price(epsilon=_cost("epsilon", epsilon if epsilon is not None else 0), delta=spent)


def _cost(name: str, value: Number) -> Fraction:
    number = positive(name, value, at_most=_MOST)
    if number < _LEAST:
        raise InvalidNumber(
            f"{name} = {value} is below the ledger's unit.", allowed="at least 1e-12"
        )
    return number


def _delta(value: Number) -> Fraction:
    """At least the ledger's unit of delta."""
    number = positive("delta", value, at_most=Fraction(1, 2))
    if number < Fraction(1, 10**24):
        raise InvalidNumber(
            f"delta = {value} is below the ledger's unit.", allowed="at least 1e-24"
        )
    return number


def _target(error: Wish) -> Target:
    if isinstance(error, OnAverage):
        return replace(_target(error.error), average=True)
    if isinstance(error, str) and error.strip().endswith("%"):
        return Target(
            positive("error", to_fraction("error", error.strip()[:-1])) / 100, relative=True
        )
    return Target(positive("error", error), relative=False)
