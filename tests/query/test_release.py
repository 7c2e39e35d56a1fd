# SPDX-License-Identifier: Apache-2.0
"""Where exact integers get their noise: the order of the steps, failures, keys."""

import hashlib
import inspect
import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.engines.base import Codes
from sfumato.engines.reference import Reference
from sfumato.engines.stop import ENDLESS, Patience, Stop
from sfumato.errors import AccountFrozen, Cancelled, EngineFailed, LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, VOIDED
from sfumato.noise import DiscreteLaplace
from sfumato.plan.show import canonical, form
from sfumato.plan.stages import Bounded
from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import event_to_json
from sfumato.query.asker import FORMAT, SEMANTICS, Asker
from sfumato.query.choose import Planned, plan_for_price
from sfumato.query.curator import Curator
from sfumato.query.pipeline import compile_plan
from sfumato.query.price import price
from sfumato.query.release import Asked, SqlTask, _Preface, release
from sfumato.query.together import Held, together
from sfumato.sql.lower import understand
from tests.contracts import corpus
from tests.contracts.charges import charges
from tests.contracts.people import FRAME, asker, dataset

ROOM = sys.modules["sfumato.query.charge"]
BUDGET = Budget(1000, "1e-6")
SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY sex"
ORDER = ["reserve", "draw", "execute", "run", "commit", "return"]


class Recording:
    """The reference engine; writes down when it ran, and what the ledger held by then."""

    collects_codes = True

    def __init__(self, log: list[str], ledger: Ledger) -> None:
        self._inner = Reference({"people": FRAME.to_pylist()})
        self._log, self._ledger = log, ledger
        self.found: list[str] = []

    def statement(self, plan: Bounded) -> str:
        return self._inner.statement(plan)

    def wait(self, patience: Patience = ENDLESS) -> None:
        pass

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Mapping[Codes, tuple[int, ...]]]:
        return lambda: self.run(plan, sampling_key)

    def run(self, plan: Bounded, sampling_key: str) -> Mapping[Codes, tuple[int, ...]]:
        self._log.append("run")
        self.found = [row.state for row in charges(self._ledger)]
        return self._inner.run(plan, sampling_key)


class Failing(Recording):
    """An engine that raises."""

    def __init__(self, log: list[str], ledger: Ledger, failure: BaseException) -> None:
        super().__init__(log, ledger)
        self._failure = failure

    def run(self, plan: Bounded, sampling_key: str) -> Mapping[Codes, tuple[int, ...]]:
        raise self._failure


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def ledger(tmp_path: Path, log: list[str], monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger whose steps, and the drawing of noise, are written down."""

    def spied(owner: object, name: str) -> None:
        original: Callable[..., object] = getattr(owner, name)

        def call(*values: object, **named: object) -> object:
            log.append("draw" if name == "drawn" else name)
            return original(*values, **named)

        monkeypatch.setattr(owner, name, call)

    for name in ("reserve", "execute", "commit", "forfeit", "void"):
        spied(Ledger, name)
    spied(ROOM, "drawn")
    opened = Ledger.open(tmp_path / "l.db")
    opened.adopt(who().contract, BUDGET)
    return opened


def who(**options: object) -> Asker:
    """The owner asking."""
    return asker(dataset(**options), BUDGET)


def planned(sql: str = SQL, **asked: object) -> Planned:
    """A planned question at a price, epsilon 1 unless said otherwise."""
    declared = dataset()
    return plan_for_price(understand(sql, declared), declared, price(**(asked or {"epsilon": 1})))


def steps(log: list[str]) -> list[str]:
    """The log, with the draws of several parts as one."""
    return [name for place, name in enumerate(log) if log[place - 1 : place] != [name]]


def carried_out(log: list[str], ledger: Ledger) -> list[str]:
    """The steps of one release, in the order in which they happened."""
    release(Asked.of(planned(), who()), Recording(log, ledger), ledger)
    log.append("return")
    return steps(log)


def test_the_debit_comes_before_the_noise_and_the_noise_before_the_read(
    log: list[str], ledger: Ledger
) -> None:
    assert carried_out(log, ledger) == ORDER


def test_the_read_finds_its_charge_marked_executing(log: list[str], ledger: Ledger) -> None:
    engine = Recording(log, ledger)
    release(Asked.of(planned(), who()), engine, ledger)
    assert engine.found == ["executing"]


RESERVE, DRAW, EXECUTE, COMMIT = (
    "        charge, taken = order.payer.reserve(request, charge), True\n",
    "        noise = drawn(request.event, order.cells)\n",
    "        ledger.execute(charge)\n",
    "            ledger.commit(charge, body, released=",
)
READ = "        opened.integers(order.task.ready(None))\n"
MUTANTS = {
    "reads before it reserves": (RESERVE, READ + RESERVE),
    "draws after the read": (DRAW, READ + DRAW),
    "marks executing after the read": (EXECUTE, READ + EXECUTE),
    "never commits": (COMMIT, "            dict(released="),
    "never marks executing": (EXECUTE, ""),
}


HONEST = inspect.getsource(ROOM._carried_out)


def mutated(old: str, new: str) -> Callable[..., bytes]:
    """``_carried_out`` with one piece of its text replaced."""
    text = HONEST
    assert text.count(old) == 1, "the text of the function has changed: write the mutant anew"
    names = dict(vars(ROOM))
    exec(text.replace(old, new), names)
    mutant: Callable[..., bytes] = names["_carried_out"]
    return mutant


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_release_in_another_order_is_caught(
    log: list[str], ledger: Ledger, mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ROOM, "_carried_out", mutated(*MUTANTS[mutant]))
    try:
        order = carried_out(log, ledger)
    except LedgerUnavailable:  # a step that the ledger itself refuses
        order = []
    assert order != ORDER


def test_the_answer_is_stored_before_it_is_returned(log: list[str], ledger: Ledger) -> None:
    body = release(Asked.of(planned(), who()), Recording(log, ledger), ledger)
    assert ledger.answer(who().question_key(planned())) == body
    (row,) = charges(ledger)
    assert row.state == COMMITTED
    assert ledger.balance("tiny").spent.epsilon == 10**12


def test_the_same_question_gives_the_same_bytes(log: list[str], ledger: Ledger) -> None:
    engine = Recording(log, ledger)
    first = release(Asked.of(planned(), who()), engine, ledger)
    del log[:]
    assert release(Asked.of(planned(), who()), engine, ledger) == first
    assert log == []


SECRET = "the row of Mr. Secret, 48"
FAILURES = [
    ValueError(SECRET),
    MemoryError(SECRET),
    EngineFailed(),
    RecursionError(SECRET),
    OSError(5, SECRET),
    AssertionError(SECRET),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
def test_a_failure_after_the_read_is_forfeited(
    log: list[str], ledger: Ledger, failure: Exception
) -> None:
    with pytest.raises(EngineFailed) as caught:
        release(Asked.of(planned(), who()), Failing(log, ledger, failure), ledger)
    assert str(caught.value) == str(EngineFailed())
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    (row,) = charges(ledger)
    assert (row.state, row.reason) == (FORFEITED, "engine")
    balance = ledger.balance("tiny")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (10**12, 0)


def test_integers_that_are_not_of_the_plan_are_a_failure_of_the_engine(
    log: list[str], ledger: Ledger
) -> None:
    engine = Recording(log, ledger)
    engine.run = lambda plan, key: {(0,): (1,), (1,): ()}
    with pytest.raises(EngineFailed):
        release(Asked.of(planned(), who()), engine, ledger)
    assert [row.state for row in charges(ledger)] == [FORFEITED]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SystemExit(4)], ids=repr)
def test_an_interruption_is_forfeited_and_raised_again(
    log: list[str], ledger: Ledger, interruption: BaseException
) -> None:
    with pytest.raises(type(interruption)):
        release(Asked.of(planned(), who()), Failing(log, ledger, interruption), ledger)
    (row,) = charges(ledger)
    assert (row.state, row.reason) == (FORFEITED, "interrupted")
    assert ledger.balance("tiny").spent.epsilon == 10**12


@pytest.mark.parametrize("failure", [RuntimeError("no entropy"), KeyboardInterrupt()], ids=repr)
def test_a_failure_before_the_mark_is_voided(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise failure

    monkeypatch.setattr(ROOM, "drawn", fails)
    with pytest.raises(type(failure)):
        release(Asked.of(planned(), who()), Recording(log, ledger), ledger)
    assert [row.state for row in charges(ledger)] == [VOIDED]
    assert "run" not in log
    assert ledger.balance("tiny").taken.epsilon == 0


TEXTS = ("protection", "bounding", "bias", "move_of")
RELEASE = sys.modules["sfumato.query.release"]


def charges_after_a_bad_text(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, text: str
) -> list[str]:
    """The states of the charges of a question, one of whose texts cannot be made."""

    def fails(*_: object) -> None:
        raise IndexError(text)

    with monkeypatch.context() as patch:
        patch.setattr(RELEASE, text, fails)
        with pytest.raises((IndexError, EngineFailed)):
            release(Asked.of(planned(), who()), Recording(log, ledger), ledger)
    return [row.state for row in charges(ledger)]


@pytest.mark.parametrize("text", TEXTS)
def test_an_error_in_the_texts_of_an_answer_charges_nothing(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert charges_after_a_bad_text(log, ledger, monkeypatch, text) == []
    assert log == []


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_are_made_inside_the_charge_are_caught(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def late(task: SqlTask, curator: Curator) -> bytes:
        return honest(SqlTask(task.asked, _Preface.of(task.asked)), curator)

    honest = SqlTask.run
    monkeypatch.setattr(SqlTask, "of", lambda asked: SqlTask(asked, _Preface({}, [], [])))
    monkeypatch.setattr(SqlTask, "run", late)
    assert charges_after_a_bad_text(log, ledger, monkeypatch, text) == [FORFEITED]


STEPS = ("reserve", "execute", "commit")
ENDS = {"reserve": VOIDED, "execute": FORFEITED, "commit": COMMITTED}


def interrupt_after(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Ctrl-C right after a step of the ledger has taken effect."""
    original: Callable[..., object] = getattr(Ledger, step)

    def call(*values: object, **named: object) -> object:
        original(*values, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, step, call)


def left_by_an_interruption(
    log: list[str],
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    *,
    held: bool = False,
) -> list[str]:
    """The states of the charges of a question that was interrupted after a step."""
    asked = Asked.of(planned(), who())
    requests = {("q", price(epsilon=1)): asked.request()} if held else {}
    with monkeypatch.context() as patch:
        interrupt_after(patch, step)
        with pytest.raises(KeyboardInterrupt), together(ledger, requests) as taken:
            release(asked, Recording(log, ledger), ledger, payer=taken.of(("q", price(epsilon=1))))
    return [row.state for row in charges(ledger)]


@pytest.mark.parametrize("step", STEPS)
def test_an_interruption_between_two_steps_leaves_no_charge_open(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    assert left_by_an_interruption(log, ledger, monkeypatch, step) == [ENDS[step]]
    # nobody waits for it: the question is asked anew, or its answer is there
    assert release(Asked.of(planned(), who()), Recording(log, ledger), ledger)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("again", [1, 2])
def test_a_second_interruption_leaves_no_charge_open_either(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, again: int, held: bool
) -> None:
    abandon, times = Ledger.abandon, []

    def interrupted(self: Ledger, charge: str, *, fence: int) -> None:
        times.append(charge)
        if len(times) <= again:
            raise KeyboardInterrupt
        abandon(self, charge, fence=fence)

    monkeypatch.setattr(Ledger, "abandon", interrupted)
    assert left_by_an_interruption(log, ledger, monkeypatch, "execute", held=held) == [FORFEITED]
    (row,) = charges(ledger)
    # an interruption does not count towards a freeze
    assert row.reason == "interrupted"


@pytest.mark.parametrize("step", ["reserve_all", "execute", "commit"])
def test_an_interruption_leaves_no_charge_open_that_was_taken_with_others(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ends = {"reserve_all": VOIDED} | ENDS
    assert left_by_an_interruption(log, ledger, monkeypatch, step, held=True) == [ends[step]]


def test_a_held_charge_that_an_interrupted_caller_did_not_see_is_given_back(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Held.reserve

    def unseen(*given: object) -> str:
        original(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Held, "reserve", unseen)
    request = Asked.of(planned(), who()).request()
    name = ("q", price(epsilon=1))
    with pytest.raises(KeyboardInterrupt), together(ledger, {name: request}) as taken:
        taken.reserve(name, request)
    assert [row.state for row in charges(ledger)] == [VOIDED]


def test_a_caller_who_closes_nothing_is_noticed(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "abandon", lambda self, charge, *, fence: None)
    assert left_by_an_interruption(log, ledger, monkeypatch, "execute") == [EXECUTING]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
def test_a_ledger_that_fails_after_the_engine_tells_nothing_of_it(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fails(*_: object) -> None:
        raise LedgerUnavailable("The disk is full.")

    monkeypatch.setattr(Ledger, "forfeit", fails)
    with pytest.raises(LedgerUnavailable) as caught:
        release(Asked.of(planned(), who()), Failing(log, ledger, failure), ledger)
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_three_failing_reads_freeze_the_analyst(log: list[str], ledger: Ledger) -> None:
    for index in range(3):
        with pytest.raises(EngineFailed):
            release(
                Asked.of(planned(epsilon=1 + index), who()),
                Failing(log, ledger, ValueError()),
                ledger,
            )
    with pytest.raises(AccountFrozen):
        release(Asked.of(planned(), who()), Recording(log, ledger), ledger)
    ledger.thaw("tiny")
    release(Asked.of(planned(), who()), Recording(log, ledger), ledger)


def test_noise_is_added_to_every_declared_group_alike(log: list[str], ledger: Ledger) -> None:
    sizes: list[int] = []
    original = DiscreteLaplace.sample

    def sample(self: DiscreteLaplace, shape: int) -> object:
        sizes.append(shape)
        return original(self, shape)

    engine = Recording(log, ledger)
    engine.run = lambda plan, key: ({}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "sample", sample)
        release(Asked.of(planned(), who()), engine, ledger)
    assert sizes == [2, 4]


def test_who_asks_what_is_being_answered_gets_the_stored_bytes(
    log: list[str], ledger: Ledger
) -> None:
    asked = Asked.of(planned(), who())
    # in another process somebody has reserved the same question
    charge, paused = ledger.reserve(asked.request()), []

    class Waiting(Patience):
        def pause(self, seconds: float) -> None:
            paused.append(seconds)
            if len(paused) == 3:
                ledger.execute(charge)
                ledger.commit(charge, b"the stored bytes")

    assert release(asked, Recording(log, ledger), ledger, patience=Waiting()) == b"the stored bytes"
    assert paused == [0.005, 0.01, 0.02]
    assert "run" not in log


def test_what_ended_without_an_answer_elsewhere_is_asked_anew(
    log: list[str], ledger: Ledger
) -> None:
    asked = Asked.of(planned(), who())
    charge = ledger.reserve(asked.request())

    class Waiting(Patience):
        def pause(self, seconds: float) -> None:
            ledger.void(charge)

    release(asked, Recording(log, ledger), ledger, patience=Waiting())
    assert sorted(row.state for row in charges(ledger)) == [COMMITTED, VOIDED]


def test_two_threads_with_one_question_read_the_data_once(log: list[str], ledger: Ledger) -> None:
    asked, found = Asked.of(planned(), who()), []
    reading, other_waits = threading.Event(), threading.Event()

    class Slow(Recording):
        def run(self, plan: Bounded, sampling_key: str) -> Mapping[Codes, tuple[int, ...]]:
            reading.set()
            assert other_waits.wait(10)
            return super().run(plan, sampling_key)

    class Watched(Patience):
        is_endless = False

        def require(self) -> None:
            other_waits.set()

    engine = Slow(log, ledger)
    first = threading.Thread(target=lambda: found.append(release(asked, engine, ledger)))
    first.start()
    assert reading.wait(10)
    found.append(release(asked, engine, ledger, patience=Watched()))
    first.join()
    assert found[0] == found[1]
    assert log.count("run") == 1
    assert ledger.balance("tiny").spent.epsilon == 10**12


def test_a_caller_who_waits_no_longer_pays_only_for_what_may_have_been_read(
    log: list[str], ledger: Ledger
) -> None:
    stop = Stop()
    stop.stop()
    asked = Asked.of(planned(), who())
    with pytest.raises(Cancelled) as cancelled:
        release(asked, Recording(log, ledger), ledger, patience=Patience(stop))
    assert (cancelled.value.paid, charges(ledger), log) == (False, [], [])
    with pytest.raises(Cancelled) as cancelled:
        release(asked, Failing(log, ledger, Cancelled(paid=True)), ledger)
    assert (cancelled.value.paid, cancelled.value.__context__) == (True, None)
    assert [(row.state, row.reason) for row in charges(ledger)] == [(FORFEITED, "cancelled")]
    assert ledger.balance("tiny").spent.epsilon == 10**12


def test_a_stop_that_gives_back_what_was_read_is_caught(
    log: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = mutated("        ledger.forfeit(charge, failed)\n", "        ledger.void(charge)\n")
    monkeypatch.setattr(ROOM, "_carried_out", mutant)
    with pytest.raises(LedgerUnavailable):
        release(Asked.of(planned(), who()), Failing(log, ledger, Cancelled(paid=True)), ledger)


# --- keys (RULES 21) -----------------------------------------------------------------------------

COUNT = "SELECT COUNT(*) AS n FROM people"


def key(sql: str = COUNT, *, asked: dict[str, object] | None = None, **options: object) -> str:
    """The key of a question under declarations and an asker that may differ."""
    analyst, version = options.pop("analyst", "owner"), options.pop("version", "1")
    purpose = options.pop("purpose", "unstated")
    declared = dataset(**options)
    plain = type(declared)(declared.name, declared.tables, declared.relation, str(version))
    plan = plan_for_price(understand(sql, plain), plain, price(**(asked or {"epsilon": 1})))
    return replace(asker(plain, BUDGET, str(analyst)), purpose=str(purpose)).question_key(plan)


@pytest.mark.parametrize(
    "change",
    [
        {"analyst": "someone"},
        {"version": "2"},
        {"purpose": "research"},
        {"relation": sf.ReplaceOne},
        {"unit": sf.Unit("person", max_rows=1)},
        {"asked": {"epsilon": 2}},
        {"asked": {"rho": 1}},
        {"sql": f"{COUNT} WHERE age > 3"},
        {"sql": f"{COUNT} WHERE age > 4"},
        {"sql": "SELECT COUNT(age) AS n FROM people"},
        {"sql": "SELECT COUNT(*) AS m FROM people"},
    ],
    ids=repr,
)
def test_whatever_changes_the_answer_changes_its_key(change: dict[str, object]) -> None:
    assert key(**change) != key()


def test_other_bounds_and_other_limits_are_other_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT SUM(age) AS s FROM people"
    plain = key(sql)
    declared = {"age": sf.Integer(0, 98)}
    monkeypatch.setattr("tests.contracts.people.columns", lambda: declared)
    assert key(sql) != plain
    one, two = (key(COUNT, unit=sf.Unit("person", max_rows=rows)) for rows in (1, 2))
    assert one != two


@pytest.mark.parametrize(
    "same",
    [
        "select count(*) n from people",
        "SELECT COUNT(1) AS n FROM People AS p",
        "SELECT COUNT(*) AS n -- a comment\nFROM people;",
    ],
)
def test_spelling_does_not_change_the_key(same: str) -> None:
    assert key(same) == key()


def test_the_order_of_values_and_a_table_alias_do_not_change_the_key() -> None:
    one = key(f"{COUNT} WHERE age IN (3, 1, 2)")
    assert key("SELECT COUNT(*) AS n FROM people p WHERE p.AGE IN (1, 2, 3, 3)") == one


def test_a_key_is_the_hash_of_all_that_it_stands_for_as_canonical_json() -> None:
    plan, one = planned(), who()
    about = {"dataset": "tiny", "relation": "add-remove", "units": {"people": "(row)"}}
    facts = {
        "plan": canonical(plan.bounded),
        "output": canonical(plan.question.output),
        "event": event_to_json(plan.event),
        "contract": canonical_json(about),
        "version": one.dataset.version,
        "semantics": SEMANTICS,
        "format": FORMAT,
    }
    whose = [{"analyst": "owner", "purpose": "unstated"}, {"analyst": "", "purpose": ""}]
    asked = Asked.of(plan, replace(one, past=(("3", "1/1000000"),)))
    assert [asked.question, asked.shared] == [hashed(facts | each) for each in whose]
    assert one.question_key(plan) == asked.question
    # as formats 1 to 3 named keys: the limits are in them, a purpose is not
    facts["contract"] = canonical_json(about | {"epsilon": "3", "delta": "1/1000000"})
    old = [hashed(facts | {"analyst": name}) for name in ("owner", "")]
    assert [(each.question, each.shared) for each in asked.earlier] == [tuple(old)]
    statement = {"plan": canonical(plan.question.raw), "event": None}
    assert asked.earlier[0].statement == hashed(facts | statement | {"analyst": "owner"})
    alone = planned(COUNT)
    part = {"event": None, "output": None, "analyst": "owner", "plan": canonical(alone.bounded)}
    assert Asked.of(alone, asked.asker).earlier_parts == ((hashed(facts | part),),)


def hashed(facts: dict[str, object]) -> str:
    """The hash of canonical JSON, by hand."""
    return hashlib.sha256(
        json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def test_a_limit_is_no_part_of_a_key() -> None:
    declared = dataset()
    keys = {
        asker(declared, budget).question_key(planned()) for budget in (Budget(1), Budget(2, "1e-6"))
    }
    assert len(keys) == 1
    old = {
        replace(asker(declared, BUDGET), limit=(each, "0")).question_key(planned())
        for each in ("1", "2")
    }
    assert len(old - keys) == 2, "keys of earlier formats are noticed"


def test_a_key_names_the_account_that_pays() -> None:
    names = [
        {},
        {"analyst": "ann"},
        {"purpose": "research"},
        {"analyst": "ann", "purpose": "research"},
    ]
    assert len({key(**each) for each in names}) == len(names)


@pytest.mark.parametrize(
    "asked",
    [each for each in corpus.statements() if each.verdict == "answered"],
    ids=attrgetter("name"),
)
def test_the_only_part_of_a_question_is_what_it_is_by_itself(asked: corpus.Statement) -> None:
    question = understand(
        asked.text, corpus.DATASET, today=corpus.TODAY, scalars=lambda _: Fraction(1)
    )
    bounded = compile_plan(question.raw, corpus.DATASET, Norm.L1)
    about = who().about(corpus.DATASET)
    for place in range(len(bounded.parts)):
        alone = about._alone(bounded, place, {})
        assert about._alone(alone, 0, {}) == alone
    if len(bounded.parts) == 1:
        assert alone == bounded


# two read one column, one reads another, one reads both, and the test a third
SEVERAL = (
    "SELECT SUM(amount), AVG(amount), COUNT(*), SUM(CASE WHEN region = 'R01' THEN amount END), "
    "COUNT(*) FILTER (WHERE region = 'R01'), COUNT(*) FILTER (WHERE product IS NULL) "
    "FROM events WHERE day > DATE '2026-01-05'"
)


def forms(asker: Asker, bounded: Bounded) -> tuple[list[str], list[str]]:
    """The forms of the parts of a plan, computed together and each by itself."""
    each = [form(asker._alone(bounded, place, {})) for place in range(len(bounded.parts))]
    return asker.part_forms(bounded, form(bounded)), each


def test_parts_whose_forms_are_written_together_have_the_forms_of_each_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [each.text for each in corpus.statements() if each.verdict == "answered"] + [SEVERAL]
    several = []
    for text in texts:
        question = understand(
            text, corpus.DATASET, today=corpus.TODAY, scalars=lambda _: Fraction(1)
        )
        bounded = compile_plan(question.raw, corpus.DATASET, Norm.L1)
        if len(bounded.parts) > 1 and not bounded.tracked.raw.is_open:
            several.append(bounded)
    about = who().about(corpus.DATASET)
    for bounded in several:
        together, each = forms(about, bounded)
        assert together == each
    # relations that are shared by parts that read different columns are noticed
    monkeypatch.setattr("sfumato.query.asker.columns_above", lambda _: frozenset())
    assert any(one != other for one, other in (forms(about, bounded) for bounded in several))


def test_a_statement_keeps_its_key_at_any_price() -> None:
    keys = {
        who().statement_key(planned(COUNT, **asked).question)
        for asked in ({"epsilon": 1}, {"rho": 1})
    }
    assert len(keys) == 1
    assert keys != {who().statement_key(planned().question)}


def test_the_log_of_the_owner_never_quotes_a_value(
    log: list[str], ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineFailed):
        release(Asked.of(planned(), who()), Failing(log, ledger, ValueError(SECRET)), ledger)
    assert "Secret" not in caplog.text
