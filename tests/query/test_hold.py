# SPDX-License-Identifier: Apache-2.0
"""A held question is paid in full, draws and reads nothing, and is voided unless it is used."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from time import sleep

import pytest

from sfumato.engines.stop import ENDLESS
from sfumato.errors import BudgetExceeded, InProgress, LeaseExpired, WrongUse
from sfumato.query.hold import held
from sfumato.query.series import OpenSeries
from sfumato.query.session import Session
from tests.contracts.series import STEPS, Middle, worker
from tests.contracts.tasks import Given, measuring, opened

EXACT = Fraction(50 * STEPS)


def taken(here: Session) -> int:
    return here._ledger.balance(here.dataset.name).taken.epsilon


def answered(curator):
    return b"answered"


def test_a_held_charge_is_voided_unless_it_was_used(here: Session) -> None:
    task = measuring(answered)
    with here.hold(task) as hold:
        assert taken(here) == 10**12 and hold.charge
    assert taken(here) == 0
    with here.hold(task) as hold:
        stored = hold.ask()
    assert (stored.body, stored.charge, stored.recalled) == (b"answered", hold.charge, False)
    assert taken(here) == 10**12 and here.verify().problems == ()


def test_a_series_is_held_and_voided_or_opened(here: Session) -> None:
    asked = Middle(EXACT, here.dataset)
    with here.hold(asked):
        assert taken(here) == EXACT * 10**12 and not here.has_series(asked)
    assert taken(here) == 0
    with here.hold(asked) as hold, hold.open() as series:
        assert series.charge == hold.charge
        series.next()
    # suspended, as any series: it is resumed and not paid again
    with here.hold(asked) as again:
        assert again.charge == ""
        with again.open() as series:
            assert len(list(series)) == STEPS - 1
    assert taken(here) == EXACT * 10**12 and here.verify().problems == ()


def test_what_is_stored_is_not_held_again(here: Session) -> None:
    task = measuring(answered)
    here.ask(task)
    with here.hold(task) as hold:
        assert hold.charge == "" and hold.ask().recalled
    assert taken(here) == 10**12


def test_a_hold_pays_for_its_own_question_alone(here: Session) -> None:
    for later in (measuring(answered, 2), replace(measuring(answered), form="another")):
        task = replace(measuring(answered), form="first")
        with here.hold(task) as hold:
            hold._asked = later
            with pytest.raises(WrongUse):
                hold.ask()
        assert taken(here) == 0


def test_a_hold_is_used_once(here: Session) -> None:
    task = measuring(answered)
    with here.hold(task) as hold:
        first = hold.ask()
        assert hold.ask().recalled and hold.ask().body == first.body
    failing = measuring(lambda curator: 1 / 0)
    with here.hold(replace(failing, form="failing")) as hold:
        with pytest.raises(Exception, match="engine"):
            hold.ask()
        with pytest.raises(WrongUse):
            hold.ask()
    # the failed one was paid, once
    assert taken(here) == 2 * 10**12


def test_a_question_is_held_by_one_caller(here: Session) -> None:
    task = measuring(answered)
    with here.hold(task), pytest.raises(InProgress):
        here.hold(task)
    with pytest.raises(BudgetExceeded):
        here.hold(Middle(Fraction(10**9), here.dataset))
    assert taken(here) == 0


def test_a_task_is_not_opened_and_a_series_is_not_asked(here: Session) -> None:
    with here.hold(measuring(answered)) as hold, pytest.raises(WrongUse):
        hold.open()
    with here.hold(Middle(EXACT, here.dataset)) as hold, pytest.raises(WrongUse):
        hold.ask()
    with pytest.raises(WrongUse):
        here.hold(3)
    assert taken(here) == 0


def test_a_hold_ends_with_its_lease(tmp_path: Path) -> None:
    ledger = opened(tmp_path, lease=timedelta(seconds=0.01))
    engine = Given(({(): (1,)},))
    task = measuring(answered)
    with held(task, worker(ledger, engine), ENDLESS) as hold:
        sleep(0.02)
        ledger.sweep()
        with pytest.raises(LeaseExpired):
            hold.ask()
    assert ledger.balance("tiny").taken.epsilon == 0 and engine.reads == []
    ledger.close()


def test_skipped_places_are_lost(here: Session) -> None:
    asked = Middle(EXACT, here.dataset)
    with here.open_series(asked) as series:
        series.next()
        for places in (1, 0, STEPS + 1, True):
            with pytest.raises(WrongUse):
                series.skip(places)
        series.skip(3)
        assert list(series.earlier) == [1] and series.left == STEPS - 3
        series.next()
        assert list(series.earlier) == [1, 4]
        series.skip(STEPS)
        assert series.left == 0
        with pytest.raises(WrongUse):
            series.next()
    # complete: opened free, and nothing is drawn
    with here.open_series(asked) as series:
        assert series.left == 0 and list(series.earlier) == [1, 4]
    assert taken(here) == EXACT * 10**12 and here.verify().problems == ()


def left_after_skip(here: Session) -> tuple[int, int]:
    """The pieces that are left after a skip, and after the series was opened again."""
    asked = Middle(EXACT, here.dataset)
    with here.open_series(asked) as series:
        series.next()
        series.skip(3)
        left = series.left
    with here.open_series(asked) as series:
        return left, series.left


def test_a_skip_lasts(here: Session) -> None:
    assert left_after_skip(here) == (STEPS - 3, STEPS - 3)


def test_a_skip_that_is_not_stored_is_forgotten(
    here: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: the places are begun in memory alone."""
    monkeypatch.setattr(
        OpenSeries, "skip", lambda series, places: setattr(series._begun, "begun", places)
    )
    assert left_after_skip(here) == (STEPS - 3, STEPS - 1)
