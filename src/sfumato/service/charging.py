# SPDX-License-Identifier: Apache-2.0
"""Asks what is charged, and says of a failure whether it was charged."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sfumato.accounting.budget_gates import INCREMENTS, NOTHING, Charge
from sfumato.errors import (
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    Failed,
    OuterFailed,
    SfumatoError,
)
from sfumato.ledger.account_path import Scope
from sfumato.ledger.account_status import Standing
from sfumato.privacy.event import Json
from sfumato.privacy.unit import AUTO
from sfumato.query.account import left_amounts
from sfumato.query.session import Session
from sfumato.service.ended import Ended
from sfumato.service.served import Served

T = TypeVar("T")
_LOG = logging.getLogger("sfumato.service")


@dataclass(frozen=True, slots=True)
class Account:
    """A ledger account of the caller in the service: its dataset, its path, and a session that
    charges it.
    """

    served: Served
    scope: Scope
    session: Session


def ask_charged(account: Account, ask: Callable[[], T], *, is_one_charge: bool) -> T:
    """Returns ``ask()``; raises its errors as ``Ended``, which says if the account was charged.

    The account's own numbers tell it. Where they changed, another question of the account may have
    changed them: then nobody can tell, unless the question is of one charge, which is taken or not.
    """

    def spent() -> tuple[Charge, Charge] | None:
        try:
            standing = account.served.standing(account.scope)
        except SfumatoError:
            return None
        return standing.spent, standing.reserved

    before = spent()
    try:
        return ask()
    except (EngineFailed, OuterFailed) as error:
        raise Ended(error, charged=True) from None
    except Cancelled as error:
        raise Ended(error, charged=error.paid) from None
    except Failed as error:
        raise Ended(error, charged=None) from None
    except BudgetExceeded:
        charged = False if is_one_charge or (before is not None and before == spent()) else None
        raise Ended(_too_dear(account), charged=charged) from None
    except SfumatoError as error:
        charged = False if is_one_charge or (before is not None and before == spent()) else None
        raise Ended(error, charged=charged) from None
    except Exception as error:  # noqa: BLE001 - its text could quote private data
        _LOG.error("an internal failure (%s)", type(error).__name__)
        raise Ended(Failed("An internal failure."), charged=None) from None


def learns_limits(account: Account) -> bool:
    """Whether a table has limits or clips that a question first learns from data, for a charge."""
    for table in account.session.dataset.tables.values():
        if table.unit is not None and any(
            getattr(table.unit, limit) is AUTO
            for limit in ("max_rows", "max_groups", "max_rows_total")
        ):
            return True
        if any(getattr(column, "clip", None) is AUTO for column in table.columns.values()):
            return True
    return False


def _too_dear(account: Account) -> BudgetExceeded:
    """The refusal in the words of the caller's account, which may not see those above it."""
    left = left_amounts(account.served.standing(account.scope).left)
    return BudgetExceeded(
        f"The account cannot pay: it has epsilon={left['epsilon']} or rho={left['rho']} left, "
        f"and delta={left['delta']}.",
        remedy="POST /v1/datasets/{dataset}/requests asks the owner for another limit.",
    )


def affordable(account: Account, charge: Charge) -> dict[str, Json]:
    """Returns JSON of the budget left to an account, and how many times it could pay ``charge``.

    The number of times is null for a free question.
    """
    standing = account.served.standing(account.scope)
    return {"left": left_amounts(standing.left), "times": _times(charge, standing)}


def _times(cost: Charge, standing: Standing) -> int | None:
    """How often an account could pay a cost, by the larger of its two gates; None if it is free."""
    if cost == NOTHING:
        return None
    left = standing.left
    by_gate = [int(left.rho * INCREMENTS // cost.rho)] if cost.rho else []
    if cost.epsilon:
        by_gate.append(int(left.epsilon * INCREMENTS // cost.epsilon))
    times = max(by_gate, default=0)
    return min(times, left.delta // cost.delta) if cost.delta else times
