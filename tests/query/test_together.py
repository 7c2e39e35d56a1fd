# SPDX-License-Identifier: Apache-2.0
"""Charges that are taken together: all or none, each used once, the rest given back."""

from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import Charge, charge_for
from sfumato.errors import (
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    KeyUsed,
    MissingDeclaration,
    Refused,
    WrongUse,
)
from sfumato.ledger import Ledger
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.ledger.verify import verify
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query import statements as asking_room
from sfumato.query import together as room
from sfumato.query.choose import plan_for_price
from sfumato.query.price import Price, price
from sfumato.query.session import Session
from sfumato.query.statements import Statements
from sfumato.query.together import Held, ceiling, together
from sfumato.sql.lower import understand
from tests.contracts.charges import BODY, charges, opened, pure, state_of
from tests.contracts.people import dataset, session

PRICE = Price(epsilon=Fraction(1))
ONE, TWO = ("one", PRICE), ("two", PRICE)
ABOVE = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)"
NESTED = ABOVE.replace(
    "SELECT AVG(age) FROM people",
    "SELECT AVG(age) FROM people WHERE hours > (SELECT AVG(hours) FROM people)",
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    found = opened(tmp_path / "l.db")
    yield found
    found.close()


def states(ledger: Ledger) -> list[str]:
    return [row.state for row in charges(ledger)]


def test_a_question_of_several_charges_takes_them_together_or_pays_for_nothing(
    ledger: Ledger,
) -> None:
    with (
        pytest.raises(BudgetExceeded, match=r"costs epsilon 1\.2"),
        together(ledger, {ONE: pure("0.6", "a"), TWO: pure("0.6", "b")}),
    ):
        pytest.fail("nothing was taken")
    assert charges(ledger) == []
    with together(ledger, {ONE: pure("0.6", "a"), TWO: pure("0.4", "b")}) as held:
        assert states(ledger) == [RESERVED, RESERVED]
        charge = held.reserve(ONE, pure("0.6", "a"))
        ledger.execute(charge)
        ledger.commit(charge, BODY)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(pure("0.1", "of somebody else"))
        charge = held.reserve(TWO, pure("0.4", "b, as it turned out"))
        ledger.execute(charge)
        ledger.commit(charge, BODY)
    assert sorted(states(ledger)) == [COMMITTED, COMMITTED, VOIDED]
    assert ledger.balance("d").spent.epsilon == 10**12
    assert verify(ledger).problems == ()


def test_a_charge_that_is_not_used_is_given_back(ledger: Ledger) -> None:
    with (
        pytest.raises(ValueError),
        together(ledger, {ONE: pure("0.6", "a"), TWO: pure("0.4", "b")}) as held,
    ):
        ledger.execute(held.reserve(ONE, pure("0.6", "a")))
        raise ValueError
    assert states(ledger) == [EXECUTING, VOIDED]


def test_a_held_charge_is_used_once(ledger: Ledger) -> None:
    with together(ledger, {ONE: pure("0.6", "a")}) as held:
        first = held.reserve(ONE, pure("0.6", "a"))
        ledger.execute(first)
        with pytest.raises(BudgetExceeded):
            held.reserve(ONE, pure("0.6", "again"))
    assert state_of(ledger, first) == EXECUTING


def test_a_dearer_request_than_was_held_is_refused_and_the_rest_given_back(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded), together(ledger, {ONE: pure("0.6", "a")}) as held:
        held.reserve(ONE, pure("1.1", "dearer"))
    assert states(ledger) == [VOIDED]


def test_what_cannot_be_given_back_ends_with_its_lease(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with together(ledger, {ONE: pure("0.6", "a")}):
        ledger._close_all(lambda rows: None, "expired")
    assert states(ledger) == [VOIDED]


# --- the ceiling ---------------------------------------------------------------------------------


def covers(one: Charge, other: Charge) -> bool:
    """Whether a charge costs at least as much as another one at both gates."""
    pure_enough = one.epsilon is None or (
        other.epsilon is not None and other.epsilon <= one.epsilon
    )
    return pure_enough and other.rho <= one.rho and other.delta <= one.delta


PRICES = [
    {"epsilon": "0.3"},
    {"rho": "0.013"},
    {"epsilon": 1, "delta": "1e-7"},
    {"rho": 1, "delta": "1e-7"},
]
STATEMENTS = [
    "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(hours) AS m, MEDIAN(age) AS q FROM people",
    "SELECT sex, AVG(age) AS m, STDDEV(hours) AS d FROM people GROUP BY sex",
    "SELECT QUANTILE_CONT(age, 0.1) AS a, QUANTILE_CONT(hours, 0.9) AS b FROM people GROUP BY smoker",
    "SELECT COUNT(DISTINCT age) AS n FROM people WHERE smoker",
    "SELECT job, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY job",
]


@pytest.mark.parametrize("asked", PRICES, ids=repr)
@pytest.mark.parametrize("relation", list(Relation))
def test_no_question_costs_more_than_the_ceiling_of_its_price(
    asked: dict[str, object], relation: Relation
) -> None:
    declared, stated = (
        dataset(relation=relation, unit=sf.Unit("person", max_rows=2, max_groups=2)),
        price(**asked),
    )
    norm = Norm.L1 if stated.epsilon is not None else Norm.L2
    most = charge_for(account(ceiling(stated, norm, relation)))
    for sql in STATEMENTS:
        if ("job" in sql) == (stated.delta is not None):
            found = plan_for_price(understand(sql, declared), declared, stated)
            assert covers(most, found.charge), sql
            assert not covers(
                charge_for(account(ceiling(_less(stated), norm, relation))), found.charge
            ), sql


def _less(stated: Price) -> Price:
    """A broken price: a hundredth less."""
    return stated.scaled(Fraction(99, 100))


# --- whole questions -----------------------------------------------------------------------------


def test_somebody_else_in_between_leaves_nothing_half_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        taken = _with_somebody_between(asking, monkeypatch)
        asking.query(ABOVE, epsilon=1)
        assert taken == [BudgetExceeded]
        assert asking.budget.spent == "1"


def test_charges_taken_one_after_the_other_are_left_half_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        asking_room, "together", lambda ledger, requests: nullcontext(Held(ledger, {}))
    )
    with session(tmp_path, budget=(1, 0)) as asking:
        taken = _with_somebody_between(asking, monkeypatch)
        with pytest.raises(BudgetExceeded):
            asking.query(ABOVE, epsilon=1)
        assert taken == [None]
        assert asking.budget.spent != "0"


def _with_somebody_between(
    asking: Session, monkeypatch: pytest.MonkeyPatch
) -> list[type[Exception] | None]:
    """Another analyst asks for what is left as soon as the first charge is committed.

    How that ended.
    """
    taken: list[type[Exception] | None] = []
    commit = Ledger.commit

    def committed(self: Ledger, *values: object, **named: object) -> None:
        commit(self, *values, **named)
        if not taken:
            taken.append(None)
            try:
                asking.asking_as("bob").query("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
            except BudgetExceeded:
                taken[0] = BudgetExceeded

    monkeypatch.setattr(Ledger, "commit", committed)
    return taken


def test_nested_questions_are_taken_together_too(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        with pytest.raises(BudgetExceeded, match=r"costs epsilon 1\.2"):
            asking.query(NESTED, epsilon="1.2")
        assert asking.budget.spent == "0"
        answer = asking.query(NESTED, epsilon=1)
        assert asking.budget.spent == "1"
        assert asking.query(NESTED, epsilon=1).bytes == answer.bytes
        assert asking.verify().problems == ()


def test_limits_to_be_learnt_are_taken_together_with_the_question(tmp_path: Path) -> None:
    unit = sf.Unit("person", max_rows=sf.AUTO)
    with session(tmp_path, unit=unit, budget=(1, 0)) as asking:
        with pytest.raises(BudgetExceeded):
            asking.query("SELECT SUM(age) AS s FROM people", epsilon="1.2")
        assert asking.budget.spent == "0"
        asking.query("SELECT SUM(age) AS s FROM people", epsilon=1)
        assert asking.budget.spent == "1"


def test_a_failing_engine_gives_back_what_was_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        monkeypatch.setattr(asking._engine, "_run", lambda *_: 1 / 0)
        with pytest.raises(EngineFailed):
            asking.query(ABOVE, epsilon=1)
        assert (asking.budget.spent, asking.budget.reserved) == ("0.5", "0")
        assert states(asking._ledger) == [FORFEITED, VOIDED]


def test_what_is_stored_is_not_held_again(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        first = asking.query(NESTED, epsilon="0.9")
        # nothing is left that could be held
        asking.query("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
        assert asking.query(NESTED, epsilon="0.9").bytes == first.bytes
        asking._known._requests.clear()
        assert asking.query(NESTED, epsilon="0.9").bytes == first.bytes


def test_a_refusal_of_the_last_step_is_free(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        with pytest.raises((Refused, MissingDeclaration)):
            asking.query(f"{ABOVE} GROUP BY nothing", epsilon=1)
        assert charges(asking._ledger) == []


# --- what another purpose has paid for ------------------------------------------------------------


def asked_for_another_purpose(folder: Path, *, dataset: object, own: object) -> tuple[str, str]:
    """What the dataset and an account have spent after a question that another purpose of the
    analyst paid 0.2 for.
    """
    with session(folder, budget=(dataset, 0), analyst="ann", purpose="one") as asking:
        asking._ledger.allocate("tiny", None, purpose="one", analyst="ann")
        asking._ledger.allocate("tiny", sf.Budget(own), purpose="two", analyst="ann")
        paid = asking.query(NESTED, epsilon="0.2")
        again = asking.asking_as("ann", "two").query(NESTED, epsilon="0.2", time_limit=5)
        assert again.rows == paid.rows
        assert asking.verify().problems == ()
        left = asking.asking_as("ann", "two").budget.left
        return asking.budget.spent, str(float(left))


def test_what_another_purpose_paid_for_is_shared_step_by_step(tmp_path: Path) -> None:
    # neither the dataset, which has nothing left, nor the account is debited twice
    assert asked_for_another_purpose(tmp_path, dataset="0.2", own="0.2") == ("0.2", "0.0")


def test_a_step_that_is_held_beside_its_share_is_refused_or_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Statements, "answer_to_share", lambda self, step: None)
    with pytest.raises(BudgetExceeded):
        asked_for_another_purpose(tmp_path, dataset="0.2", own="0.2")


def test_a_share_that_cannot_be_paid_is_refused_with_the_rest_for_nothing(tmp_path: Path) -> None:
    with session(tmp_path, budget=(10, 0), analyst="ann", purpose="one") as asking:
        asking._ledger.allocate("tiny", None, purpose="one", analyst="ann")
        asking._ledger.allocate("tiny", sf.Budget("0.19"), purpose="two", analyst="ann")
        asking.query("SELECT AVG(age) FROM people", epsilon="0.1")
        before = len(charges(asking._ledger))
        with pytest.raises(BudgetExceeded, match=r"costs epsilon 0\.2"):
            asking.asking_as("ann", "two").query(ABOVE, epsilon="0.2")
        assert len(charges(asking._ledger)) == before


def test_a_later_step_that_turns_out_to_be_shared_is_paid_in_place_of_what_was_held(
    tmp_path: Path,
) -> None:
    with session(tmp_path, budget=(100_000, 0), analyst="ann", purpose="one") as asking:
        # so exact that the mean is 29.5 for both purposes, and the question above it the same
        asking.query("SELECT COUNT(*) AS n FROM people WHERE age > 29.5", epsilon=20_000)
        two = asking.asking_as("ann", "two")
        two.query(ABOVE, epsilon=40_000)
        ledger = asking._ledger
        assert ledger.standing("tiny", "two", "ann").spent.epsilon == 40_000 * 10**12
        assert (ledger.balance("tiny").spent.epsilon, ledger.balance("tiny").reserved.epsilon) == (
            40_000 * 10**12,
            0,
        )
        assert asking.verify().problems == ()


# --- keys -----------------------------------------------------------------------------------------


def spent_under(asking: Session, key: object) -> str:
    """What has been spent after a question with a sub-query was refused for its idempotency key."""
    with pytest.raises(WrongUse):
        asking.query(ABOVE, epsilon="0.2", key=key)
    return asking.budget.spent


@pytest.mark.parametrize("key", ["used", "k" * 300, "a\nb", 5])
def test_a_key_that_cannot_be_had_costs_no_sub_query(tmp_path: Path, key: object) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        asking.query("SELECT COUNT(*) AS n FROM people", epsilon="0.1", key="used")
        assert spent_under(asking, key) == "0.1"
        answer = asking.query(ABOVE, epsilon="0.2", key="new")
        assert asking.query(ABOVE, epsilon="0.2", key="new").bytes == answer.bytes
        with pytest.raises(KeyUsed):
            asking.query(ABOVE, epsilon="0.3", key="new")


def test_a_key_that_is_looked_at_last_costs_a_sub_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_room, "require_key", lambda *_: None)
    with session(tmp_path, budget=(1, 0)) as asking:
        asking.query("SELECT COUNT(*) AS n FROM people", epsilon="0.1", key="used")
        assert spent_under(asking, "used") == "0.2"


# --- waiting --------------------------------------------------------------------------------------

INNER = "(SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people WHERE sex = '{}'))"
TWINS = f"SELECT COUNT(*) AS n FROM people WHERE age > {INNER.format('F')} AND hours < {INNER.format('M')}"


def test_a_question_does_not_wait_for_a_key_that_it_holds(tmp_path: Path) -> None:
    # 20 are F and 20 are M: two sub-queries become the same one, and it is paid once
    with session(tmp_path) as asking:
        asking.query("SELECT COUNT(*) AS n FROM people WHERE sex = 'M'", epsilon=20_000 / 6)
        asking.query(TWINS, epsilon=20_000, time_limit=30)
        assert asking.budget.reserved == "0"
        assert asking.verify().problems == ()


def test_charges_held_under_the_key_of_a_guess_wait_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_unawaited_request", lambda step, request: request)
    with session(tmp_path) as asking, pytest.raises(Cancelled):
        asking.query(TWINS, epsilon=20_000, time_limit=1)


def test_a_guess_that_happens_to_be_stored_is_held_all_the_same(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        for guess in range(2):
            asking.query(f"SELECT COUNT(*) AS n FROM people WHERE age > {guess}", epsilon="0.3")
        with pytest.raises(BudgetExceeded, match=r"costs epsilon 0\.6"):
            asking.query(ABOVE, epsilon="0.6")
        assert asking.budget.spent == "0.6"


def test_a_question_that_is_cancelled_says_whether_any_of_it_was_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _cancelled_after_a_sub_query(tmp_path / "right", monkeypatch)
    monkeypatch.setattr(Held, "answered", lambda self: None)
    assert not _cancelled_after_a_sub_query(tmp_path / "wrong", monkeypatch)


def _cancelled_after_a_sub_query(folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether it is said that something was paid."""
    folder.mkdir()
    stop, commit = sf.Stop(), Ledger.commit

    def committed(self: Ledger, *values: object, **named: object) -> None:
        commit(self, *values, **named)
        stop.stop()

    with session(folder, budget=(1, 0)) as asking, monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", committed)
        with pytest.raises(Cancelled) as cancelled:
            asking.query(ABOVE, epsilon="0.2", stop=stop)
        assert asking.budget.spent == "0.1"
    return cancelled.value.paid
