# SPDX-License-Identifier: Apache-2.0
"""The balance of an account: its caps, what is spent and what is reserved, in exact integers.

``account_transaction`` computes with it. It also has the stored strings of charges and caps.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from sfumato.accounting.budget_gates import DELTA_INCREMENTS, NOTHING, Charge, Gates, Left
from sfumato.errors import BudgetExceeded
from sfumato.exact.rational import decimal_text
from sfumato.privacy.event import Json

T = TypeVar("T")

_PURE = "the account is pure: it was opened without delta."
_MOST_KEPT = 4096
_CHARGES: dict[str, Charge] = {}


@dataclass(frozen=True, slots=True)
class Held:
    """The sum of an account's reserved charges, from which each charge can be subtracted exactly.

    A charge without a finite pure loss makes the sum infinite until it is subtracted; ``unbounded``
    counts such charges.

    Guarantees:
        what is taken out leaves the sum of the others
    """

    epsilon: int = 0
    rho: int = 0
    delta: int = 0
    unbounded: int = 0

    def plus(self, charge: Charge) -> "Held":
        """Returns the sum with a charge added."""
        return self._moved(charge, 1)

    def minus(self, charge: Charge) -> "Held":
        """Returns the sum with a charge, which was added before, taken out again."""
        return self._moved(charge, -1)

    @property
    def charge(self) -> Charge:
        """The reserved sum as a ``Charge``."""
        return Charge(None if self.unbounded else self.epsilon, self.rho, self.delta)

    def _moved(self, charge: Charge, sign: int) -> "Held":
        epsilon, unbounded = (0, sign) if charge.epsilon is None else (sign * charge.epsilon, 0)
        moved = Held(
            self.epsilon + epsilon,
            self.rho + sign * charge.rho,
            self.delta + sign * charge.delta,
            self.unbounded + unbounded,
        )
        if min(moved.epsilon, moved.rho, moved.delta, moved.unbounded) < 0:
            raise ValueError("less than nothing is held")
        return moved


_HELD: dict[str, Held] = {}


@dataclass(frozen=True, slots=True)
class Balance:
    """The budget state of an account: what is spent and reserved, and the caps (gates) on both.

    Guarantees:
        a charge beyond the gates is refused naming what is left
        a reserved charge counts as spent

    >>> from sfumato.privacy.budget import Budget
    >>> Balance(Gates.of(Budget(1))).left.epsilon
    Fraction(1, 1)
    """

    gates: Gates
    spent: Charge = NOTHING
    reserved: Charge = NOTHING

    @property
    def taken(self) -> Charge:
        """The sum of what the account has spent and reserved."""
        return self.spent + self.reserved

    @property
    def left(self) -> Left:
        """The largest cost that the caps of the account admit for its next charge."""
        return self.gates.left(self.taken)

    def require(self, charge: Charge) -> None:
        """Raises BudgetExceeded if a charge, added to what is spent and reserved, exceeds the
        caps.
        """
        if self.gates.admits(self.taken + charge):
            return
        if charge.delta > self.left.delta:
            raise _delta_exceeded(charge.delta, self.left.delta, is_pure=self.gates.rho is None)
        cost = f"rho {increments_text(charge.rho)}"
        if charge.epsilon is not None:
            cost = f"epsilon {increments_text(charge.epsilon)}"
        options = self._options()
        if charge.epsilon is None and self.gates.rho is None:
            raise BudgetExceeded(
                f"The question costs {cost}, and {_PURE}",
                allowed=options,
                remedy="Ask with epsilon=: discrete Laplace noise is all that a pure account can "
                "pay for.",
            )
        if not options:
            raise BudgetExceeded(
                f"The question costs {cost}; the account has nothing left.",
                allowed="",
                remedy="Answers already stored stay free. Only the owner can allow more.",
            )
        raise BudgetExceeded(
            f"The question costs {cost}; the account has {options} left.",
            allowed=f"at most {options}",
            remedy="Ask with a smaller cost (more noise), or read the answers already stored, "
            "which are free.",
        )

    def _options(self) -> str:
        """The largest admissible costs of one more question; empty if there is none."""
        left = {"epsilon": self.left.epsilon, "rho": self.left.rho}
        return " or ".join(f"{name}={decimal_text(most)}" for name, most in left.items() if most)


def _delta_exceeded(cost: int, remaining: int, *, is_pure: bool) -> BudgetExceeded:
    costs = f"The question costs delta {delta_text(cost)}"
    few = delta_text(remaining)
    if is_pure:
        return BudgetExceeded(
            f"{costs}, and {_PURE}",
            allowed="questions with epsilon= alone, to declared groups",
            remedy="Declare the values of what you group by; of models, NaiveBayes and "
            "DecisionTree need no delta. Only the owner can open an account with delta.",
        )
    return BudgetExceeded(
        f"{costs}; the account has delta={few} left for questions.",
        allowed=f"at most delta={few}: half of an account's delta is for questions, half for "
        "converting rho",
        remedy="Ask with a smaller delta, or read the answers already stored, which are free.",
    )


def delta_text(increments: int) -> str:
    """Returns the exact decimal of a delta that the ledger stores as an integer multiple of
    1e-24.
    """
    return decimal_text(Fraction(increments, DELTA_INCREMENTS))


def increments_text(increments: int | None) -> str:
    """Returns the exact decimal of an epsilon or rho stored as a multiple of 1e-12.

    None gives 'unbounded'.
    """
    return "unbounded" if increments is None else decimal_text(Fraction(increments, 10**12))


def charge_to_json(charge: Charge) -> dict[str, Json]:
    """Returns the JSON in which the ledger stores a charge: decimal strings of its integers.

    ``orders`` is in it only for a charge whose rho holds at single Renyi orders.
    """
    form: dict[str, Json] = {
        "epsilon": None if charge.epsilon is None else str(charge.epsilon),
        "rho": str(charge.rho),
        "delta": str(charge.delta),
    }
    if charge.orders is not None:
        form["orders"] = [str(order) for order in sorted(charge.orders)]
    return form


def charge_from_json(form: Mapping[str, Json]) -> Charge:
    """Reads a charge from the JSON that the ledger stores."""
    epsilon = form["epsilon"]
    return Charge(
        None if epsilon is None else _increments(epsilon),
        _increments(form["rho"]),
        _increments(form["delta"]),
        _orders(form.get("orders")),
    )


def charge_text(charge: Charge) -> str:
    """Returns the stored string of a charge: the canonical JSON of ``charge_to_json``."""
    epsilon = "null" if charge.epsilon is None else f'"{charge.epsilon}"'
    orders = ""
    if charge.orders is not None:
        listed = ",".join(f'"{order}"' for order in sorted(charge.orders))
        orders = f'"orders":[{listed}],'
    text = f'{{"delta":"{charge.delta}","epsilon":{epsilon},{orders}"rho":"{charge.rho}"}}'
    if "-" not in text:
        _keep(_CHARGES, text, charge)
    return text


def charge_from_text(text: str) -> Charge:
    """Parses the stored string of a charge."""
    return _CHARGES.get(text) or _keep(_CHARGES, text, charge_from_json(json.loads(text)))


def held_text(held: Held) -> str:
    """Returns the string that the ledger stores for an account's reserved sum: canonical JSON."""
    text = (
        f'{{"delta":"{held.delta}","epsilon":"{held.epsilon}",'
        f'"rho":"{held.rho}","unbounded":"{held.unbounded}"}}'
    )
    if "-" not in text:
        _keep(_HELD, text, held)
    return text


def held_from_text(text: str) -> Held:
    """Reads the sum of an account's reserved charges from its stored string."""
    if held := _HELD.get(text):
        return held
    form = json.loads(text)
    names = ("epsilon", "rho", "delta", "unbounded")
    return _keep(_HELD, text, Held(*(_increments(form[name]) for name in names)))


def gates_to_json(gates: Gates) -> dict[str, Json]:
    """Returns the JSON that the ledger stores for an account's caps (gates)."""
    return {
        "epsilon": str(gates.epsilon),
        "rho": None if gates.rho is None else str(gates.rho),
        "delta_events": str(gates.delta_events),
        "order": None if gates.order is None else str(gates.order),
    }


def gates_from_json(form: Mapping[str, Json]) -> Gates:
    """Parses an account's stored caps. They are never recomputed, so that they cannot drift."""
    rho, order = form["rho"], form["order"]
    return Gates(
        _increments(form["epsilon"]),
        None if rho is None else _increments(rho),
        _increments(form["delta_events"]),
        None if order is None else Fraction(str(order)),
    )


@lru_cache(maxsize=1024)
def gates_from_text(text: str) -> Gates:
    """Parses the string that the ledger stores for an account's caps (gates); cached."""
    return gates_from_json(json.loads(text))


def _keep(cache: dict[str, T], text: str, value: T) -> T:
    """Adds the parsed value of a stored string to a cache, and returns the value."""
    if len(cache) >= _MOST_KEPT:
        cache.clear()
    cache[text] = value
    return value


def _orders(form: Json) -> frozenset[Fraction] | None:
    """Parses the stored orders of a charge."""
    if form is None:
        return None
    if not isinstance(form, list):
        raise ValueError("not stored orders")
    return frozenset(Fraction(str(order)) for order in form)


def _increments(text: Json) -> int:
    """Parses a stored number: a string of a nonnegative integer.

    Raises:
        ValueError: it is not.
    """
    number = int(str(text))
    if number < 0 or not isinstance(text, str):
        raise ValueError("not a stored number")
    return number


def balance_admits(gates: str, spent: str, held: str) -> bool:
    """Whether the spent and reserved sums of an account, all as stored strings, are within its
    caps.
    """
    total = charge_from_text(spent) + held_from_text(held).charge
    return gates_from_text(gates).admits(total)
