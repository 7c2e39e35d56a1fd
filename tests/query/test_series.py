# SPDX-License-Identifier: Apache-2.0
"""Answers in pieces through the door: paid once, begun before they are drawn, and never drawn
twice.
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.engines.stop import ENDLESS, Stop
from sfumato.errors import (
    AccountFrozen,
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    InProgress,
    LeaseExpired,
    LedgerUnavailable,
    WrongUse,
)
from sfumato.ledger import Ledger, verify
from sfumato.privacy.event import Composed, Event, PureEvent, Repeated
from sfumato.query import series as module
from sfumato.query.curator import Curator
from sfumato.query.series import OpenSeries, opened_series, part_of, places_of
from sfumato.query.session import Session
from tests.contracts.crashes import program
from tests.contracts.people import session
from tests.contracts.series import STEPS, Comparison, Middle, narrowed, worker
from tests.contracts.series_kills import POINTS, is_wrong
from tests.contracts.tasks import Given, opened

# per piece; noise is zero but for a chance below 1e-20
EXACT = Fraction(50 * STEPS)


def middle(here: Session, epsilon: Fraction = EXACT) -> Middle:
    return Middle(epsilon, here.dataset)


def taken(here: Session) -> int:
    """What is spent and reserved, in units of the ledger."""
    return here._ledger.balance(here.dataset.name).taken.epsilon


def test_pieces_are_computed_one_after_the_other_from_what_the_earlier_ones_showed(
    here: Session,
) -> None:
    with here.open_series(middle(here)) as found:
        bodies = [each.body for each in found]
        assert found.left == 0
    # 40 people of 20 to 39, two of each age
    assert narrowed(dict(enumerate(bodies))) == (29, 31)
    assert [body.split(b",")[0] for body in bodies] == [
        b"[50",
        b"[25",
        b"[37",
        b"[31",
        b"[28",
        b"[29",
    ]


def test_the_whole_cost_is_debited_before_the_first_piece(here: Session) -> None:
    found = here.open_series(middle(here, Fraction(6)))
    assert taken(here) == 6 * 10**12
    found.next()
    found.close()
    assert taken(here) == 6 * 10**12


def test_a_suspended_series_is_resumed_and_not_paid_again(here: Session, tmp_path: Path) -> None:
    with here.open_series(middle(here)) as found:
        shown = [found.next().body, found.next().body]
    with here.open_series(middle(here)) as again:
        assert again.charge == found.charge and list(again.earlier.values()) == shown
        shown.append(again.next().body)
    here.close()
    with session(tmp_path) as later:
        rest = later.open_series(middle(later))
        shown += [each.body for each in rest]
        assert len(shown) == STEPS and narrowed(dict(enumerate(shown))) == (29, 31)
        # complete: free, and nothing is computed
        known = later.open_series(middle(later))
        assert (known.charge, known.left, list(known.earlier.values())) == (found.charge, 0, shown)
        assert list(known) == []
        assert later.budget.spent == str(EXACT) and later.verify().problems == ()


def test_a_series_that_is_paid_for_is_known(here: Session) -> None:
    asked = middle(here)
    assert not here.has_series(asked) and taken(here) == 0
    with here.open_series(asked) as found:
        # somebody has it open
        assert not here.has_series(asked)
        found.next()
    assert here.has_series(asked) and not here.has_series(middle(here, Fraction(6)))
    for _ in here.open_series(asked):
        pass
    assert here.has_series(asked)


def test_a_session_that_closes_suspends_what_it_left_open(tmp_path: Path) -> None:
    with session(tmp_path) as here:
        found = here.open_series(middle(here))
        found.next()
    assert found.left == 0
    for _ in range(4):
        # an orderly end: none of them counts as a failure
        with session(tmp_path) as later:
            again = later.open_series(middle(later))
            assert again.charge == found.charge and len(again.earlier) == 1


def test_another_account_pays_for_its_own(here: Session) -> None:
    first = here.open_series(middle(here))
    other = here.asking_as("ann").open_series(middle(here))
    assert first.charge != other.charge
    third = here.asking_as("ann", "research").open_series(middle(here))
    assert third.charge not in (first.charge, other.charge)


# --- what is refused free ------------------------------------------------------------------------


@dataclass(frozen=True)
class Changed(Middle):
    """A series one of whose places does something else."""

    at: int = 2

    def piece(self, place: int, earlier: Mapping[int, bytes]) -> Comparison:
        honest = super().piece(place, earlier)
        return replace(honest, share=2 * honest.share) if place == self.at else honest


def test_a_piece_that_does_what_was_not_reserved_for_it_is_refused_free(
    here: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = here.open_series(Changed(Fraction(6), here.dataset))
    found.next()
    for _ in range(2):
        with pytest.raises(WrongUse, match="Piece 2"):
            found.next()
    assert found.left == STEPS - 1
    # a door that does not look is stopped by the curator: the place is lost
    monkeypatch.setattr(
        module,
        "part_of",
        lambda event, place: Changed(Fraction(6), here.dataset).piece(place, {}).event,
    )
    assert found.next().body, "it is answered where both look at what the piece claims"


def test_a_series_that_changes_its_event_after_it_was_paid_is_refused(here: Session) -> None:
    class Growing(Middle):
        def piece(self, place: int, earlier: Mapping[int, bytes]) -> Comparison:
            honest = super().piece(place, earlier)
            return replace(honest, share=honest.share * (1 if not grown else 100))

    grown: list[bool] = []
    found = here.open_series(Growing(Fraction(6), here.dataset))
    grown.append(True)
    with pytest.raises(WrongUse, match="Piece 1"):
        found.next()


def test_a_piece_that_asks_twice_is_stopped(here: Session) -> None:
    class Greedy(Comparison):
        def run(self, curator: Curator) -> bytes:
            super().run(curator)
            return super().run(curator)

    class Twice(Middle):
        def piece(self, place: int, earlier: Mapping[int, bytes]) -> Comparison:
            honest = super().piece(place, earlier)
            return Greedy(honest.middle, honest.share, honest.plan)

    series = Twice(Fraction(6), here.dataset)
    found = here.open_series(series)
    with pytest.raises(EngineFailed):
        found.next()
    assert found.left == 0, "it is suspended"
    assert here.open_series(series).left == STEPS - 1, "and its place lost"
    assert taken(here) == 6 * 10**12


@pytest.mark.parametrize("event", [PureEvent(Fraction(1)), Composed(())])
def test_what_has_no_parts_is_no_series(event: Event) -> None:
    with pytest.raises(WrongUse):
        places_of(event)


def test_the_parts_of_a_composition_are_its_pieces() -> None:
    one, two = PureEvent(Fraction(1)), PureEvent(Fraction(2))
    assert (places_of(Composed((one, two))), places_of(Repeated(one, 7))) == (2, 7)
    assert [part_of(Composed((one, two)), place) for place in (1, 2)] == [one, two]
    assert part_of(Repeated(one, 7), 7) == one


def test_a_series_beyond_the_budget_is_refused_free(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1,)) as here:
        with pytest.raises(BudgetExceeded):
            here.open_series(middle(here))
        assert here.budget.spent == "0"


def test_a_first_piece_that_cannot_be_planned_is_refused_free(here: Session) -> None:
    class Unplanned(Comparison):
        def ready(self, declarations: object) -> object:
            raise WrongUse("Nothing to plan.")

    class Broken(Middle):
        def piece(self, place: int, earlier: Mapping[int, bytes]) -> Comparison:
            honest = super().piece(place, earlier)
            return Unplanned(honest.middle, honest.share, honest.plan)

    with pytest.raises(WrongUse):
        here.open_series(Broken(Fraction(6), here.dataset))
    assert here.budget.spent == "0"


def test_a_closed_series_computes_nothing(here: Session) -> None:
    found = here.open_series(middle(here))
    found.close()
    found.close()
    with pytest.raises(WrongUse, match="Open the series again"):
        found.next()
    here.close()
    with pytest.raises(LedgerUnavailable):
        here.open_series(middle(here))


# --- failures ------------------------------------------------------------------------------------


def failing(times: int) -> Given:
    """An engine whose first reads fail."""

    class Failing(Given):
        def ready(self, *given: object) -> object:
            def read() -> object:
                self.reads.append(given[0])
                if len(self.reads) <= times:
                    raise EngineFailed()
                return self.exact

            return read

    return Failing(({(): (1,)},))


def test_a_piece_that_fails_loses_its_place_and_counts(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    here = worker(ledger, failing(2))
    for left in (STEPS - 1, STEPS - 2):
        found = opened_series(Middle(), here, ENDLESS)
        with pytest.raises(EngineFailed):
            found.next()
        assert found.left == 0
        again = opened_series(Middle(), here, ENDLESS)
        assert again.left == left
        again.close()
    bodies = list(opened_series(Middle(), here, ENDLESS))
    assert len(bodies) == STEPS - 2
    assert [place for place, _ in ledger.instalments(found.charge)] == [3, 4, 5, 6]
    assert verify(ledger).problems == ()
    ledger.close()


def test_three_failures_freeze_the_account(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    here = worker(ledger, failing(9))
    for _ in range(3):
        with pytest.raises(EngineFailed):
            opened_series(Middle(), here, ENDLESS).next()
    with pytest.raises(AccountFrozen):
        opened_series(Middle(), here, ENDLESS)
    ledger.close()


def test_a_caller_who_waits_no_longer_loses_nothing_before_it_is_begun(here: Session) -> None:
    found, stop = here.open_series(middle(here)), Stop()
    stop.stop()
    with pytest.raises(Cancelled) as caught:
        found.next(stop=stop)
    assert not caught.value.paid and found.left == STEPS


def test_an_interrupted_piece_is_lost_and_the_series_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    found = opened_series(Middle(), worker(ledger), ENDLESS)

    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.next()
    assert found.left == 0
    monkeypatch.undo()
    assert opened_series(Middle(), worker(ledger), ENDLESS).left == STEPS - 1
    ledger.close()


# --- two workers ----------------------------------------------------------------------------------


def test_another_worker_waits_until_the_first_has_left(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    first = opened_series(Middle(), worker(ledger), ENDLESS)
    with pytest.raises(InProgress):
        opened_series(Middle(), worker(ledger), ENDLESS)
    first.close()
    second = opened_series(Middle(), worker(ledger), ENDLESS)
    assert second.next().charge == first.charge
    with pytest.raises(WrongUse):
        first.next()
    ledger.close()


def late_worker(ledger: Ledger) -> list[str]:
    """What a worker that was taken over still gets to do."""
    done = []
    first = opened_series(Middle(), worker(ledger), ENDLESS)
    first.next()
    ledger._close_all(lambda _: None, "expired")
    second = opened_series(Middle(), worker(ledger), ENDLESS)
    second.next()
    try:
        first.next()
        done.append("a piece")
    except LeaseExpired:
        pass
    first.close()
    if second.left == STEPS - 2:
        second.next()
    return done


def test_a_worker_that_comes_back_late_draws_nothing(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    assert late_worker(ledger) == []
    assert verify(ledger).problems == ()
    ledger.close()


def test_a_lease_that_has_ended_is_noticed_by_whoever_opens_it_next(tmp_path: Path) -> None:
    ledger = opened(tmp_path, timedelta(milliseconds=1))
    first = opened_series(Middle(), worker(ledger), ENDLESS)
    second = opened_series(Middle(), worker(ledger), ENDLESS)
    assert second.charge == first.charge
    ledger.close()


def test_threads_on_one_series_share_its_places(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    found, bodies = opened_series(Middle(), worker(ledger), ENDLESS), []

    def take() -> None:
        for stored in found:
            bodies.append(stored.body)

    def safely() -> None:
        # another thread may take the last place
        with suppress(WrongUse):
            take()

    threads = [threading.Thread(target=safely) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(bodies) == STEPS == len(ledger.instalments(found.charge))
    ledger.close()


# --- killed ---------------------------------------------------------------------------------------


def killed(folder: Path, mutant: str, *points: str) -> list[dict[str, object]]:
    """What was found at some points; all of them are in chaos/."""
    return program("series_kills", folder=str(folder), mutant=mutant, points=points)


def test_a_place_is_begun_before_its_noise_is_drawn_and_its_data_read(tmp_path: Path) -> None:
    points = ("after start", "after drawn 2", "after append 2", f"before append {STEPS}")
    found = killed(tmp_path, "", *points)
    assert not [each for each in found if is_wrong(each)] and set(points) <= set(POINTS)
    assert [STEPS - len(each["stored"]) for each in found] == [0, 1, 0, 1]


@pytest.mark.parametrize("mutant", ["draws before begin", "draws again"])
def test_a_place_that_is_drawn_twice_is_noticed(mutant: str, tmp_path: Path) -> None:
    point = "before begin 2" if mutant == "draws before begin" else "after drawn 2"
    assert is_wrong(killed(tmp_path, mutant, point)[-1])


def test_a_piece_is_stored_before_it_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    monkeypatch.setattr(
        type(ledger), "append", lambda *_, **__: (_ for _ in ()).throw(LedgerUnavailable("away"))
    )
    with pytest.raises(LedgerUnavailable):
        opened_series(Middle(), worker(ledger), ENDLESS).next()
    monkeypatch.undo()
    again = opened_series(Middle(), worker(ledger), ENDLESS)
    assert (again.left, again.earlier) == (STEPS - 1, {})
    assert isinstance(again, OpenSeries) and "charge" in repr(again)
    ledger.close()


def test_the_largest_piece_is_what_the_task_said(here: Session) -> None:
    class Long(Comparison):
        size = 3

    class Longer(Middle):
        def piece(self, place: int, earlier: Mapping[int, bytes]) -> Comparison:
            honest = super().piece(place, earlier)
            return Long(honest.middle, honest.share, honest.plan)

    with pytest.raises(EngineFailed):
        here.open_series(Longer(Fraction(6), here.dataset)).next()


def test_what_is_asked_of_a_closed_door_is_refused(here: Session) -> None:
    found = here.open_series(middle(here))
    here.close()
    with pytest.raises((LedgerUnavailable, WrongUse)):
        found.next()
    assert sf.Session is Session
