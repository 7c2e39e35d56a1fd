# SPDX-License-Identifier: Apache-2.0
"""The one door with tasks of any kind: what is stored, what is forfeited, and what nobody is
told.
"""

import json
import logging
import pickle
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import (
    Cancelled,
    EngineFailed,
    InvalidDeclaration,
    InvalidNumber,
    LeaseExpired,
    WrongUse,
)
from sfumato.ledger import Ledger
from sfumato.ledger.store.base import COMMITTED, FORFEITED, VOIDED
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed
from sfumato.query import charge
from sfumato.query.charge import Terms, charged
from sfumato.query.curator import Curator
from sfumato.query.statistic import NO_PLAN
from sfumato.query.task import Stored, Task
from tests.contracts.charges import charges
from tests.contracts.tasks import (
    BY_SEX,
    Given,
    Probe,
    adding,
    cells,
    measuring,
    opened,
    plan_of,
    who,
)

CANARY = 8_675_309_001
EXACT = ({(0,): (CANARY,), (1,): (CANARY + 1,)},)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return opened(tmp_path)


def measure(curator: Curator) -> tuple[int, ...]:
    return curator.measure(cells(plan_of()), adding(plan_of()))


def honest(curator: Curator) -> bytes:
    """The noisy numbers, far from the exact ones: their noise is wide."""
    return b"%d %d" % measure(curator)


def asked(ledger: Ledger, task: Task, exact: object = EXACT, **terms: object) -> Stored:
    return charged(task, who(), Given(exact), ledger, Terms(**terms))


def ends(ledger: Ledger) -> list[tuple[str, str]]:
    return [(row.state, row.reason) for row in charges(ledger)]


# --- a task that keeps its promise ---------------------------------------------------------------


def test_an_event_or_a_plan_that_lies_is_refused_free(ledger: Ledger) -> None:
    class Any(Fraction):
        __slots__ = ()
        __eq__, __hash__ = (lambda self, other: True), Fraction.__hash__

    noise = adding(plan_of())
    object.__setattr__(noise.noise, "scale", Any(1, 10**6))
    event = noise.event(plan_of().parts[0].distance)
    with pytest.raises(InvalidDeclaration):
        asked(ledger, replace(measuring(honest), event=event))
    wide = replace(plan_of(), parts=tuple(replace(part, groups=Int(1)) for part in plan_of().parts))
    with pytest.raises(InvalidDeclaration):
        asked(ledger, replace(measuring(honest), plan=wide))
    assert charges(ledger) == []


class Int(int):
    """A whole number of a class of its own."""


def test_a_plan_that_is_written_into_while_the_task_runs_changes_nothing(ledger: Ledger) -> None:
    plan = plan_of()
    noise = adding(plan)
    event = noise.event(replace(cells(plan).distance(Norm.L1)))

    def run(curator: Curator) -> bytes:
        object.__setattr__(plan.parts[0].distance, "value", Fraction(1, 1000))
        curator.measure(cells(plan), noise)
        return b"measured at the distance that was proved"

    given = replace(measuring(run), plan=plan, event=event)
    assert asked(ledger, given).body.startswith(b"measured")


def test_a_task_is_answered_once_and_given_again(ledger: Ledger) -> None:
    first = asked(ledger, measuring(honest))
    again = asked(ledger, measuring(honest))
    assert (again.body, again.recalled, first.recalled) == (first.body, True, False)
    assert ends(ledger) == [(COMMITTED, "")]
    assert [row.id for row in charges(ledger)] == [first.charge]
    assert ledger.balance("tiny").spent.epsilon == 10**12


def test_the_journal_says_what_kind_of_question_was_charged(ledger: Ledger) -> None:
    asked(ledger, measuring(honest))
    entries = ledger.store.read(
        lambda rows: [json.loads(each.body) for each in rows.entries(who().contract.dataset)]
    )
    assert [each["kind"] for each in entries if "kind" in each] == ["probe"]


def slowly(curator: Curator) -> bytes:
    """Longer than a lease."""
    time.sleep(0.5)
    return honest(curator)


def brief(tmp_path: Path) -> Ledger:
    return opened(tmp_path, lease=timedelta(milliseconds=150))


def test_a_lease_is_renewed_while_its_task_runs(tmp_path: Path) -> None:
    ledger = brief(tmp_path)
    asked(ledger, measuring(slowly))
    assert ends(ledger) == [(COMMITTED, "")]


def test_a_lease_that_nobody_renews_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charge, "Heartbeat", lambda *_: nullcontext())
    ledger = brief(tmp_path)

    def swept(curator: Curator) -> bytes:
        body = slowly(curator)
        ledger.sweep()
        return body

    with pytest.raises(LeaseExpired):
        asked(ledger, measuring(swept))


def test_a_run_that_ends_before_its_event_pays_for_all_of_it(ledger: Ledger) -> None:
    asked(ledger, measuring(honest, times=3))
    assert ledger.balance("tiny").spent.epsilon == 3 * 10**12


def test_several_tasks_have_several_answers(ledger: Ledger) -> None:
    one, two = asked(ledger, measuring(honest)), asked(ledger, measuring(honest, form="another"))
    assert one.charge != two.charge
    assert ledger.balance("tiny").spent.epsilon == 2 * 10**12


def test_noise_of_a_declared_size_is_drawn_before_the_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    original = charge.drawn

    def spied(*given: object) -> object:
        order.append("draw")
        return original(*given)

    class Engine(Given):
        def ready(self, *given: object) -> Callable[[], object]:
            return lambda: order.append("read") or EXACT

    monkeypatch.setattr(charge, "drawn", spied)
    charged(measuring(honest, cells=(2,)), who(), Engine(EXACT), ledger)
    assert order == ["draw", "read"]


# --- bad input -----------------------------------------------------------------------------------


def test_a_task_without_events_is_refused_free(ledger: Ledger) -> None:
    with pytest.raises(InvalidNumber):
        asked(ledger, Probe(plan_of(), Composed(()), honest))
    assert ends(ledger) == []


def test_what_fails_without_the_data_is_free(ledger: Ledger) -> None:
    class Unready(Probe):
        def ready(self, declarations: object) -> Bounded:
            raise WrongUse("No such axis.")

    with pytest.raises(WrongUse, match="axis"):
        asked(ledger, Unready(plan_of(), measuring(honest).event, honest))
    assert ends(ledger) == []


@pytest.mark.parametrize(
    "member",
    [
        *({"cells": sizes} for sizes in ((2, 2), (-1,), (True,), ("2",), 2, None, "2", iter([2]))),
        *({"size": size} for size in (-1, "9", True, 1.5)),
        *({"form": form} for form in (None, 3, b"form", "", "\ud800")),
        *({"kind": kind} for kind in (None, 3, b"probe", "", "Probe", "sql")),
        *({"line": line} for line in (None, 3, "a\nb")),
    ],
)
def test_a_member_of_another_type_is_refused_free(
    ledger: Ledger, member: dict[str, object]
) -> None:
    with pytest.raises(WrongUse):
        asked(ledger, measuring(honest, **member))
    assert ends(ledger) == []


def test_noise_that_cannot_be_drawn_leaves_no_charge_open(ledger: Ledger) -> None:
    with pytest.raises(InvalidNumber):
        asked(ledger, measuring(honest, cells=(2**61,)))
    assert ends(ledger) == [(VOIDED, "")]
    assert ledger.balance("tiny").taken.epsilon == 0


def test_a_size_that_changes_is_the_one_that_was_looked_at(ledger: Ledger) -> None:
    class Shrinking(Probe):
        looks = 0

        def __getattribute__(self, name: str) -> object:
            if name == "size":
                type(self).looks += 1
                return None if self.looks == 1 else 0
            return super().__getattribute__(name)

    assert asked(ledger, Shrinking(plan_of(), measuring(honest).event, honest)).body
    assert ends(ledger) == [(COMMITTED, "")]


@pytest.mark.parametrize("plan", [None, "SELECT 1", BY_SEX])
def test_what_is_no_plan_is_refused_free(ledger: Ledger, plan: object) -> None:
    with pytest.raises(WrongUse, match="declarations"):
        asked(ledger, Probe(plan, measuring(honest).event, honest))
    assert ends(ledger) == []


def test_a_task_that_reads_nothing_is_charged_and_can_measure_nothing(ledger: Ledger) -> None:
    event = measuring(honest).event
    assert asked(ledger, Probe(NO_PLAN, event, lambda curator: b"signed")).body == b"signed"
    with pytest.raises(EngineFailed):
        asked(ledger, Probe(NO_PLAN, event, honest, form="greedy"))
    assert ends(ledger) == [(COMMITTED, ""), (FORFEITED, "engine")]


def test_a_size_that_does_not_fit_what_is_measured_is_forfeited(ledger: Ledger) -> None:
    with pytest.raises(EngineFailed):
        asked(ledger, measuring(honest, cells=(3,)))
    assert ends(ledger) == [(FORFEITED, "engine")]


class Several(Mapping[object, object]):
    """Exact integers of which the third read fails."""

    def __init__(self, failure: BaseException) -> None:
        self.reads, self._failure = 0, failure

    def __getitem__(self, group: object) -> tuple[int, ...]:
        raise KeyError(group)

    def get(self, group: object, default: object = None) -> tuple[int, ...]:
        self.reads += group == (0,)
        if self.reads == 3:
            raise self._failure
        return (CANARY,)

    def __iter__(self) -> object:
        return iter(())

    def __len__(self) -> int:
        return 0


def five_times(curator: Curator) -> bytes:
    return b" ".join(b"%d" % measure(curator)[0] for _ in range(5))


def test_an_engine_that_fails_in_the_third_of_five_reads_costs_all_five(ledger: Ledger) -> None:
    found = Several(OSError(f"disk full at row {CANARY}"))
    with pytest.raises(EngineFailed) as caught:
        asked(ledger, measuring(five_times, times=5), (found,))
    assert str(caught.value) == str(EngineFailed())
    assert found.reads == 3
    assert ends(ledger) == [(FORFEITED, "engine")]
    assert ledger.balance("tiny").spent.epsilon == 5 * 10**12


# --- what a task may not do ----------------------------------------------------------------------


def goes_on(curator: Curator) -> bytes:
    """Measures once more than it reserved, and answers all the same."""
    body = honest(curator)
    with suppress(EngineFailed):
        measure(curator)
    return body


def raises(curator: Curator) -> bytes:
    raise ValueError(f"{measure(curator)} of {curator!r}")


FORFEITED_TASKS = {
    "goes on after a refused step": measuring(goes_on),
    "raises": measuring(raises),
    "gives no bytes": measuring(lambda curator: str(measure(curator))),
    "gives a kind of bytes": measuring(lambda curator: bytearray(honest(curator))),
    "gives more bytes than it said": measuring(honest, size=3),
    "refuses when it is late": measuring(lambda curator: (_ for _ in ()).throw(WrongUse("late"))),
}


@pytest.mark.parametrize("what", FORFEITED_TASKS)
def test_a_task_that_breaks_its_promise_is_forfeited_with_one_message(
    ledger: Ledger, what: str
) -> None:
    with pytest.raises(EngineFailed) as caught:
        asked(ledger, FORFEITED_TASKS[what])
    assert (str(caught.value), caught.value.__context__) == (str(EngineFailed()), None)
    assert ends(ledger) == [(FORFEITED, "engine")]
    assert ledger.balance("tiny").spent.epsilon == 10**12


def test_a_door_that_believes_the_task_is_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Curator, "end", lambda self: "")
    assert asked(ledger, measuring(goes_on)).body


def test_a_curator_kept_for_later_answers_nothing(ledger: Ledger) -> None:
    kept: list[Curator] = []
    asked(ledger, measuring(lambda curator: kept.append(curator) or honest(curator), times=2))
    with pytest.raises(EngineFailed):
        measure(kept[0])


def test_a_curator_kept_over_an_interrupt_answers_nothing(ledger: Ledger) -> None:
    kept: list[Curator] = []

    def interrupted(curator: Curator) -> bytes:
        kept.append(curator)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked(ledger, measuring(interrupted))
    with pytest.raises(EngineFailed):
        measure(kept[0])
    assert ends(ledger) == [(FORFEITED, "interrupted")]


def test_an_event_that_changes_between_two_looks_is_reserved_as_it_was(ledger: Ledger) -> None:
    class Growing(Probe):
        looks = 0

        def __getattribute__(self, name: str) -> object:
            found = super().__getattribute__(name)
            if name == "event":
                type(self).looks += 1
                return Composed(found.events * self.looks)
            return found

    twice = Growing(
        plan_of(), measuring(honest).event, lambda curator: honest(curator) + honest(curator)
    )
    with pytest.raises(EngineFailed):
        asked(ledger, twice)
    assert ledger.balance("tiny").spent.epsilon == 10**12


# --- exact integers stay inside ------------------------------------------------------------------


def seen(folder: Path, caplog: pytest.LogCaptureFixture, does: Callable[[Curator], bytes]) -> str:
    """All that shows of a task: its answer or error, with every local; logs; pickles.

    Every file beside the ledger.
    """
    caplog.set_level(logging.DEBUG)
    ledger, engine, task = opened(folder), Given(EXACT), measuring(does)
    shows = []
    try:
        shows.append(repr(pickle.dumps(charged(task, who(), engine, ledger))))
    except EngineFailed as failure:
        shows.append(repr(pickle.dumps(failure)))
        shows += traceback.TracebackException.from_exception(failure, capture_locals=True).format()
    ledger.close()
    shows += [repr(file.read_bytes()) for file in sorted(folder.rglob("*")) if file.is_file()]
    return "".join([*shows, caplog.text]).replace(repr(engine), "")


@pytest.mark.parametrize("does", [honest, raises, goes_on], ids=lambda each: each.__name__)
def test_exact_integers_are_found_nowhere(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    does: Callable[[Curator], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # noise as wide as the canary, so that no noisy number is it by chance
    monkeypatch.setattr("tests.contracts.tasks.adding.__defaults__", ("1e-6",), raising=False)
    assert str(CANARY) not in seen(tmp_path, caplog, does)


def test_exact_integers_in_an_answer_are_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def reveals(curator: Curator) -> bytes:
        return repr(curator._opened.integers(plan_of())).encode()

    assert str(CANARY) in seen(tmp_path, caplog, reveals)


def test_exact_integers_in_an_error_are_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def carried_out(self: Curator, step: Callable[[], object]) -> object:
        try:
            return step()
        except Exception as failure:
            raise EngineFailed() from failure

    def fails(curator: Curator) -> bytes:
        measure(curator)
        return honest(curator)

    def exact(self: object, plan: object) -> object:
        raise ValueError(EXACT)

    monkeypatch.setattr("sfumato.query.statistic.Opened.integers", exact)
    assert str(CANARY) not in seen(tmp_path, caplog, fails)
    monkeypatch.setattr(Curator, "_carried_out", carried_out)
    monkeypatch.setattr(
        charge, "run_task", lambda task, size, curator, opened: (task.run(curator), "")
    )
    (tmp_path / "again").mkdir()
    assert str(CANARY) in seen(tmp_path / "again", caplog, fails)


# --- Ctrl-C and other ends, in each phase --------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "end"),
    [
        ("recall", []),
        ("reserve", [(VOIDED, "")]),
        ("execute", [(FORFEITED, "interrupted")]),
        ("commit", [(COMMITTED, "")]),
    ],
)
def test_an_interrupt_in_each_phase_leaves_no_charge_open(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, phase: str, end: object
) -> None:
    original: Callable[..., object] = getattr(Ledger, phase)

    def interrupted(*given: object, **named: object) -> object:
        original(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, phase, interrupted)
        with pytest.raises(KeyboardInterrupt):
            asked(ledger, measuring(honest))
    assert ends(ledger) == end
    assert asked(ledger, measuring(honest)).body


def test_an_interrupt_while_noise_is_drawn_is_voided(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(charge, "drawn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asked(ledger, measuring(honest))
    assert ends(ledger) == [(VOIDED, "")]


@pytest.mark.parametrize("moment", ["in ready", "in the read"])
def test_an_interrupt_beside_the_ledger_is_closed_too(ledger: Ledger, moment: str) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    task = measuring(honest)
    if moment == "in ready":
        task = replace(task)
        object.__setattr__(task, "ready", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asked(ledger, task)
        assert ends(ledger) == []
    else:
        found = Several(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            asked(ledger, measuring(five_times, times=5), (found,))
        assert ends(ledger) == [(FORFEITED, "interrupted")]


def test_a_caller_who_stops_while_the_data_is_read_pays(ledger: Ledger) -> None:
    with pytest.raises(Cancelled) as caught:
        asked(ledger, measuring(five_times, times=5), (Several(Cancelled(paid=True)),))
    assert caught.value.paid
    assert ends(ledger) == [(FORFEITED, "cancelled")]


def test_a_caller_who_waits_no_longer_is_not_charged(ledger: Ledger) -> None:
    class Over(Patience):
        def require(self) -> None:
            raise Cancelled(paid=False)

    with pytest.raises(Cancelled):
        asked(ledger, measuring(honest), patience=Over())
    assert ends(ledger) == []
    assert ENDLESS.is_endless
