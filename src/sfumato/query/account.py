# SPDX-License-Identifier: Apache-2.0
"""What an account allows, has paid and has left, to show."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rational import decimal_text
from sfumato.ledger.balance import Balance, units_text
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Account:
    """What the budget allows, has paid and has left; every number exact.

    ``left`` is the largest epsilon that one more pure question may cost, ``left_rho`` the
    largest rho of a Gaussian one; both gates are considered.
    """

    limit: Budget
    balance: Balance

    @property
    def spent(self) -> str:
        """The sum of the pure losses ("unbounded" once Gaussian noise was bought)."""
        return units_text(self.balance.spent.epsilon)

    @property
    def spent_rho(self) -> str:
        """The sum of the zCDP costs."""
        return units_text(self.balance.spent.rho)

    @property
    def reserved(self) -> str:
        """What questions that are under way have taken."""
        return units_text(self.balance.reserved.epsilon)

    @property
    def left(self) -> Fraction:
        """The largest epsilon of one more pure question."""
        return self.balance.left.epsilon

    @property
    def left_rho(self) -> Fraction:
        """The largest rho of one more Gaussian question; 0 on a pure account."""
        return self.balance.left.rho

    def to_json(self) -> dict[str, Json]:
        """As ``sfumato budget --format json`` prints it."""
        rho_limit = self.balance.gates.rho
        return {
            "limit": {"epsilon": decimal_text(self.limit.epsilon), "delta": decimal_text(self.limit.delta)},
            "spent": {"epsilon": self.spent, "rho": self.spent_rho},
            "reserved": {"epsilon": self.reserved, "rho": units_text(self.balance.reserved.rho)},
            "left": {"epsilon": decimal_text(self.left), "rho": decimal_text(self.left_rho)},
            "gates": {
                "pure": units_text(self.balance.gates.epsilon),
                "zcdp": None if rho_limit is None else units_text(rho_limit),
            },
        }

    def __repr__(self) -> str:
        gates = self.balance.gates
        spent = []
        if self.balance.spent.epsilon is not None:
            spent.append(f"epsilon {self.spent} of {units_text(gates.epsilon)} (pure gate)")
        if gates.rho is not None:
            spent.append(f"rho {self.spent_rho} of {units_text(gates.rho)} (zCDP gate)")
        if self.balance.spent.epsilon is None:
            spent.append("no epsilon is added up since Gaussian noise was bought: the zCDP gate alone counts")
        lines = [f"limit     {self.limit}", f"spent     {spent[0]}", *(f"          {line}" for line in spent[1:])]
        lines.append(f"left      one question of epsilon up to {decimal_text(self.left)}")
        if self.left_rho:
            lines[-1] += f", or of rho up to {decimal_text(self.left_rho)}"
        return "\n".join(lines)
