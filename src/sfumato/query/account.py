# SPDX-License-Identifier: Apache-2.0
"""The budget of an account as users see it: its limit, what is spent, and what is left.

``Session.budget`` returns an ``Account``; ``sfumato budget`` prints it. The numbers come from the
ledger, which alone decides whether a charge is admitted.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.budget_gates import NOTHING, Charge, Left
from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import Balance, delta_text, increments_text
from sfumato.ledger.planned_epsilon import planned_epsilon, planned_text
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.show.render import html_table


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of a dataset as an asker sees it: its limit, what is spent, and what is left.

    Every number is exact. ``left`` is the largest epsilon that one more pure question of the asker
    may cost, ``left_rho`` the largest rho of one more Gaussian question. Both respect the limits of
    the dataset, the purpose and the analyst. ``standing`` is the balance of the analyst's own
    account.
    """

    limit: Budget
    balance: Balance
    standing: Standing

    @property
    def spent(self) -> str:
        """The sum of the epsilons of all charges; "unbounded" once a charge has bought Gaussian
        noise.
        """
        return increments_text(self.balance.spent.epsilon)

    @property
    def spent_rho(self) -> str:
        """The sum of the zCDP costs (rho) of all charges."""
        return increments_text(self.balance.spent.rho)

    @property
    def spent_delta(self) -> str:
        """The sum of the deltas of all charges; half of the budget's delta is for them."""
        return delta_text(self.balance.spent.delta)

    @property
    def planned(self) -> Fraction | None:
        """The epsilon of all charges together at the budget's delta, by composition of their rhos
        as if they were one plan fixed in advance.

        Rounded up. None on an account with a pure epsilon.
        """
        return planned_epsilon(self.balance.spent, self.limit.delta)

    @property
    def reserved(self) -> str:
        """The epsilon that is reserved for charges whose answers are not stored yet."""
        return increments_text(self.balance.reserved.epsilon)

    @property
    def left(self) -> Fraction:
        """The largest epsilon that one more pure question of the asker may cost."""
        return self.standing.left.epsilon

    @property
    def left_rho(self) -> Fraction:
        """The largest rho of one more Gaussian question of the asker; 0 on a pure account."""
        return self.standing.left.rho

    def to_json(self) -> dict[str, Json]:
        """The account as ``sfumato budget --format json`` prints it."""
        rho_limit = self.balance.gates.rho
        return {
            "limit": _limit_to_json(self.limit),
            "spent": amounts(self.balance.spent),
            "planned": None if self.planned is None else decimal_text(self.planned),
            "reserved": amounts(self.balance.reserved),
            "own": {
                "account": self.standing.scope.id,
                "spent": amounts(self.standing.spent),
                "limit": _limit_to_json(self.standing.limit),
            },
            "left": left_amounts(self.standing.left),
            "gates": {
                "pure": increments_text(self.balance.gates.epsilon),
                "zcdp": None if rho_limit is None else increments_text(rho_limit),
                "delta": delta_text(self.balance.gates.delta_events),
            },
        }

    def __repr__(self) -> str:
        gates = self.balance.gates
        spent = []
        if self.balance.spent.epsilon is not None:
            spent.append(f"epsilon {self.spent} of {increments_text(gates.epsilon)} (pure gate)")
        if gates.rho is not None:
            spent.append(f"rho {self.spent_rho} of {increments_text(gates.rho)} (zCDP gate)")
        if self.balance.spent.delta:
            most = delta_text(gates.delta_events)
            spent.append(f"delta {self.spent_delta} of {most} for questions (both gates)")
        if self.balance.spent.epsilon is None:
            planned = planned_text(self.balance.spent, self.limit.delta)
            spent += [planned] if planned else []
            spent.append(
                "no epsilon is added up since Gaussian noise was bought: the zCDP gate alone counts"
            )
        lines = [f"limit     {self.limit}", f"spent     {spent[0]}"]
        lines += [f"          {line}" for line in spent[1:]]
        if self.balance.reserved != NOTHING:
            lines.append(f"reserved  {reserved_text(self.balance.reserved)}")
        lines += self._own_lines()
        lines.append(f"left      one question of epsilon up to {decimal_text(self.left)}")
        if self.left_rho:
            lines[-1] += f", or of rho up to {decimal_text(self.left_rho)}"
        if self.balance.spent.delta:
            lines[-1] += f"; of delta up to {delta_text(self.standing.left.delta)}"
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        # the name of a line, or spaces below it, fill ten signs
        rows = [[line[:10].strip(), line[10:]] for line in repr(self).splitlines()]
        return html_table(["", "account"], rows)

    def _own_lines(self) -> list[str]:
        """One line on the analyst's own account; none if it has no limit."""
        own = self.standing
        if own.limit is None:
            return []
        paid = f"epsilon {increments_text(own.spent.epsilon)}"
        if own.spent.epsilon is None:
            paid = f"rho {increments_text(own.spent.rho)}"
        lines = [f"own       {own.scope.id}: {paid} of {own.limit}"]
        if own.reserved != NOTHING:
            lines.append(f"          reserved {reserved_text(own.reserved)}")
        return lines


def amounts(charge: Charge) -> dict[str, Json]:
    """Returns the epsilon, rho and delta of a charge as exact decimals in texts.

    >>> amounts(Charge(5 * 10**11, 125 * 10**9, 10**18))
    {'epsilon': '0.5', 'rho': '0.125', 'delta': '0.000001'}
    """
    return {
        "epsilon": increments_text(charge.epsilon),
        "rho": increments_text(charge.rho),
        "delta": delta_text(charge.delta),
    }


def amount_text(charge: Charge, delta: Fraction = Fraction(0)) -> str:
    """Returns a charge in words: its epsilon, or its rho if it has no finite epsilon; and its delta
    if any.

    If ``delta``, that of the budget, is above 0, a rho is followed by the epsilon into which it
    converts at this delta, as one plan that was fixed in advance.

    >>> amount_text(Charge(None, 125 * 10**9, 10**18))
    'rho 0.125, delta 0.000001'
    >>> amount_text(Charge(None, 125 * 10**9, 0), Fraction("1e-6"))
    'rho 0.125 (epsilon 2.4905 at delta 0.000001 if fixed in advance)'
    """
    amount = f"epsilon {increments_text(charge.epsilon)}"
    if charge.epsilon is None:
        amount = f"rho {increments_text(charge.rho)}"
    if charge.delta:
        amount += f", delta {delta_text(charge.delta)}"
    planned = planned_text(charge, delta)
    return f"{amount} ({planned})" if planned else amount


def reserved_text(charge: Charge) -> str:
    """Returns a sentence with the epsilon and rho that are reserved for charges in progress.

    >>> reserved_text(Charge(10**12, 5 * 10**11, 0))
    'epsilon 1, rho 0.5: for questions and runs that have not ended'
    """
    amounts = [f"rho {increments_text(charge.rho)}"]
    if charge.epsilon is not None:
        amounts.insert(0, f"epsilon {increments_text(charge.epsilon)}")
    if charge.delta:
        amounts.append(f"delta {delta_text(charge.delta)}")
    return f"{', '.join(amounts)}: for questions and runs that have not ended"


def left_amounts(left: Left) -> dict[str, Json]:
    """Returns the largest epsilon, rho and delta that one more question may cost, as exact
    decimals.
    """
    return {
        "epsilon": decimal_text(left.epsilon),
        "rho": decimal_text(left.rho),
        "delta": delta_text(left.delta),
    }


def _limit_to_json(limit: Budget | None) -> Json:
    """The limit of an account as JSON; null if it has none."""
    if limit is None:
        return None
    return {"epsilon": decimal_text(limit.epsilon), "delta": decimal_text(limit.delta)}
