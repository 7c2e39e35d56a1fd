# SPDX-License-Identifier: Apache-2.0
"""A session end to end: exact where the noise is almost surely zero, free where it must be."""

import threading
from fractions import Fraction
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import sfumato as sf
from sfumato.cli.census import SOURCE, census
from sfumato.errors import (
    BudgetExceeded,
    ContractMismatch,
    InvalidDeclaration,
    InvalidSource,
    KeyUsed,
    Refused,
    WrongUse,
)
from sfumato.query.answer import Answer
from tests.contracts.people import EXACTLY, FRAME, session, table

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (COUNT, [(40,)]),
        ("SELECT COUNT(*) AS n FROM people WHERE age >= 30 AND sex = 'female'", [(10,)]),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", [("female", 20), ("male", 20)]),
        ("SELECT SUM(age) AS s FROM people WHERE sex = 'F'", [(590,)]),
        ("SELECT SUM(hours) AS h FROM people", [(195,)]),
        ("SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker", [(False, 30), (True, 10), (None, 0)]),
        ("SELECT SUM(age) / COUNT(*) AS r FROM people", [(29.5,)]),
        ("SELECT COUNT(*) AS n FROM people WHERE job IN ('job 0', 'job 1') OR born IS NULL", [(27,)]),
        ("SELECT COUNT(*) AS n FROM people WHERE NOT (born BETWEEN DATE '1960-01-01' AND DATE '1969-12-31')", [(20,)]),
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
    with sf.connect({"people": census()}, dataset="acs", budget=sf.Budget(10**6), ledger=tmp_path / "l.db") as opened:
        count = opened.query("SELECT SEX, COUNT(*) AS n FROM people GROUP BY SEX", epsilon=EXACTLY)
        poor = opened.query("SELECT COUNT(*) AS n FROM people WHERE POVPIP < 100", epsilon=EXACTLY)
        total = opened.query("SELECT SUM(PINCP) AS s, COUNT(PINCP) AS n FROM people", epsilon=900_000)
    assert [row[1] for row in count.rows] == [int(raw.SEX.eq(code).sum()) for code in ("1", "2")]
    ratio = pd.to_numeric(raw.POVPIP, errors="coerce")
    assert poor.rows == [[int((ratio < 100).sum())]]
    income = pd.to_numeric(raw.PINCP, errors="coerce").dropna()
    assert total.rows[0][1] == len(income)
    expected = income.clip(0, 200_000).round().sum()
    assert abs(float(total.rows[0][0]) - expected) <= 50


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
        rows = plain.execute(sql.replace("born >=", "CAST(born AS DATE) >=") + " ORDER BY sex").fetchall()
    assert found == [[["female", *rows[0][1:]], ["male", *rows[1][1:]]]] * 4


def test_the_same_question_is_the_same_bytes_at_no_cost_even_when_opened_again(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first = opened.query(COUNT, epsilon="0.5")
        assert opened.query("select count(*) n from people", epsilon=Fraction(1, 2)).bytes == first.bytes
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


def test_another_contract_over_the_same_ledger_is_refused(tmp_path: Path) -> None:
    session(tmp_path, budget=(1, 0)).close()
    for change in ({"budget": (2, 0)}, {"relation": sf.ReplaceOne}, {"unit": sf.Unit("person", max_rows=1)}):
        with pytest.raises(ContractMismatch):
            session(tmp_path, **{"budget": (1, 0), **change})
    session(tmp_path, budget=(1, 0)).close()


def test_a_new_ledger_needs_a_budget(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="does not know 'tiny' yet"):
        session(tmp_path, budget=None)


def test_a_failed_connect_lets_the_ledger_go(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        with pytest.raises(ContractMismatch):
            session(tmp_path, relation=sf.ReplaceOne)
        opened.query(COUNT, epsilon=1)
    with pytest.raises(InvalidSource):
        sf.connect(
            {"p": sf.Table(tmp_path / "no.csv")}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "ledger.db"
        )
    session(tmp_path).close()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"tables": [table()]}, InvalidDeclaration),
        ({"tables": {}}, InvalidDeclaration),
        ({"tables": {"people": FRAME}}, InvalidDeclaration),
        ({"budget": 1}, WrongUse),
        ({"dataset": ""}, InvalidDeclaration),
        ({"dataset": None}, InvalidDeclaration),
        ({"relation": "replace-one"}, InvalidDeclaration),
        ({"analyst": ""}, WrongUse),
        ({"purpose": None}, WrongUse),
        ({"prepared": 3}, WrongUse),
        ({"ledger": ":memory:"}, WrongUse),
    ],
    ids=repr,
)
def test_a_wrong_argument_of_connect_is_named(tmp_path: Path, wrong: dict[str, object], error: type[Exception]) -> None:
    arguments = {"tables": {"people": table()}, "dataset": "d", "budget": sf.Budget(1), "ledger": tmp_path / "l.db"}
    with pytest.raises(error):
        sf.connect(**arguments | wrong)
    assert not (tmp_path / "l.db").exists()


def test_the_account_is_exact_and_shows_both_gates(tmp_path: Path) -> None:
    with session(tmp_path, budget=(3, "1e-6")) as opened:
        opened.query(COUNT, rho="0.01")
        account = opened.budget
        form = account.to_json()
    assert (account.spent, account.spent_rho, account.reserved) == ("unbounded", "0.01", "0")
    assert form["limit"] == {"epsilon": "3", "delta": "0.000001"}
    assert form["spent"] == {"epsilon": "unbounded", "rho": "0.01"}
    assert Fraction(form["left"]["rho"]) == account.left_rho == Fraction(form["gates"]["zcdp"]) - Fraction(1, 100)
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
        assert [opened.query(COUNT, error=10, max_epsilon=5).recalled for _ in range(2)] == [False, True]


def test_a_pure_account_has_no_second_gate(tmp_path: Path) -> None:
    with session(tmp_path, budget=(3, 0)) as opened:
        assert opened.budget.to_json()["gates"] == {"pure": "3", "zcdp": None}
        assert "zCDP" not in repr(opened)
        assert opened.budget.left_rho == 0


def test_eight_threads_with_one_question_pay_once(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        found: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: found.append(opened.query(COUNT, epsilon="0.5").bytes)) for _ in range(8)
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
