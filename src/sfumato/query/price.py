# SPDX-License-Identifier: Apache-2.0
"""The price of a question: a cost, or a wanted error with a limit on its cost.

``Session`` reads its keywords (``epsilon=``, ``rho=``, ``error=``, ...) into a ``Price``.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidNumber, WrongUse, shown
from sfumato.exact.rational import Number, positive, to_fraction

_LEAST, _MOST = Fraction(1, 10**12), Fraction(10**6)


@dataclass(frozen=True, slots=True)
class OnAverage:
    """A wanted error on average over the cells of each column: ``error=OnAverage("5%")``.

    It bounds the root of the mean squared error, which is never below the mean absolute error. It
    costs about a third to a half of a bound on the 95% half-width of every cell.
    """

    error: Number


Wish: TypeAlias = Number | OnAverage


@dataclass(frozen=True, slots=True)
class Target:
    """A requested accuracy: an absolute error, or if ``relative`` a share of a public number.

    It bounds the 95% half-width of every cell, or if ``average`` the root of the mean squared error
    over the cells of a column.
    """

    amount: Fraction
    relative: bool
    average: bool = False


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a question: exactly one of ``epsilon``, ``rho`` and ``target``.

    ``most`` is the most epsilon that a target may cost. ``delta`` may be spent on showing groups
    that are not public. If ``interval`` is set, the price also pays for the intervals of quantiles.
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    target: Target | None = None
    most: Fraction | None = None
    delta: Fraction | None = None
    interval: bool = False

    def scaled(self, share: Fraction) -> "Price":
        """Returns the price with its epsilon or rho multiplied by ``share``, for one of several
        questions; the delta stays the same.
        """
        if share != 1 and self.target is not None:
            raise WrongUse(
                "error= of a question that needs another one answered first "
                "(a sub-query, or a limit or a clip that is sf.AUTO).",
                remedy="Ask with epsilon= or rho=; it is shared among them.",
            )
        epsilon = None if self.epsilon is None else self.epsilon * share
        rho = None if self.rho is None else self.rho * share
        return replace(self, epsilon=epsilon, rho=rho)

    def buying(self, *, interval: bool) -> "Price":
        """Returns the price with ``interval`` set, so that a part of the cost buys intervals of
        quantiles.

        Raises:
            WrongUse: ``interval`` is not a Boolean, or is true beside a wanted error.
        """
        if not isinstance(interval, bool) or (interval and self.target is not None):
            raise WrongUse(
                f"interval={shown(interval)}{'' if self.target is None else ' with error='}.",
                allowed="True or False, beside epsilon= or rho=",
            )
        return replace(self, interval=interval)

    def without_extras(self) -> "Price":
        """The price without delta and intervals, for a helper question such as a sub-query."""
        return replace(self, delta=None, interval=False)

    def shared(self, share: Fraction) -> "Price":
        """Returns a share of the price, rounded down to a multiple of the ledger's unit.

        Guarantees:
            charges of shares never add up to more than the price

        Raises:
            InvalidNumber: nothing is left.

        >>> Price(epsilon=Fraction(1, 10)).shared(Fraction(1, 3)).epsilon
        Fraction(33333333333, 1000000000000)
        """
        if share == 1:
            return self
        return self.scaled(share)._in_multiples_of(
            _LEAST, "The cost, shared among the parts of the question,", "a larger cost"
        )

    def in_whole_tenths(self) -> "Price":
        """Returns the price rounded down so that a tenth of it is a multiple of the ledger's
        smallest unit.

        Charges of such tenths never add up to more than the price.

        Raises:
            InvalidNumber: nothing is left.

        >>> Price(epsilon=Fraction(1, 3)).in_whole_tenths().epsilon
        Fraction(33333333333, 100000000000)
        """
        return self._in_multiples_of(
            10 * _LEAST,
            "The share of the cost for an sf.AUTO clip",
            "at least 1e-10 for a question that learns one",
        )

    def _in_multiples_of(self, unit: Fraction, name: str, allowed: str) -> "Price":
        """The price rounded down to a multiple of a unit.

        Raises:
            InvalidNumber: the result is 0.
        """
        epsilon = None if self.epsilon is None else self.epsilon // unit * unit
        rho = None if self.rho is None else self.rho // unit * unit
        if 0 in (epsilon, rho):
            raise InvalidNumber(f"{name} is below the ledger's unit, 1e-12.", allowed=allowed)
        return replace(self, epsilon=epsilon, rho=rho)


def price(
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    error: Wish | None = None,
    max_epsilon: Number | None = None,
) -> Price:
    """Returns the price that the keyword arguments of ``query`` and ``preview`` state.

    Raises:
        WrongUse: there is not exactly one of epsilon, rho and error, or error has no max_epsilon.
        InvalidNumber: a cost is not a number in [1e-12, 10^6].

    >>> price(epsilon="0.1").epsilon
    Fraction(1, 10)
    """
    if (epsilon, rho, error) == (None, None, None) and delta is not None:
        raise WrongUse(
            "A delta alone is no cost.", remedy="delta= goes with epsilon= (or, of a query, rho=)."
        )
    if (epsilon, rho, error).count(None) != 2:
        raise WrongUse(
            "A question needs exactly one of epsilon=, rho= and error=.",
            remedy="epsilon=0.1 buys pure differential privacy, rho=0.01 zCDP; "
            "error=100, max_epsilon=0.5 asks for an error. In the shell: --epsilon 0.1.",
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


def cost_alone(
    *, epsilon: Number | None = None, rho: Number | None = None, delta: Number | None = None
) -> Price:
    """Returns the price that the keyword arguments of a task state, if it has no wanted error: an
    epsilon or a rho.

    Raises:
        WrongUse: there is not exactly one of epsilon and rho.
        InvalidNumber: as in ``price``.
    """
    if (epsilon is None) == (rho is None):
        raise WrongUse(
            "A cost needs exactly one of epsilon= and rho=.",
            remedy="epsilon=0.1 buys pure differential privacy, rho=0.01 zCDP. "
            "In the shell: --epsilon 0.1.",
        )
    return price(epsilon=epsilon, rho=rho, delta=delta)


def _cost(name: str, value: Number) -> Fraction:
    """A cost as a fraction, checked against its range."""
    number = positive(name, value, at_most=_MOST)
    if number < _LEAST:
        raise InvalidNumber(
            f"{name} = {value} is below the ledger's unit.", allowed="at least 1e-12"
        )
    return number


def _delta(value: Number) -> Fraction:
    """A delta as a fraction, checked against its range."""
    number = positive("delta", value, at_most=Fraction(1, 2))
    if number < Fraction(1, 10**24):
        raise InvalidNumber(
            f"delta = {value} is below the ledger's unit.", allowed="at least 1e-24"
        )
    return number


def _target(error: Wish) -> Target:
    """Reads ``error=``: a number, a percentage, or either of them on average."""
    if isinstance(error, OnAverage):
        return replace(_target(error.error), average=True)
    if isinstance(error, str) and error.strip().endswith("%"):
        percent = positive("error", to_fraction("error", error.strip()[:-1]))
        return Target(percent / 100, relative=True)
    return Target(positive("error", error), relative=False)
