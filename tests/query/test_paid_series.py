# SPDX-License-Identifier: Apache-2.0
"""What is paid for a series is found by the series, and another one is refused by what differs."""

from dataclasses import dataclass
from fractions import Fraction

import pytest

from sfumato.errors import UnknownName, WrongUse
from sfumato.query.session import Session
from tests.contracts.series import STEPS, Middle


@dataclass(frozen=True)
class Told(Middle):
    """The same series under another line."""

    line = "another line"  # type: ignore[misc]


def middle(here: Session, epsilon: int = 60) -> Middle:
    return Middle(Fraction(epsilon), here.dataset)


def test_what_is_paid_is_found_at_each_stage(here: Session) -> None:
    asked = middle(here)
    assert here.paid_series(asked) is None
    with here.open_series(asked) as opened:
        opened.next()
        opened.next()
        found = here.paid_series(asked)
        assert found is not None and found.charge == opened.charge
        assert (found.places, found.begun, found.stored) == (STEPS, 2, 2)
    with here.open_series(asked) as opened:
        list(opened)
    found = here.paid_series(asked)
    assert found is not None and repr(found).endswith(f"{STEPS} of {STEPS} pieces stored, 0 lost")
    assert here.paid_series(middle(here, 12)) is None


def test_a_charge_is_that_of_its_series_alone(here: Session) -> None:
    asked = middle(here)
    with here.open_series(asked) as opened:
        charge = opened.charge
    here.require_paid(asked, charge)
    with pytest.raises(WrongUse, match="another cost"):
        here.require_paid(middle(here, 12), charge)
    with pytest.raises(WrongUse, match="'the middle of age', and this is 'another line'"):
        here.require_paid(Told(Fraction(12), here.dataset), charge)


@dataclass(frozen=True)
class Formed(Middle):
    """Another series at the same cost, under the same line."""

    form = "of another column"


def test_another_form_is_refused(here: Session) -> None:
    with here.open_series(middle(here)) as opened:
        charge = opened.charge
    with pytest.raises(WrongUse, match="another SELECT"):
        here.require_paid(Formed(Fraction(60), here.dataset), charge)


@pytest.mark.parametrize("charge", ["nobody", "", 3, None])
def test_a_charge_of_nobody_is_unknown(here: Session, charge: object) -> None:
    with pytest.raises(UnknownName, match="No run"):
        here.require_paid(middle(here), charge)  # type: ignore[arg-type]


def test_the_charge_of_another_account_is_unknown(here: Session) -> None:
    with here.open_series(middle(here)) as opened:
        charge = opened.charge
    other = here.asking_as("ben")
    assert other.paid_series(middle(here)) is None
    with pytest.raises(UnknownName):
        other.require_paid(middle(here), charge)


def test_a_charge_that_ended_without_an_answer_is_refused(here: Session) -> None:
    with here.open_series(middle(here)) as opened:
        charge = opened.charge
    ledger = here._ledger
    pieces = ledger.resume(charge)
    ledger.forfeit(charge, "engine", fence=pieces.fence)
    with pytest.raises(WrongUse, match="without an answer"):
        here.require_paid(middle(here), charge)
    assert here.paid_series(middle(here)) is None
