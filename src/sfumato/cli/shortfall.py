# SPDX-License-Identifier: Apache-2.0
"""Warns in a preview if the account cannot pay for the question."""

from fractions import Fraction

from sfumato.accounting.budget_gates import DELTA_INCREMENTS
from sfumato.cli.language import say
from sfumato.exact.rational import decimal_text
from sfumato.ledger.balance import delta_text
from sfumato.query.account import Account
from sfumato.query.cost import Cost


def shortfall(cost: Cost, budget: Account) -> str:
    """A line that says that too little is left in the account; empty if it can pay."""
    left = budget.standing.left
    is_pure = cost.epsilon != "unbounded" and Fraction(cost.epsilon) <= left.epsilon
    if (is_pure or 0 < Fraction(cost.rho) <= left.rho) and (
        Fraction(cost.delta) * DELTA_INCREMENTS <= left.delta
    ):
        return ""
    return (
        f"the account cannot pay for it: left are epsilon {decimal_text(left.epsilon)} or rho "
        f"{decimal_text(left.rho)}, and delta {delta_text(left.delta)} (what is stored stays free)"
    )


def say_shortfall(cost: Cost, budget: Account) -> None:
    """Prints a warning if the budget that is left on the account does not cover the cost of a
    question.
    """
    line = shortfall(cost, budget)
    if line:
        say(line)
