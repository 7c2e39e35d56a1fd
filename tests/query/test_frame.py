# SPDX-License-Identifier: Apache-2.0
"""The dataframe front makes the plans of the SQL that it stands for."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import UnknownName, UnsupportedSql, WrongUse
from sfumato.query.frame import Expression, Frame, col, count, frame
from sfumato.sql.lower import understand
from tests.contracts.people import EXACTLY, dataset, session

DATASET = dataset()


def people() -> Frame:
    """A question that nobody answers."""
    return frame("people", lambda *_, **__: None, lambda *_, **__: None)


PAIRS = [
    (people().agg(n=count()), "SELECT COUNT(*) AS n FROM people"),
    (
        people().where(col("age") >= 60, col("sex") == "F").agg(m=col("hours").mean(), s=col("hours").sum()),
        "SELECT AVG(hours) AS m, SUM(hours) AS s FROM people WHERE age >= 60 AND sex = 'F'",
    ),
    (
        people().group_by("sex", "smoker").agg(count().alias("n"), col("age").count().alias("c")),
        "SELECT sex, smoker, COUNT(*) AS n, COUNT(age) AS c FROM people GROUP BY sex, smoker",
    ),
    (
        people().where((col("age") < 30) | ~(col("job").isin("job 1", "job 2"))).agg(v=col("age").var()),
        "SELECT VAR_SAMP(age) AS v FROM people WHERE age < 30 OR NOT job IN ('job 1', 'job 2')",
    ),
    (
        people().where(col("born").between(datetime.date(1960, 1, 1), datetime.date(1969, 12, 31))).agg(n=count()),
        "SELECT COUNT(*) AS n FROM people WHERE born BETWEEN DATE '1960-01-01' AND DATE '1969-12-31'",
    ),
    (
        people().agg(s=((col("hours") + 1) * Decimal("0.5") - col("age")).sum(), q=col("age").quantile("0.9")),
        "SELECT SUM((hours + 1) * 0.5 - age) AS s, QUANTILE_CONT(age, 0.9) AS q FROM people",
    ),
    (
        people().where(col("smoker").is_null()).agg(med=col("age").median(), d=col("age").std()),
        "SELECT MEDIAN(age) AS med, STDDEV_SAMP(age) AS d FROM people WHERE smoker IS NULL",
    ),
    (people().agg(r=col("hours").sum() / count()), "SELECT SUM(hours) / COUNT(*) AS r FROM people"),
    (
        people().where(-col("hours") <= -2.5, col("people.job") != "x", col("job").like("job%")).agg(n=count()),
        "SELECT COUNT(*) AS n FROM people WHERE -hours <= -2.5 AND people.job <> 'x' AND job LIKE 'job%'",
    ),
    (
        people().agg(low=col("age").min(), high=col("age").max()),
        "SELECT MIN(age) AS low, MAX(age) AS high FROM people",
    ),
]


@pytest.mark.parametrize(("built", "sql"), PAIRS, ids=[sql for _, sql in PAIRS])
def test_a_frame_is_the_plan_of_its_sql(built: Frame, sql: str) -> None:
    one, other = understand(built.select, DATASET), understand(sql, DATASET)
    assert (one.raw, one.output) == (other.raw, other.output)
    assert understand(built.sql, DATASET).raw == one.raw


def test_a_frame_asks_its_session(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        built = opened.table("people").where(sf.col("age") >= 30).group_by("sex").agg(n=sf.count())
        assert built.preview(epsilon=1).cost.epsilon == "1"
        answer = built.query(epsilon=EXACTLY)
        assert answer.rows == [["female", 10], ["male", 10]]
        with pytest.raises(UnknownName, match="people"):
            opened.table("persons")
        with pytest.raises(UnsupportedSql):
            opened.table("people").query(epsilon=1)


def test_each_step_is_a_new_frame() -> None:
    first = people().where(col("age") > 3)
    assert first.where(col("age") < 9).sql != first.sql


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "TRUE"), (3, "3"), (-2.5, "-2.5"), (Fraction(1, 8), "0.125"), ("o'x", "'o''x'"), (0.1, "0.1")],
)
def test_constants_are_written_exactly(value: object, text: str) -> None:
    assert repr(col("x") == value).endswith(f"= {text}")


def test_a_text_cannot_leave_its_quotes() -> None:
    built = people().where(col("job") == "x' OR 1=1 --").agg(n=count())
    assert understand(built.sql, DATASET).raw == understand(built.select, DATASET).raw


@pytest.mark.parametrize("value", [None, b"x", [1], object()])
def test_what_is_no_constant_is_refused(value: object) -> None:
    with pytest.raises(WrongUse, match="constant"):
        col("x") + value


YOUNG, MALE = col("age") < 30, col("sex") == "M"


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ((YOUNG | MALE).is_null(), "(age < 30 OR sex = 'M') IS NULL"),
        ((~col("smoker")).is_null(), "(NOT smoker) IS NULL"),
        (YOUNG.isin(True), "(age < 30) IN (TRUE)"),
        (YOUNG == MALE, "(age < 30) = (sex = 'M')"),
        (YOUNG.is_null() == col("smoker"), "((age < 30) IS NULL) = smoker"),
        ((col("age") + 1).between(2, 3), "age + 1 BETWEEN 2 AND 3"),
    ],
)
def test_a_test_of_a_test_is_in_brackets(test: Expression, text: str) -> None:
    assert repr(test) == text
    built = people().where(test).agg(n=count())
    assert understand(built.sql, DATASET).raw == understand(built.select, DATASET).raw


@pytest.mark.parametrize(
    "step",
    [
        lambda: people().where("age > 3"),
        lambda: people().where(True),
        lambda: people().agg("age"),
        lambda: people().agg(n=3),
        lambda: people().group_by(3),
        lambda: col("age").alias(3),
        lambda: people().join(3, on="person"),
    ],
)
def test_what_is_no_expression_is_refused(step: Callable[[], object]) -> None:
    with pytest.raises(WrongUse):
        step()


def test_python_logic_is_refused() -> None:
    with pytest.raises(WrongUse, match="true or false"):
        bool(col("x") == 1)
    with pytest.raises(WrongUse):
        col("")
    with pytest.raises(WrongUse, match="how"):
        people().join("other", on="person", how="outer")


def test_precedence_is_kept() -> None:
    assert repr((col("a") | col("b")) & col("c")) == "(a OR b) AND c"
    assert repr(~(col("a") & col("b")) | (col("c") == 1)) == "NOT (a AND b) OR c = 1"
    assert repr((col("a") - (col("b") - 1)) * 2) == "(a - (b - 1)) * 2"
    assert repr(col("a") + col("b") * 2) == "a + b * 2"
    assert repr(-(col("a") + 1)) == "-(a + 1)"
    assert isinstance(col("a").alias("two words"), Expression)
    assert repr(col("a b").sum().alias("two words")) == 'SUM("a b") AS "two words"'
