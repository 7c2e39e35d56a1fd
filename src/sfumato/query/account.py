# SPDX-License-Identifier: Apache-2.0
"""What an account allows, has paid and has left, to show."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import Balance, units_text
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json


@dataclass(frozen=True, slots=True)
class Account:
    """What the dataset's budget allows and has paid, and what it leaves to the asker; every number exact.

    ``left`` is the largest epsilon that one more pure question of the asker may cost, ``left_rho``
    the largest rho of a Gaussian one: what the dataset, the purpose and the analyst all admit.
    ``standing`` is the analyst's own account.
    """

    limit: Budget
    balance: Balance
    standing: Standing

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
        """The largest epsilon of one more pure question of the asker."""
        return self.standing.left.epsilon

    @property
    def left_rho(self) -> Fraction:
        """The largest rho of one more Gaussian question of the asker; 0 on a pure account."""
        return self.standing.left.rho

    def to_json(self) -> dict[str, Json]:
        """As ``sfumato budget --format json`` prints it."""
        rho_limit, own = self.balance.gates.rho, self.standing.limit
        return {
            "limit": {
                "epsilon": decimal_text(self.limit.epsilon),
                "delta": decimal_text(self.limit.delta),
            },
            "spent": {"epsilon": self.spent, "rho": self.spent_rho},
            "reserved": {"epsilon": self.reserved, "rho": units_text(self.balance.reserved.rho)},
            "own": {
                "account": self.standing.scope.id,
                "spent": {
                    "epsilon": units_text(self.standing.spent.epsilon),
                    "rho": units_text(self.standing.spent.rho),
                },
                "limit": None
                if own is None
                else {"epsilon": decimal_text(own.epsilon), "delta": decimal_text(own.delta)},
            },
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
            spent.append(
                "no epsilon is added up since Gaussian noise was bought: the zCDP gate alone counts"
            )
        lines = [
            f"limit     {self.limit}",
            f"spent     {spent[0]}",
            *(f"          {line}" for line in spent[1:]),
        ]
        lines += self._own_lines()
        lines.append(f"left      one question of epsilon up to {decimal_text(self.left)}")
        if self.left_rho:
            lines[-1] += f", or of rho up to {decimal_text(self.left_rho)}"
        return "\n".join(lines)

    def _own_lines(self) -> list[str]:
        """The analyst's own account, where it has a limit."""
        own = self.standing
        if own.limit is None:
            return []
        paid = (
            f"rho {units_text(own.spent.rho)}"
            if own.spent.epsilon is None
            else f"epsilon {units_text(own.spent.epsilon)}"
        )
        return [f"own       {own.scope.id}: {paid} of {own.limit}"]
