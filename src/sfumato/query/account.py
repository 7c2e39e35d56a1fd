# SPDX-License-Identifier: Apache-2.0
"""The budget of an account as users see it: its limit, what is spent, and what is left."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import Balance, increments_text
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.query.render import html_table


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of a dataset: its limit, what is spent, and what is left to one asker.

    Every number is exact. ``left`` is the largest epsilon of one more pure question of the asker,
    ``left_rho`` the largest rho of one more Gaussian question. Both respect the limits of the
    dataset, the purpose and the analyst. ``standing`` is the analyst's own account.
    """

    limit: Budget
    balance: Balance
    standing: Standing

    @property
    def spent(self) -> str:
        """The sum of all epsilons; "unbounded" after the first Gaussian noise."""
        return increments_text(self.balance.spent.epsilon)

    @property
    def spent_rho(self) -> str:
        """The sum of all zCDP costs (rho)."""
        return increments_text(self.balance.spent.rho)

    @property
    def reserved(self) -> str:
        """The epsilon that is reserved for questions in progress."""
        return increments_text(self.balance.reserved.epsilon)

    @property
    def left(self) -> Fraction:
        """The largest epsilon of one more pure question of the asker."""
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
            "spent": {"epsilon": self.spent, "rho": self.spent_rho},
            "reserved": {
                "epsilon": self.reserved,
                "rho": increments_text(self.balance.reserved.rho),
            },
            "own": {
                "account": self.standing.scope.id,
                "spent": {
                    "epsilon": increments_text(self.standing.spent.epsilon),
                    "rho": increments_text(self.standing.spent.rho),
                },
                "limit": _limit_to_json(self.standing.limit),
            },
            "left": {"epsilon": decimal_text(self.left), "rho": decimal_text(self.left_rho)},
            "gates": {
                "pure": increments_text(self.balance.gates.epsilon),
                "zcdp": None if rho_limit is None else increments_text(rho_limit),
            },
        }

    def __repr__(self) -> str:
        gates = self.balance.gates
        spent = []
        if self.balance.spent.epsilon is not None:
            spent.append(f"epsilon {self.spent} of {increments_text(gates.epsilon)} (pure gate)")
        if gates.rho is not None:
            spent.append(f"rho {self.spent_rho} of {increments_text(gates.rho)} (zCDP gate)")
        if self.balance.spent.epsilon is None:
            spent.append(
                "no epsilon is added up since Gaussian noise was bought: the zCDP gate alone counts"
            )
        lines = [f"limit     {self.limit}", f"spent     {spent[0]}"]
        lines += [f"          {line}" for line in spent[1:]]
        lines += self._own_lines()
        lines.append(f"left      one question of epsilon up to {decimal_text(self.left)}")
        if self.left_rho:
            lines[-1] += f", or of rho up to {decimal_text(self.left_rho)}"
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
        return [f"own       {own.scope.id}: {paid} of {own.limit}"]


def _limit_to_json(limit: Budget | None) -> Json:
    """The limit of an account as JSON; null if it has none."""
    if limit is None:
        return None
    return {"epsilon": decimal_text(limit.epsilon), "delta": decimal_text(limit.delta)}
