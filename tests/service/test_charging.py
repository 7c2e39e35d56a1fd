# SPDX-License-Identifier: Apache-2.0
"""Of a failure it is said whether it was charged; what is learnt first is a charge of its own."""

from pathlib import Path

import pytest

from sfumato.accounting.budget_gates import NOTHING
from sfumato.errors import BudgetExceeded, Cancelled, EngineFailed, Failed, WrongUse
from sfumato.ledger.account_path import Scope
from sfumato.service.charging import Account, affordable, ask_charged, learns_limits
from sfumato.service.ended import Ended
from tests.contracts.clinic import COUNT, TOML, Clinic


def account_of(clinic: Clinic) -> Account:
    served, scope = clinic.service.datasets.find("clinic"), Scope("clinic", "study", "ann")
    return Account(served, scope, served.session_of(scope))


@pytest.mark.parametrize(
    ("error", "is_charged"),
    [
        (EngineFailed(), True),
        (Cancelled(paid=True), True),
        (Cancelled(paid=False), False),
        (WrongUse("x"), False),
        (BudgetExceeded("of the accounts above: 7"), False),
        (Failed("x"), None),
        (ZeroDivisionError("secret 7"), None),
    ],
)
def test_a_failure_says_whether_it_was_charged(
    tmp_path: Path, error: Exception, is_charged: bool | None
) -> None:
    def ask() -> None:
        raise error

    with Clinic(tmp_path) as clinic:
        for is_one_charge in (True, False):
            with pytest.raises(Ended) as ended:
                ask_charged(account_of(clinic), ask, is_one_charge=is_one_charge)
            assert ended.value.charged is is_charged
            assert "7" not in ended.value.error.problem


def test_of_several_charges_some_may_have_been_taken(tmp_path: Path) -> None:
    with Clinic(tmp_path) as clinic:
        account = account_of(clinic)

        def ask() -> None:
            account.session.query(COUNT, epsilon="0.1")
            raise WrongUse("x")

        with pytest.raises(Ended) as ended:
            ask_charged(account, ask, is_one_charge=False)
        assert ended.value.charged is None


def test_a_limit_that_is_learnt_is_a_charge_of_its_own(tmp_path: Path) -> None:
    for number, (old, new) in enumerate(
        [("", ""), ("max_rows_total = 1", 'max_rows = "auto"'), ("upper = 99", 'upper = 99, clip = "auto"')]
    ):  # fmt: skip
        with Clinic(tmp_path / str(number), TOML.replace(old, new) if old else TOML) as clinic:
            assert learns_limits(account_of(clinic)) is bool(old)


def test_what_is_free_can_be_paid_for_ever(tmp_path: Path) -> None:
    with Clinic(tmp_path) as clinic:
        assert affordable(account_of(clinic), NOTHING)["times"] is None
