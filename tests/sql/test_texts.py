# SPDX-License-Identifier: Apache-2.0
"""Functions of a Text column: as tests, as unknown keys, and alike in every engine."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import expression
from sfumato.engines import sql_tree as sql
from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import ChangeCase, Field, Substring, Trim
from sfumato.sql import understand
from sfumato.sql.texts import ASCII_NOTE

JOB = Field(Column("job", Text()))
JOBS = ("Nurse", "NURSE", "nurse", "Cook", "Ärztin", "ärztin")
ROWS = pa.table(
    {"who": range(600), "job": [JOBS[place % 6] for place in range(600)], "n": [1] * 600}
)
TABLE = sf.Table(
    ROWS,
    unit=sf.Unit("who", max_rows_total=1),
    columns={"job": sf.Text(), "n": sf.Integer(0, 1)},
)
PEOPLE = Dataset("texts", {"people": TABLE})


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    budget = sf.Budget(10**6, delta="1e-2")
    ledger = tmp_path_factory.mktemp("texts") / "ledger.db"
    with sf.connect({"people": TABLE}, dataset="texts", budget=budget, ledger=ledger) as opened:
        yield opened


def condition_of(condition):
    return understand(
        f"SELECT COUNT(*) FROM people WHERE {condition}", PEOPLE
    ).raw.relation.predicate


CONDITIONS = {
    "LEFT(job, 1) = 'N'": 2,
    "SUBSTRING(job, 2, 2) = 'ur'": 2,
    "SUBSTRING(job, 5) = 'E'": 1,
    "LOWER(job) = 'nurse'": 3,
    "UPPER(job) IN ('COOK', 'NURSE')": 4,
    "job ILIKE 'NU%'": 3,
    "job NOT ILIKE '%K'": 5,
    "LOWER(job) = 'ärztin'": 1,
    "STARTS_WITH(job, 'Co')": 1,
    "LOWER(LEFT(job, 2)) = 'nu'": 3,
    "LOWER(job) LIKE 'n%' AND job LIKE 'N%'": 2,
    "job ILIKE '%Rztin'": 2,
    "LEFT(job, 0) = ''": 6,
    "LOWER(job) IS NULL": 0,
    "TRIM(job) = 'Nurse'": 1,
    "COALESCE(job, '') <> ''": 6,
    "IFNULL(LOWER(job), 'x') IN ('cook', 'x')": 1,
    "NULLIF(job, 'Cook') IS NULL": 1,
    "CASE WHEN job = 'Cook' THEN 'Chef' ELSE job END LIKE 'C%'": 1,
    "CONTAINS(job, 'rs')": 2,
    "ENDS_WITH(job, 'in')": 2,
}
# Texts with spaces at their ends, and what SQL makes of them; a wide space is no space.
SPACED = (" ab", "ab ", "ab", "\u3000ab", "", None)


def test_a_function_of_a_text_is_a_test(session):
    for condition, jobs in CONDITIONS.items():
        test = condition_of(condition)
        assert sum(evaluate(test, lambda _, job=job: job) is True for job in JOBS) == jobs
    where = ", ".join(f"COUNT(*) FILTER (WHERE {condition})" for condition in CONDITIONS)
    case = ", ".join(f"SUM(CASE WHEN {test} THEN n ELSE 0 END)" for test in CONDITIONS)
    answer = session.query(f"SELECT {where}, {case} FROM people", epsilon=2_000)
    assert answer.rows == [[100 * jobs for jobs in CONDITIONS.values()] * 2]


def test_a_function_of_a_text_is_a_condition_of_the_rows(session):
    text = "SELECT COUNT(*) FROM people WHERE job ILIKE '%K' OR LEFT(job, 2) = 'nu'"
    assert session.query(text, epsilon=50).rows == [[200]]


@pytest.mark.parametrize(
    ("key", "groups"),
    [
        ("LOWER(job)", {"nurse": 300, "cook": 100, "Ärztin": 100, "ärztin": 100}),
        ("LEFT(job, 1)", {"N": 200, "n": 100, "C": 100, "Ä": 100, "ä": 100}),
        ("UPPER(SUBSTRING(job, 2, 1))", {"U": 300, "O": 100, "R": 200}),
    ],
)
def test_a_function_of_a_text_is_a_key_whose_groups_pass_the_threshold(session, key, groups):
    text = f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY {key}"
    assert understand(text, PEOPLE).raw.keys[0].codes is None
    answer = session.query(text, epsilon=50, delta="1e-4")
    assert dict(answer.rows) == groups


KEYS = {
    "TRIM(job)": {"ab": 300, "\u3000ab": 100, "": 100},
    "LTRIM(job)": {"ab": 200, "ab ": 100, "\u3000ab": 100, "": 100},
    "RTRIM(job)": {" ab": 100, "ab": 200, "\u3000ab": 100, "": 100},
    "COALESCE(NULLIF(TRIM(job), ''), 'none')": {"ab": 300, "\u3000ab": 100, "none": 200},
    "CASE WHEN job LIKE '%ab' THEN job ELSE 'else' END": {
        " ab": 100, "ab": 100, "\u3000ab": 100, "else": 300,
    },
}  # fmt: skip


def test_spaces_and_missing_texts_are_keys_alike(tmp_path):
    rows = pa.table({"who": range(600), "job": [SPACED[place % 6] for place in range(600)]})
    table = sf.Table(rows, unit=sf.Unit("who", max_rows_total=1), columns={"job": sf.Text()})
    budget = sf.Budget(10**4, delta="1e-2")
    with sf.connect({"t": table}, dataset="t", budget=budget, ledger=tmp_path / "l.db") as opened:
        for key, groups in KEYS.items():
            text = f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k"
            assert dict(opened.query(text, epsilon=50, delta="1e-4").rows) == groups
        text = "SELECT COUNT(DISTINCT COALESCE(TRIM(job), 'x')) FROM t"
        assert opened.query(text, epsilon=100).rows == [[4]]


def test_a_rare_beginning_is_not_shown(tmp_path):
    rows = pa.table({"who": range(201), "job": ["ab"] * 100 + ["aB"] * 100 + ["zz"]})
    table = sf.Table(rows, unit=sf.Unit("who", max_rows_total=1), columns={"job": sf.Text()})
    text = "SELECT LEFT(job, 1) AS k, COUNT(*) FROM t GROUP BY k"
    with sf.connect(
        {"t": table}, dataset="t", budget=sf.Budget(99, delta="1e-6"), ledger=tmp_path / "l.db"
    ) as opened:
        assert [row[0] for row in opened.query(text, epsilon=1, delta="1e-9").rows] == ["a"]


def test_the_plan_says_which_function_was_asked():
    assert condition_of("LEFT(job, 2) = 'Nu'").operand == Substring(JOB, 1, 2)
    assert condition_of("job ILIKE 'NÄ%'") == condition_of("job ILIKE 'nÄ%'")
    assert condition_of("STARTS_WITH(job, 'Nu')") == condition_of("LEFT(job, 2) = 'Nu'")
    assert condition_of("UPPER(job) = 'X'").operand == ChangeCase(JOB, upper=True)


@pytest.mark.parametrize(
    ("select", "noted"),
    [("LOWER(job) = 'a'", True), ("job ILIKE 'a'", True), ("LEFT(job, 1) = 'a'", False)],
)
def test_a_note_says_which_letters_change(select, noted):
    notes = understand(f"SELECT COUNT(*) FROM people WHERE {select}", PEOPLE).notes
    assert (ASCII_NOTE in notes) is noted


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("RIGHT(job, 1) = 'e'", "declared values is needed"),
        ("SUBSTRING(job, 0, 2) = 'a'", "SUBSTRING from a place"),
        ("SUBSTRING(job, -2) = 'a'", "SUBSTRING from a place"),
        ("LEFT(job, -1) = 'a'", "a number of characters"),
        ("LENGTH(job) > 3", "declared values is needed"),
        ("TRIM(job, '.') = 'a'", "declared values is needed"),
        ("CONTAINS(job, '100%')", "places of LIKE"),
        ("COALESCE(job, n) = 'a'", "A choice among values of different kinds"),
        ("LOWER(who) = 'a'", "names single persons"),
    ],
)
def test_what_engines_would_answer_differently_is_refused(condition, words):
    with pytest.raises(UnsupportedSql, match=words):
        condition_of(condition)


def test_letters_that_the_engine_changes_by_its_own_rules_are_noticed(session, monkeypatch):
    text = expression._text

    def by_its_own_rules(node):
        if isinstance(node, ChangeCase):
            return sql.call("lower", text(node.operand))
        return text(node)

    monkeypatch.setattr(expression, "_text", by_its_own_rules)
    condition = "LOWER(job) = 'ärztin' AND n IN (0, 1)"
    answer = session.query(f"SELECT COUNT(*) FROM people WHERE {condition}", epsilon=50)
    assert answer.rows == [[200]]


def test_spaces_of_other_alphabets_that_the_engine_takes_away_are_noticed(tmp_path, monkeypatch):
    """A function of the engine without its characters knows every space of Unicode."""
    text = expression._text

    def every_space(node):
        return sql.call("trim", text(node.operand)) if isinstance(node, Trim) else text(node)

    monkeypatch.setattr(expression, "_text", every_space)
    with pytest.raises(AssertionError):
        test_spaces_and_missing_texts_are_keys_alike(tmp_path)
