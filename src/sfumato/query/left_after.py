# SPDX-License-Identifier: Apache-2.0
"""What an account has left before and after a question, at both gates, as lines of text.

Previews of all kinds show these lines.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from sfumato.accounting.budget_gates import Charge, Gates
from sfumato.errors import LedgerError
from sfumato.ledger.balance import Balance, delta_text, increments_text

# The accounts that pay, as they are when a preview is shown.
Balances: TypeAlias = Callable[[], Sequence[Balance]]
CLOSES = (
    "it closes the pure gate for good: from then on no epsilon is added up, and only rho counts"
)


def left_now(balances: Balances | None, charge: Charge) -> list[str]:
    """Returns lines on the budget left before and after a charge, from current balances; [] after
    the session was closed.
    """
    with suppress(LedgerError):
        return left_lines(balances(), charge) if balances is not None else []
    return []


def left_lines(balances: Sequence[Balance], charge: Charge) -> list[str]:
    """Returns lines on the budget left before and after a charge.

    They include a warning if the charge closes the pure gate. ``balances`` are those of all
    accounts that pay; the smallest one counts at each gate.

    >>> from sfumato.accounting.budget_gates import Gates, charge_for
    >>> from sfumato.accounting.profile import Profile
    >>> from sfumato.privacy.budget import Budget
    >>> from fractions import Fraction
    >>> whole = Balance(Gates.of(Budget(1, "1e-6")))
    >>> for line in left_lines([whole], charge_for(Profile.pure(Fraction(1, 4)))):
    ...     print(line)
    left now    epsilon 1 (pure gate), rho 0.022931297129 (zCDP gate)
    left after  epsilon 0.75 (pure gate), too little rho (zCDP gate)
    """
    now = [(each.gates, each.taken) for each in balances]
    after = [(gates, taken + charge) for gates, taken in now]
    lines = [f"left now    {_left(now, charge)}", f"left after  {_left(after, charge)}"]
    was_open = all(taken.epsilon is not None for _, taken in now)
    if was_open and charge.epsilon is None:
        lines.append(CLOSES)
    return lines


def _left(accounts: Sequence[tuple[Gates, Charge]], charge: Charge) -> str:
    """What is left at each gate of accounts that all have to pay, given what each has taken; delta
    too, if it is charged.
    """
    pure: list[int | None] = []
    for gates, taken in accounts:
        pure.append(None if taken.epsilon is None else gates.epsilon - taken.epsilon)
    gate_texts = [_gate("epsilon", "pure gate", pure)]
    if all(gates.rho is not None for gates, _ in accounts):
        rho = [(gates.rho or 0) - taken.rho for gates, taken in accounts]
        gate_texts.append(_gate("rho", "zCDP gate", rho))
    if charge.delta:
        # both gates need it
        delta = min(gates.delta_events - taken.delta for gates, taken in accounts)
        gate_texts.append("too little delta" if delta < 0 else f"delta {delta_text(delta)}")
    return ", ".join(gate_texts)


def _gate(measure: str, gate: str, left: Sequence[int | None]) -> str:
    """What is left at one gate; None where it is closed."""
    amounts = [each for each in left if each is not None]
    if len(amounts) < len(left):
        return f"{gate} closed"
    least = min(amounts)
    if least < 0:
        return f"too little {measure} ({gate})"
    return f"{measure} {increments_text(least)} ({gate})"
