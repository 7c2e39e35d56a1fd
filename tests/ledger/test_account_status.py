# SPDX-License-Identifier: Apache-2.0
"""How an account stands: the least that any account of its path leaves."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.ledger.account_status import limit_of
from sfumato.privacy import Budget
from tests.contracts.charges import concentrated, opened, paid, pure


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return opened(tmp_path / "l.db", 3, "1e-6")


@pytest.mark.parametrize(
    "limits", [(), (("p", "", "0.5"),), (("p", "a", "0.2"),), (("p", "", "0.1"), ("p", "a", "2"))]
)
def test_what_is_left_on_a_path_is_exactly_what_is_admitted(ledger: Ledger, limits) -> None:
    for purpose, analyst, epsilon in limits:
        ledger.allocate("d", Budget(epsilon, "1e-7"), purpose=purpose, analyst=analyst)
    for number in range(2):
        paid(ledger, replace(concentrated("0.0001", f"q{number}"), analyst="a", purpose="p"))
    left = ledger.standing("d", "p", "a").left
    ask = replace(pure(1, "r"), analyst="a", purpose="p")
    for exact, more in (
        (concentrated(left.rho), Fraction(1, 10**12)),
        (pure(left.epsilon), Fraction(1, 10**12)),
    ):
        size = left.rho if exact.event.distance.norm.name == "L2" else left.epsilon
        beyond = type(size)(size + more)
        event = (concentrated if exact.event.distance.norm.name == "L2" else pure)(beyond).event
        with pytest.raises(BudgetExceeded):
            ledger.reserve(replace(ask, event=event))
        ledger.void(ledger.reserve(replace(ask, event=exact.event)))


def test_an_account_that_nobody_has_used_stands_as_its_parent_lets_it(ledger: Ledger) -> None:
    standing = ledger.standing("d", "p", "a")
    assert (standing.limit, standing.spent.epsilon, standing.frozen) == (None, 0, "")
    assert standing.left == ledger.standing("d").left
    assert standing.lifetime is None


def test_every_account_is_listed_parents_first(ledger: Ledger) -> None:
    paid(ledger, pure("0.1"))
    ledger.allocate("d", Budget("0.5"), purpose="p")
    assert [each.scope.id for each in ledger.accounts()] == [
        "d",
        "d/p",
        "d/unstated",
        "d/unstated/owner",
    ]
    assert ledger.accounts()[0] == ledger.standing("d")


def test_a_dataset_that_nobody_opened_does_not_stand(ledger: Ledger) -> None:
    with pytest.raises(LedgerUnavailable, match="no account"):
        ledger.standing("e", "p")


def test_a_limit_is_read_as_it_was_written() -> None:
    assert limit_of('{"epsilon":"1/3","delta":"1/1000000"}') == Budget(Fraction(1, 3), "1e-6")
    assert limit_of("") is None
