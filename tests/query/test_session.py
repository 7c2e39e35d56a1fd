# SPDX-License-Identifier: Apache-2.0
"""A session end to end: exact where the noise is almost surely zero, free where it must be."""

import threading
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import duckdb as duckdb_room
from sfumato.engines.emit import Statement
from sfumato.errors import AccountFrozen, BudgetExceeded, Cancelled, KeyUsed, Refused, WrongUse
from sfumato.examples.census import SOURCE, census
from sfumato.ledger import Ledger, stored_answers
from sfumato.ledger.store import sqlite_rows
from sfumato.query.account import Account
from sfumato.query.answer import Answer
from sfumato.query.statements import Statements
from tests.contracts.charges import charges
from tests.contracts.people import EXACTLY, FRAME, session

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (COUNT, [(40,)]),
        ("SELECT COUNT(*) AS n FROM people WHERE age >= 30 AND sex = 'female'", [(10,)]),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", [("female", 20), ("male", 20)]),
        ("SELECT SUM(age) AS s FROM people WHERE sex = 'F'", [(590,)]),
        ("SELECT SUM(hours) AS h FROM people", [(195,)]),
        (
            "SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker",
            [(False, 30), (True, 10), (None, 0)],
        ),
        ("SELECT SUM(age) / COUNT(*) AS r FROM people", [(29.5,)]),
        (
            "SELECT COUNT(*) AS n FROM people WHERE job IN ('job 0', 'job 1') OR born IS NULL",
            [(27,)],
        ),
        (
            "SELECT COUNT(*) AS n FROM people WHERE NOT (born BETWEEN DATE '1960-01-01' AND DATE '1969-12-31')",
            [(20,)],
        ),
    ],
)
def test_with_noise_that_is_zero_the_answer_is_exact(
    tmp_path: Path, sql: str, expected: list[tuple[object, ...]]
) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(sql, epsilon=EXACTLY)
    assert [tuple(row) for row in answer.rows] == expected


def test_a_mean_and_a_share_are_exact_too(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query("SELECT AVG(age) AS m, AVG(smoker) AS p FROM people", epsilon=EXACTLY)
    assert answer.rows == [[29.5, 0.25]]


def test_the_census_extract_agrees_with_pandas(tmp_path: Path) -> None:
    raw = pd.read_csv(SOURCE, dtype=str)
    with sf.connect(
        {"people": census()}, dataset="acs", budget=sf.Budget(10**6), ledger=tmp_path / "l.db"
    ) as opened:
        count = opened.query("SELECT SEX, COUNT(*) AS n FROM people GROUP BY SEX", epsilon=EXACTLY)
        poor = opened.query("SELECT COUNT(*) AS n FROM people WHERE POVPIP < 100", epsilon=EXACTLY)
        total = opened.query(
            "SELECT SUM(PINCP) AS s, COUNT(PINCP) AS n FROM people", epsilon=900_000
        )
    assert [row[1] for row in count.rows] == [int(raw.SEX.eq(code).sum()) for code in ("1", "2")]
    ratio = pd.to_numeric(raw.POVPIP, errors="coerce")
    assert poor.rows == [[int((ratio < 100).sum())]]
    income = pd.to_numeric(raw.PINCP, errors="coerce").dropna()
    assert total.rows[0][1] == len(income)
    # its noise has a scale of at most 1,341,000 / 300,000
    assert abs(float(total.rows[0][0]) - income.sum()) <= 200
    assert abs(float(total.rows[0][2]) - income.clip(upper=200_000).sum()) <= 200


def test_parquet_csv_pandas_polars_and_duckdb_give_the_same(tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(FRAME, tmp_path / "p.parquet")
    pyarrow.csv.write_csv(FRAME, tmp_path / "p.csv")
    frames = [
        str(tmp_path / "p.parquet"),
        tmp_path / "p.csv",
        FRAME.to_pandas(),
        __import__("polars").from_arrow(FRAME),
    ]
    sql = "SELECT sex, COUNT(*) AS n, SUM(age) AS s, SUM(hours) AS h FROM people WHERE born >= DATE '1965-01-01' GROUP BY sex"
    found = []
    for index, frame in enumerate(frames):
        folder = tmp_path / str(index)
        folder.mkdir()
        with session(folder, frame) as opened:
            found.append(opened.query(sql, epsilon=EXACTLY).rows)
    with duckdb.connect() as plain:
        plain.register("people", FRAME)
        rows = plain.execute(
            sql.replace("born >=", "CAST(born AS DATE) >=") + " ORDER BY sex"
        ).fetchall()
    assert found == [[["female", *rows[0][1:]], ["male", *rows[1][1:]]]] * 4


def test_the_same_question_is_the_same_bytes_at_no_cost_even_when_opened_again(
    tmp_path: Path,
) -> None:
    with session(tmp_path) as opened:
        first = opened.query(COUNT, epsilon="0.5")
        assert (
            opened.query("select count(*) n from people", epsilon=Fraction(1, 2)).bytes
            == first.bytes
        )
    with session(tmp_path) as opened:
        assert opened.query(COUNT, epsilon=0.5).bytes == first.bytes
        assert opened.budget.spent == "0.5"


def test_another_higher_price_version_or_analyst_is_another_question(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        opened.query(COUNT, epsilon=1)
        # the same release under another name
        opened.query("SELECT COUNT(*) AS persons FROM people", epsilon=1)
        opened.query(COUNT, epsilon=2)
    for option in ({"version": "2"}, {"analyst": "guest"}):
        with session(tmp_path, **option) as opened:
            opened.query(COUNT, epsilon=1)
            spent = opened.budget.spent
    assert spent == "5"


REFUSED = [
    "SELECT * FROM people", "SELECT age FROM people", "DROP TABLE people", "nonsense",
    "SELECT COUNT(*) FROM nowhere", "SELECT COUNT(*) FROM people WHERE wage > 3", "SELECT job, COUNT(*) FROM people GROUP BY job",
    "SELECT SUM(job) FROM people", "", "SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people",
]  # fmt: skip


def test_refusals_leave_the_ledger_as_it_is(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, 0)) as opened:
        opened.query(COUNT, epsilon="0.5")
        before = opened.verify()
        for sql in REFUSED:
            with pytest.raises(Refused):
                opened.query(sql, epsilon="0.1")
        for asked in ({"epsilon": "0.6"}, {"rho": "0.1"}, {"error": "5%", "max_epsilon": 1}):
            with pytest.raises(Refused):
                opened.query(COUNT, **asked)
        for wrong in ({"epsilon": 0}, {}, {"epsilon": "x"}, {"epsilon": 1, "delta": "1e-9"}):
            with pytest.raises(WrongUse):
                opened.query(COUNT, **wrong)
        assert opened.verify() == before


def test_the_edge_of_the_budget(tmp_path: Path) -> None:
    with session(tmp_path, budget=("0.3", 0)) as opened:
        for index in range(3):
            opened.query(f"SELECT COUNT(*) AS n FROM people WHERE age > {index}", epsilon=0.1)
        assert (opened.budget.left, opened.budget.spent) == (0, "0.3")
        with pytest.raises(BudgetExceeded, match="has nothing left"):
            opened.query(COUNT, epsilon="1e-12")


def test_reopening_keeps_the_spending_and_needs_no_budget(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, "1e-6")) as opened:
        opened.query(COUNT, epsilon="0.25")
        before = repr(opened.budget)
    with session(tmp_path, budget=None) as opened:
        assert repr(opened.budget) == before
        assert opened.verify().problems == ()


def test_the_account_is_exact_and_shows_both_gates(tmp_path: Path) -> None:
    with session(tmp_path, budget=(3, "1e-6")) as opened:
        opened.query(COUNT, rho="0.01")
        account = opened.budget
        form = account.to_json()
    assert (account.spent, account.spent_rho, account.reserved) == ("unbounded", "0.01", "0")
    assert form["limit"] == {"epsilon": "3", "delta": "0.000001"}
    assert form["spent"] == {"epsilon": "unbounded", "rho": "0.01", "delta": "0"}
    assert (
        Fraction(form["left"]["rho"])
        == account.left_rho
        == Fraction(form["gates"]["zcdp"]) - Fraction(1, 100)
    )
    assert account.left**2 / 2 <= account.left_rho < (account.left + Fraction(1, 10**12)) ** 2 / 2
    # what is not counted any more is not shown as if it were beyond its limit
    assert repr(account).splitlines()[1].startswith("spent     rho 0.01 of ")
    assert "no epsilon is added up since Gaussian noise was bought" in repr(account)
    assert "unbounded" not in repr(account)


def test_a_pure_account_shows_what_its_gate_has_booked(tmp_path: Path) -> None:
    for budget, gates in ((3, 0), 1), ((3, "1e-6"), 2):
        folder = tmp_path / str(gates)
        folder.mkdir()
        with session(folder, budget=budget) as opened:
            opened.query(COUNT, epsilon="0.5")
            lines = repr(opened.budget).splitlines()
        assert lines[1] == "spent     epsilon 0.5 of 3 (pure gate)"
        assert len(lines) == 2 + gates


def test_an_answer_that_was_stored_says_that_it_was_paid_before(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first, again = (opened.query(COUNT, epsilon=1) for _ in range(2))
        other = opened.query(COUNT, epsilon=2)
    assert (first.recalled, again.recalled, other.recalled) == (False, True, False)
    assert first.bytes == again.bytes
    for shown in (repr, Answer._repr_html_, Answer.explain):
        assert "paid before" not in shown(first)
        assert "epsilon = 1 (paid before, nothing now)" in shown(again)
        assert "paid before" in shown(again.consistent())
    assert again.to_json() == first.to_json()


def test_what_is_answered_by_an_error_asked_again_was_paid_before(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        assert [opened.query(COUNT, error=10, max_epsilon=5).recalled for _ in range(2)] == [
            False,
            True,
        ]


def test_a_pure_account_has_no_second_gate(tmp_path: Path) -> None:
    with session(tmp_path, budget=(3, 0)) as opened:
        assert opened.budget.to_json()["gates"] == {
            "pure": "3",
            "zcdp": None,
            "delta": "0",
        }
        assert "zCDP" not in repr(opened)
        assert opened.budget.left_rho == 0


def test_eight_threads_with_one_question_pay_once(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        found: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: found.append(opened.query(COUNT, epsilon="0.5").bytes))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1
        assert opened.budget.spent == "0.5"


def test_a_closed_session_answers_nothing(tmp_path: Path) -> None:
    opened = session(tmp_path)
    opened.close()
    with pytest.raises(sf.SfumatoError):
        opened.query(COUNT, epsilon=1)


def test_an_open_session_shows_what_a_boolean_does_not_read(tmp_path: Path) -> None:
    columns = {"smoker": sf.Boolean(), "sex": sf.Boolean(true="F", false="M")}
    table = sf.Table(pa.table({"smoker": ["1"], "sex": ["F"]}), columns=columns)
    with sf.connect(
        {"people": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "ledger.db"
    ) as opened:
        title, notice, *_ = repr(opened).splitlines()
        assert (title, notice) == ("Session of 'd': people", *opened.dataset.notices)
        assert notice.startswith("people.smoker: true is written true")


def test_a_purpose_has_an_account_of_its_own(tmp_path: Path) -> None:
    with session(tmp_path, purpose="research", analyst="ann") as asking:
        asking.query(COUNT, epsilon="0.5")
        ledger = asking._ledger
        assert ledger.standing("tiny", "research", "ann").spent.epsilon == 5 * 10**11
        ledger.allocate("tiny", sf.Budget("0.7"), purpose="research")
        with pytest.raises(BudgetExceeded, match="account 'tiny/research'"):
            asking.query("SELECT SUM(age) AS s FROM people", epsilon="0.3")


def test_a_key_binds_a_question_to_its_answer(tmp_path: Path) -> None:
    with session(tmp_path) as asking:
        first = asking.query(COUNT, epsilon="0.5", key="k")
        assert asking.query(COUNT, epsilon="0.5", key="k").bytes == first.bytes
        for other in ("0.4", "0.5"):
            sql = COUNT if other == "0.4" else "SELECT SUM(age) AS s FROM people"
            with pytest.raises(KeyUsed):
                asking.query(sql, epsilon=other, key="k")


def test_answers_are_shared_where_the_owner_says_so(tmp_path: Path) -> None:
    with session(tmp_path, analyst="ann") as asking:
        first = asking.query(COUNT, epsilon="0.5")
        asking._ledger.share_answers("tiny", allowed=True)
    with session(tmp_path, analyst="bob") as asking:
        assert asking.query(COUNT, epsilon="0.5").bytes == first.bytes
        assert asking.budget.spent == "0.5"
        assert asking._ledger.standing("tiny", "unstated", "bob").spent.epsilon == 5 * 10**11
        assert asking.verify().problems == ()


def test_another_asker_is_charged_apart_over_the_same_data(tmp_path: Path) -> None:
    with session(tmp_path, analyst="ann", budget=(2, 0)) as asking:
        bob = asking.asking_as("bob", "research")
        first, other = asking.query(COUNT, epsilon="0.5"), bob.query(COUNT, epsilon="0.5")
        assert first.bytes != other.bytes
        assert bob.query(COUNT, epsilon="0.5").bytes == other.bytes
        assert asking._ledger.standing("tiny", "research", "bob").spent.epsilon == 5 * 10**11
        assert asking._ledger.standing("tiny", "unstated", "ann").spent.epsilon == 5 * 10**11
        bob.close()
        assert bob.preview("SELECT SUM(age) AS s FROM people", epsilon=1).cost.epsilon == "1"
        assert asking.query(COUNT, epsilon="0.25").rows
    for each in (asking, bob):
        with pytest.raises(sf.SfumatoError):
            each.query(COUNT, epsilon="0.5")


def test_an_asker_whose_statements_are_anothers_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keeping_statements(value: object, **changes: object) -> object:
        return value if isinstance(value, Statements) else replace(value, **changes)

    monkeypatch.setattr("sfumato.query.session.replace", keeping_statements)
    with pytest.raises(AssertionError):
        test_another_asker_is_charged_apart_over_the_same_data(tmp_path)


@pytest.mark.parametrize(
    ("analyst", "purpose"), [("", "p"), ("a", ""), (None, "p"), ("a\x00", "p"), ("a" * 201, "p")]
)
def test_an_asker_has_names_that_can_be_stored(
    tmp_path: Path, analyst: object, purpose: object
) -> None:
    with session(tmp_path) as asking, pytest.raises(WrongUse):
        asking.asking_as(analyst, purpose)


def test_an_asker_sees_what_is_left_to_it(tmp_path: Path) -> None:
    with session(tmp_path, analyst="ann", budget=(2, "1e-6")) as asking:
        asking._ledger.allocate("tiny", sf.Budget("0.5"), purpose="research")
        asking._ledger.allocate("tiny", sf.Budget("0.1"), purpose="research", analyst="bob")
        asking._ledger.allocate("tiny", sf.Budget(2, "1e-6"), purpose="unstated", analyst="ann")
        bob, eve = asking.asking_as("bob", "research"), asking.asking_as("eve", "research")
        assert [each.budget.left for each in (asking, bob, eve)] == [
            2,
            Fraction(1, 10),
            Fraction(1, 2),
        ]
        assert "own       tiny/research/bob: epsilon 0 of Budget(epsilon=0.1, delta=0)" in repr(
            bob.budget
        )
        assert "own" not in repr(eve.budget)
        assert bob.budget.to_json()["left"] == {"epsilon": "0.1", "rho": "0", "delta": "0"}
        # a gaussian would cost less of the dataset's, and bob's account is pure
        assert asking.query(COUNT, error=40, max_epsilon="0.1").notes[0].startswith("Gaussian")
        assert bob.query(COUNT, error=40, max_epsilon="0.1").notes == ()
        with pytest.raises(
            BudgetExceeded, match=r"has epsilon=0\.02\d* left. \(account 'tiny/research/bob'\)"
        ):
            bob.query("SELECT SUM(age) AS s FROM people", epsilon=3)


def test_a_session_in_which_everybody_has_the_dataset_left_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, "left", property(lambda self: self.balance.left.epsilon))
    with pytest.raises(AssertionError):
        test_an_asker_sees_what_is_left_to_it(tmp_path)


def interrupted(
    asking: sf.Session, monkeypatch: pytest.MonkeyPatch, **options: object
) -> Cancelled:
    """How a question ends whose statement never does, once its caller stops waiting.

    Without options it is stopped.
    """
    stop, execute = sf.Stop(), Ledger.execute

    def executed(self: Ledger, charge: str) -> None:
        execute(self, charge)
        stop.stop()

    with monkeypatch.context() as patch:
        patch.setattr(duckdb_room, "_statements", lambda *_: (Statement(ENDLESS, (0,)),))
        patch.setattr(Ledger, "execute", executed)
        with pytest.raises(Cancelled) as cancelled:
            asking.query(COUNT, epsilon="0.1", **(options or {"stop": stop}))
    return cancelled.value


ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) AS a, range(10000000) AS b"


def test_what_is_cancelled_is_interrupted_and_its_cost_stays_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with session(tmp_path, budget=(1, 0), analyst="ann") as asking:
        for _ in range(4):
            cancelled = interrupted(asking, monkeypatch)
            assert (cancelled.paid, cancelled.__context__, cancelled.__cause__) == (
                True,
                None,
                None,
            )
        assert asking.budget.spent == "0.4"
        assert {(row.state, row.reason) for row in charges(asking._ledger)} == {
            ("forfeited", "cancelled")
        }
        # four do not freeze the analyst, and the next question is answered
        assert asking.query(COUNT, epsilon="0.1").rows
        assert caplog.text == ""


def test_cancelled_questions_that_count_would_freeze_the_analyst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_rows, stored_answers):
        monkeypatch.setattr(module, "COUNTED", (*module.COUNTED, "cancelled"))
    with session(tmp_path, budget=(1, 0), analyst="ann") as asking:
        for _ in range(3):
            interrupted(asking, monkeypatch)
        with pytest.raises(AccountFrozen):
            asking.query(COUNT, epsilon="0.1")


def test_a_stop_from_another_thread_interrupts_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, rows = sf.Stop(), duckdb_room._rows

    def running(connection: duckdb.DuckDBPyConnection, statement: str) -> object:
        # the statement runs by then, or is about to
        threading.Timer(0.05, stop.stop).start()
        return rows(connection, statement)

    monkeypatch.setattr(duckdb_room, "_rows", running)
    with session(tmp_path, budget=(1, 0)) as asking:
        began = time.monotonic()
        assert interrupted(asking, monkeypatch, stop=stop).paid
        assert time.monotonic() - began < 30


def test_a_session_that_closes_leaves_no_charge_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_room, "_statements", lambda *_: (Statement(ENDLESS, (0,)),))
    asking, running, ends = session(tmp_path, budget=(1, 0)), threading.Event(), []
    rows, spill = duckdb_room._rows, Path(asking._engine._spill)

    def began(connection: duckdb.DuckDBPyConnection, statement: str) -> object:
        running.set()
        return rows(connection, statement)

    def ask() -> None:
        try:
            asking.query(COUNT, epsilon="0.1")
        except Cancelled as cancelled:
            ends.append(cancelled.paid)

    monkeypatch.setattr(duckdb_room, "_rows", began)
    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    assert running.wait(10)
    asking.close()
    asker.join(10)
    assert (ends, spill.exists()) == ([True], False)
    with session(tmp_path, budget=(1, 0)) as again:
        assert [(row.state, row.reason) for row in charges(again._ledger)] == [
            ("forfeited", "cancelled")
        ]


def test_a_time_limit_interrupts_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(tmp_path, budget=(1, 0)) as asking:
        # whatever is asked once takes longer
        asking.preview(COUNT, epsilon=1)
        began = time.monotonic()
        assert interrupted(asking, monkeypatch, time_limit=1).paid
        assert time.monotonic() - began < 30
        assert asking.budget.spent == "0.1"


@pytest.mark.parametrize("moment", ["before", "waiting for a lane", "after the reservation"])
def test_a_stop_before_the_data_is_read_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    stop = sf.Stop()
    with session(tmp_path, budget=(1, 0)) as asking:
        if moment == "before":
            stop.stop()
        if moment == "waiting for a lane":
            held = asking._engine._lanes.take()
            held.__enter__()
            threading.Timer(0.02, stop.stop).start()
        if moment == "after the reservation":
            reserve = Ledger.reserve

            def reserved(self: Ledger, *given: object) -> str:
                charge = reserve(self, *given)
                stop.stop()
                return charge

            monkeypatch.setattr(Ledger, "reserve", reserved)
        with pytest.raises(Cancelled) as cancelled:
            asking.query(COUNT, epsilon="0.1", stop=stop)
        assert not cancelled.value.paid
        assert (asking.budget.spent, asking.budget.reserved) == ("0", "0")
        assert [row.state for row in charges(asking._ledger)] == ["voided"] * (
            moment == "after the reservation"
        )
        if moment == "waiting for a lane":
            held.__exit__(None, None, None)
        monkeypatch.undo()
        assert asking.query(COUNT, epsilon="0.1").rows


def test_what_is_stored_does_not_wait_for_what_runs(tmp_path: Path) -> None:
    with session(tmp_path) as asking:
        stored = asking.query(COUNT, epsilon=1)
        with asking._engine._lanes.take(), asking._ledger.turns.of("another"):
            assert asking.query(COUNT, epsilon=1, time_limit=30).bytes == stored.bytes
