# SPDX-License-Identifier: Apache-2.0
"""Attacks by errors, time and repetition: what one row could make fail, slow down or be asked
twice.

A victim's row is in the data or not; a function that raises, or takes long, on that row alone
would tell. So a function is refused, or total; and whatever fails all the same costs in full
and says one sentence.
"""

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.audit.seen import all_seen, differences, logs
from sfumato.engines import duckdb, expression
from sfumato.errors import AccountFrozen, EngineFailed, Refused
from sfumato.ledger.spend import Ledger
from sfumato.query import release
from sfumato.sql import dividing, functions
from tests.attacks import shop
from tests.contracts.people import EXACTLY

event = shop.event
# the row on which each of the statements below would stumble
VICTIM = event("victim", "R01", "error", 42.0, "2024-05-05")


def with_victim() -> shop.Data:
    base = shop.data()
    return {
        **base,
        "events": [*base["events"], VICTIM, event("victim", "R02", "\x00[(", 0.0, "2024-12-31")],
    }


RAISING = [
    "SELECT COUNT(*) FROM events WHERE 1 // (amount - 42) > 0",
    "SELECT COUNT(*) FROM events WHERE 1 / (amount - 42) > 0",
    "SELECT COUNT(*) FROM events WHERE 7 % (amount - 42) > 0",
    "SELECT SUM(7 % amount) FROM events",
    "SELECT SUM(POW(amount, 99)) FROM events",
    "SELECT SUM(EXP(amount * 1e6)) FROM events",
    "SELECT SUM(LN(amount)) FROM events",
    "SELECT SUM(SQRT(amount - 43)) FROM events",
    "SELECT SUM(FACTORIAL(CAST(amount AS INTEGER))) FROM events",
    "SELECT COUNT(*) FROM events WHERE CASE WHEN product = 'error' THEN error('found') ELSE TRUE END",
    "SELECT COUNT(*) FROM events WHERE CASE WHEN amount = 42 THEN 1 / 0 ELSE 1 END = 1",
    "SELECT COUNT(*) FROM events WHERE STRPTIME(product, '%Y') IS NULL",
    "SELECT COUNT(*) FROM events WHERE CHR(CAST(amount AS INTEGER) - 43) = 'a'",
    "SELECT COUNT(*) FROM events WHERE day + TO_YEARS(CAST(amount * 100000 AS INTEGER)) > day",
    "SELECT COUNT(*) FROM events WHERE day + INTERVAL (amount) YEAR > day",
    "SELECT SUM(CAST(amount AS DECIMAL(3, 2))) FROM events",
    "SELECT SUM(CAST(amount AS TINYINT)) FROM events",
    "SELECT SUM(CAST(product AS INTEGER)) FROM events",
    "SELECT COUNT(*) FROM events WHERE CAST(product AS DATE) > '2024-01-01'",
    "SELECT COUNT(*) FROM events WHERE product::UUID IS NULL",
    "SELECT COUNT(*) FROM events WHERE regexp_matches('a', product)",
    "SELECT COUNT(*) FROM events WHERE regexp_matches(product, '[(')",
    "SELECT COUNT(*) FROM events WHERE product LIKE product",
    "SELECT COUNT(*) FROM events WHERE region LIKE 'a' ESCAPE product",
    "SELECT COUNT(*) FROM events WHERE product::JSON->'a' IS NULL",
    "SELECT COUNT(*) FROM events WHERE [1, 2][CAST(amount AS INTEGER)] = 1",
    "SELECT COUNT(*) FROM events WHERE STRUCT_PACK(a := amount).a > 3",
    "SELECT COUNT(*) FROM events WHERE DATE_TRUNC(product, day) = day",
    "SELECT COUNT(*) FROM events WHERE MAKE_DATE(CAST(amount AS INTEGER), 13, 45) = day",
    "SELECT COUNT(*) FROM events WHERE REPEAT(product, 1000000000) = 'a'",
    "SELECT COUNT(*) FROM events WHERE LPAD(region, 2000000000, 'x') = 'a'",
    "SELECT COUNT(*) FROM events WHERE CASE WHEN product = 'error' THEN LIST_SUM(RANGE(30000000)) > 0 ELSE TRUE END",
    "SELECT COUNT(*) FROM events, RANGE(1000000000)",
    "SELECT COUNT(*) FROM events WHERE LEVENSHTEIN(product, 'tea') > 2",
    "SELECT COUNT(*) FROM events WHERE amount = NEXTVAL('s')",
    "SELECT COUNT(*) FROM events WHERE GETENV('HOME') = 'a'",
    "SELECT COUNT(*) FROM events WHERE CURRENT_SETTING('memory_limit') = product",
    "SELECT COUNT(*) FROM events WHERE READ_TEXT('/etc/passwd') = product",
    "SELECT COUNT(*) FROM QUERY('SELECT 1')",
    "SELECT COUNT(*) FROM events WHERE amount IN (SELECT UNNEST([1, 2]))",
    "SELECT COUNT(*) FROM events WHERE LIST_FILTER([amount], x -> x > 1) = []",
    "SELECT my_function(amount) FROM events",
]
TOTAL = [
    "SELECT SUM(1 / NULLIF(amount - 42, 0)), AVG(amount / NULLIF(amount, 0)) FROM events",
    "SELECT SUM(amount * 2000000000), SUM(amount * 9223372036854775807 * 1e100), SUM(amount * amount) FROM events",
    "SELECT SUM(amount % 7), SUM(FLOOR(amount / 42)), SUM(ROUND(amount, -3)), SUM(SIGN(amount - 42)) FROM events",
    "SELECT COUNT(*) FROM events WHERE TRY_CAST(region AS INTEGER) > 5 OR LENGTH(region) < 2",
    "SELECT COUNT(*) FROM events WHERE product LIKE '%[(%' OR product LIKE '\\_' OR product IN ('error', '')",
    "SELECT COUNT(*) FROM events WHERE day + 365 > DATE '2024-12-31' OR DATE_TRUNC('week', day) < DATE '2024-01-01'",
    "SELECT SUM(DATE_DIFF('month', day, DATE '9999-12-31')), SUM(WEEK(day + 7)) FROM events",
    "SELECT SUM(GREATEST(amount, 42) / LEAST(amount + 1, 3)) FROM events",
]


def answered(folder: Path, texts: list[str], content: shop.Data, name: str = "ledger") -> list[str]:
    """The questions that get an answer; any other is refused before it costs."""
    found = []
    with shop.connected(folder, content, name=name) as session:
        for text in texts:
            before = session.budget.spent
            try:
                session.query(text, epsilon="0.01")
            except Refused:
                assert session.budget.spent == before
                continue
            found.append(text)
    return found


def test_what_a_row_could_make_fail_or_slow_is_refused(tmp_path):
    assert answered(tmp_path, RAISING, with_victim()) == []


def test_what_is_answered_fails_on_no_row(tmp_path):
    assert answered(tmp_path, TOTAL, with_victim()) == TOTAL
    looks = []
    for name, content in (("one", shop.data()), ("other", with_victim())):
        with shop.connected(tmp_path, content, name=name) as session:
            looks.append(all_seen(session, TOTAL))
    assert differences(*looks) == []


def test_a_function_that_is_let_through_as_it_is_written_is_noticed(tmp_path, monkeypatch):
    honest = dividing.divide

    def divide(rows, node):
        try:
            return honest(rows, node)
        except Refused:
            return rows.number(node.this)

    monkeypatch.setitem(functions.FUNCTIONS, functions.exp.Div, divide)
    assert "SELECT COUNT(*) FROM events WHERE 1 / (amount - 42) > 0" in answered(
        tmp_path, RAISING, with_victim()
    )


def test_a_division_that_does_not_look_for_zero_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(expression, "_nonzero_divisor", lambda scalar: expression._code(scalar))
    looks = []
    for name, content in (("one", shop.data()), ("other", with_victim())):
        with shop.connected(tmp_path, content, name=name) as session:
            looks.append(all_seen(session, TOTAL[:1]))
    assert differences(*looks) == TOTAL[:1]


# --- failures all the same -----------------------------------------------------------------------

COUNT = "SELECT COUNT(*) FROM events"


def failed(folder: Path, content: shop.Data, monkeypatch) -> tuple[str, str, dict, list[str]]:
    """What an engine that fails on the victim shows: the error, the charge, the log."""
    honest = duckdb._rows

    def rows(connection, text):
        if connection.execute(
            "SELECT count(*) FROM source_events WHERE product = 'error'"
        ).fetchone()[0]:
            text = "SELECT error('victim is here: ' || product) FROM source_events WHERE product = 'error'"
        else:
            text = "SELECT CAST(region AS INTEGER) FROM source_events"
        return honest(connection, text)

    monkeypatch.setattr(duckdb, "_rows", rows)
    with shop.connected(folder, content) as session, logs() as lines:
        with pytest.raises(EngineFailed) as caught:
            session.query(COUNT, epsilon=1)
        error = caught.value
        return str(error), f"{error.__cause__} {error.__context__}", session.budget.to_json(), lines


def test_a_failure_says_one_sentence_costs_in_full_and_quotes_nothing(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one = failed(tmp_path / "one", shop.data(), monkeypatch)
    monkeypatch.undo()
    other = failed(tmp_path / "other", with_victim(), monkeypatch)
    assert one[:3] == other[:3]
    assert one[1] == "None None"
    assert one[2]["spent"]["epsilon"] == "1"
    assert not any("victim" in line or "R0" in line for line in [*one[3], *other[3], *one[:2]])


def test_a_failure_that_costs_nothing_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(Ledger, "execute", lambda ledger, charge: None)
    monkeypatch.setattr(Ledger, "forfeit", lambda ledger, charge, why: ledger.void(charge))
    assert failed(tmp_path, shop.data(), monkeypatch)[2]["spent"]["epsilon"] == "0"


def failing(connection, text):
    raise duckdb.duckdb.Error


def test_three_failures_freeze_the_account_whatever_the_data(tmp_path, monkeypatch):
    with shop.connected(tmp_path, with_victim()) as session:
        monkeypatch.setattr(duckdb, "_rows", failing)
        for epsilon in (1, 2, 3):
            with pytest.raises(EngineFailed):
                session.query(COUNT, epsilon=epsilon)
        monkeypatch.undo()
        with pytest.raises(AccountFrozen):
            session.query(COUNT, epsilon=4)
        assert session.budget.spent == "6"


# --- asked twice ---------------------------------------------------------------------------------

SAME = [
    (COUNT, "select  count( * )\nfrom EVENTS -- again"),
    ("SELECT SUM(amount) AS s FROM events WHERE amount > 3", "SELECT SUM(amount) AS s FROM events WHERE 3 < amount"),
    ("SELECT AVG(amount) FROM events WHERE region IN ('R01', 'R02')", "SELECT AVG(amount) FROM events WHERE region IN ('R02', 'R01')"),
]  # fmt: skip
OTHER = [
    "SELECT COUNT(*) AS n FROM events WHERE amount > 3",
    "SELECT COUNT(*) AS n FROM events WHERE amount >= 3",
    "SELECT COUNT(*) AS n FROM events WHERE NOT amount > 3",
    "SELECT COUNT(*) AS n FROM events WHERE amount > 3.1",
    "SELECT COUNT(*) AS n FROM events WHERE product = 'a'",
    "SELECT COUNT(*) AS n FROM events WHERE product = 'A'",
    "SELECT COUNT(*) AS n FROM events WHERE product = 'a '",
    "SELECT COUNT(*) AS n FROM events WHERE product LIKE 'a'",
    "SELECT COUNT(*) AS n FROM events WHERE region = 'R01' OR region = 'R02' AND amount > 3",
    "SELECT COUNT(*) AS n FROM events WHERE (region = 'R01' OR region = 'R02') AND amount > 3",
    "SELECT COUNT(amount) AS n FROM events",
    "SELECT COUNT(DISTINCT amount) AS n FROM events",
    "SELECT COUNT(*) AS n FROM orders",
    "SELECT COUNT(*) AS n FROM users",
    "SELECT COUNT(*) AS n FROM events HAVING COUNT(*) > 0",
    "SELECT COUNT(*) + 0 AS n FROM events",
    "SELECT COUNT(*) AS n FROM events LIMIT 1",
    "SELECT COUNT(*) AS n FROM events LIMIT 0",
    "SELECT MEDIAN(amount) AS n FROM events",
    "SELECT QUANTILE_CONT(amount, 0.501) AS n FROM events",
    "SELECT COUNT(*) AS n FROM events e JOIN users u ON e.user_id = u.user_id",
    "SELECT COUNT(*) AS n FROM events e LEFT JOIN users u ON e.user_id = u.user_id",
    "SELECT COUNT(*) AS n FROM events WHERE user_id IN (SELECT user_id FROM users)",
    "SELECT COUNT(*) AS n FROM events WHERE user_id NOT IN (SELECT user_id FROM users)",
]


AFTER = [text for text in OTHER if "HAVING" in text or "LIMIT" in text or "+ 0" in text]


def charges(session: sf.Session, texts: list[str]) -> list[str]:
    """The charge that paid for each answer."""
    return [session.query(text, epsilon="0.5").charge_id for text in texts]


def test_the_same_question_is_answered_once_and_another_one_anew(tmp_path, monkeypatch):
    with shop.connected(tmp_path, shop.data()) as session:
        for one, other in SAME:
            assert session.query(one, epsilon=1).bytes == session.query(other, epsilon=1).bytes
        found = charges(session, OTHER)
        # what differs after the noise alone is made of the same release, paid for above at a higher
        # price
        assert len(set(found)) == len(OTHER) - len(AFTER) + 1
        assert (
            len({charge for text, charge in zip(OTHER, found, strict=True) if text in AFTER}) == 1
        )
        assert charges(session, OTHER) == found
        # a higher price is another answer
        assert session.query(OTHER[0], epsilon="0.75").charge_id not in found
    with shop.connected(tmp_path, shop.data(), name="other") as session:
        # a key that forgets what is done with the released numbers
        monkeypatch.setattr(
            release.Asker,
            "question_keys",
            lambda asker, planned, _: (str(planned.question.raw.aggregates),) * 2,
        )
        assert len(set(charges(session, OTHER))) < len(OTHER) - len(AFTER)


def test_an_answer_is_not_shared_with_another_analyst(tmp_path):
    spent = []
    for analyst in ("one", "other", "one"):
        with sf.connect(
            shop.tables(shop.data()),
            dataset="shop",
            budget=sf.Budget(10),
            ledger=tmp_path / "l.db",
            analyst=analyst,
        ) as session:
            session.query(COUNT, epsilon=1)
            spent.append(session.budget.spent)
    assert spent == ["1", "2", "2"]


def test_without_noise_the_victim_is_counted(tmp_path):
    """The checks above are not about an engine that leaves the victim out."""
    text = "SELECT COUNT(*) FROM events WHERE product = 'error'"
    with shop.connected(tmp_path, with_victim()) as session:
        assert session.query(text, epsilon=EXACTLY).rows == [[1]]
