# SPDX-License-Identifier: Apache-2.0
"""The dataframe front makes the plans of the SQL that it stands for."""

import datetime
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import SfumatoError, UnknownName, UnsupportedSql, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.scalar import And, Or
from sfumato.plan.value import Value
from sfumato.query import dataframe as room
from sfumato.query.dataframe import Expression, Frame, col, count, frame
from sfumato.sql.lower import understand
from tests.contracts.people import EXACTLY, dataset, session

DATASET = dataset()


def people() -> Frame:
    """A question that nobody answers."""
    return frame("people", lambda *_, **__: None, lambda *_, **__: None)


PAIRS = [
    (people().agg(n=count()), "SELECT COUNT(*) AS n FROM people"),
    (
        people()
        .where(col("age") >= 60, col("sex") == "F")
        .agg(m=col("hours").mean(), s=col("hours").sum()),
        "SELECT AVG(hours) AS m, SUM(hours) AS s FROM people WHERE age >= 60 AND sex = 'F'",
    ),
    (
        people().group_by("sex", "smoker").agg(count().alias("n"), col("age").count().alias("c")),
        "SELECT sex, smoker, COUNT(*) AS n, COUNT(age) AS c FROM people GROUP BY sex, smoker",
    ),
    (
        people()
        .where((col("age") < 30) | ~(col("job").isin("job 1", "job 2")))
        .agg(v=col("age").var()),
        "SELECT VAR_SAMP(age) AS v FROM people WHERE age < 30 OR NOT job IN ('job 1', 'job 2')",
    ),
    (
        people()
        .where(col("born").between(datetime.date(1960, 1, 1), datetime.date(1969, 12, 31)))
        .agg(n=count()),
        "SELECT COUNT(*) AS n FROM people WHERE born BETWEEN DATE '1960-01-01' AND DATE '1969-12-31'",
    ),
    (
        people().agg(
            s=((col("hours") + 1) * Decimal("0.5") - col("age")).sum(), q=col("age").quantile("0.9")
        ),
        "SELECT SUM((hours + 1) * 0.5 - age) AS s, QUANTILE_CONT(age, 0.9) AS q FROM people",
    ),
    (
        people().where(col("smoker").is_null()).agg(med=col("age").median(), d=col("age").std()),
        "SELECT MEDIAN(age) AS med, STDDEV_SAMP(age) AS d FROM people WHERE smoker IS NULL",
    ),
    (people().agg(r=col("hours").sum() / count()), "SELECT SUM(hours) / COUNT(*) AS r FROM people"),
    (
        people()
        .where(-col("hours") <= -2.5, col("people.job") != "x", col("job").like("job%"))
        .agg(n=count()),
        "SELECT COUNT(*) AS n FROM people WHERE -hours <= -2.5 AND people.job <> 'x' AND job LIKE 'job%'",
    ),
    (
        people().agg(low=col("age").min(), high=col("age").max()),
        "SELECT MIN(age) AS low, MAX(age) AS high FROM people",
    ),
]


@pytest.mark.parametrize(("built", "sql"), PAIRS, ids=[sql for _, sql in PAIRS])
def test_a_frame_is_the_plan_of_its_sql(built: Frame, sql: str) -> None:
    one, other = understand(built.sql, DATASET), understand(sql, DATASET)
    assert (one.raw, one.output) == (other.raw, other.output)


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
    [
        (True, "TRUE"),
        (3, "3"),
        (-2.5, "-2.5"),
        (Fraction(1, 8), "0.125"),
        ("o'x", "'o''x'"),
        (0.1, "0.1"),
    ],
)
def test_constants_are_written_exactly(value: object, text: str) -> None:
    assert repr(col("x") == value).endswith(f"= {text}")


def test_a_text_cannot_leave_its_quotes() -> None:
    built = people().where(col("job") == "x' OR 1=1 --").agg(n=count())
    assert built.sql == "SELECT COUNT(*) AS n FROM people WHERE job = 'x'' OR 1=1 --'"
    assert (
        understand(built.sql, DATASET).raw != understand(people().agg(n=count()).sql, DATASET).raw
    )


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
        (col("job").isin(["a", "b"]), "job IN ('a', 'b')"),
        (col("job").isin(("a", "b")), "job IN ('a', 'b')"),
        ((col("age") - 20) // 5 * 2, "FLOOR((age - 20) / 5) * 2"),
        (100 // col("age"), "FLOOR(100 / age)"),
        (YOUNG == MALE, "(age < 30) = (sex = 'M')"),
        (YOUNG.is_null() == col("smoker"), "((age < 30) IS NULL) = smoker"),
        ((col("age") + 1).between(2, 3), "age + 1 BETWEEN 2 AND 3"),
    ],
)
def test_a_test_of_a_test_is_in_brackets(test: Expression, text: str) -> None:
    assert repr(test) == text


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
        lambda: people().join("people", on=3),
        lambda: people().join("", on="person"),
        lambda: people().where((col("age") > 3).alias("old")),
        lambda: col("age").alias("a") + 1,
        lambda: 1 + col("age").alias("a"),
        lambda: col("age").alias("a").sum(),
        lambda: col("age").alias(""),
        lambda: col("age").isin(),
        lambda: col("age").isin([]),
        lambda: col("age").isin([1], [2]),
        lambda: col("job").like(3),
        lambda: col("age").quantile(Fraction(1, 3)),
        lambda: col("age") > float("nan"),
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


# --- what is built, what is shown and what is stored are one plan --------------------------------

# An expression, and the SQL that it has to mean, with brackets around everything.
Pair: TypeAlias = tuple[Expression, str]

SIGNS = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
    "AND": lambda one, other: one & other,
    "OR": lambda one, other: one | other,
}
NUMBERS = st.one_of(
    st.integers(-9, 9),
    st.fractions(-3, 3, max_denominator=7).filter(bool),
    st.sampled_from([0.1, -2.5, Decimal("0.25")]),
)
LEAVES: st.SearchStrategy[Pair] = st.sampled_from(
    [(col("age"), "age"), (col("people.hours"), "people.hours")]
)


def written(number: object) -> str:
    """A constant in brackets: a decimal if it ends."""
    exact = Fraction(str(number))
    ending = Decimal(exact.numerator) / Decimal(exact.denominator)
    return (
        f"({ending})"
        if Fraction(ending) == exact
        else f"(({exact.numerator}) / {exact.denominator})"
    )


def combined(pairs: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    """What arithmetic makes of two values, or of a value and a constant on either side."""
    signs = st.sampled_from("+-*")
    both = st.tuples(pairs, signs, pairs).map(
        lambda of: (SIGNS[of[1]](of[0][0], of[2][0]), f"({of[0][1]} {of[1]} {of[2][1]})")
    )
    left = st.tuples(NUMBERS, signs, pairs).map(
        lambda of: (SIGNS[of[1]](of[0], of[2][0]), f"({written(of[0])} {of[1]} {of[2][1]})")
    )
    right = st.tuples(pairs, NUMBERS.filter(bool)).map(
        lambda of: (of[0][0] / of[1], f"({of[0][1]} / {written(of[1])})")
    )
    return st.one_of(both, left, right, pairs.map(lambda of: (-of[0], f"(-{of[1]})")))


VALUES = st.recursive(LEAVES, combined, max_leaves=4)
TESTS: st.SearchStrategy[Pair] = st.one_of(
    st.tuples(VALUES, st.sampled_from(["=", "<>", "<", ">="]), NUMBERS).map(
        lambda of: (SIGNS[of[1]](of[0][0], of[2]), f"({of[0][1]} {of[1]} {written(of[2])})")
    ),
    VALUES.map(lambda of: (of[0].is_null(), f"({of[1]} IS NULL)")),
    VALUES.map(lambda of: (of[0].between(-1, 7), f"({of[1]} BETWEEN -1 AND 7)")),
    st.text(max_size=5).map(
        lambda word: (col("job") == word, "(job = '" + word.replace("'", "''") + "')")
    ),
    st.just((col("smoker").is_null(), "(smoker IS NULL)")),
)


def connected(pairs: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    """What AND, OR and NOT make of tests."""
    return st.one_of(
        st.tuples(pairs, st.sampled_from(["AND", "OR"]), pairs).map(
            lambda of: (SIGNS[of[1]](of[0][0], of[2][0]), f"({of[0][1]} {of[1]} {of[2][1]})")
        ),
        pairs.map(lambda of: (~of[0], f"(NOT {of[1]})")),
    )


def meaning(text: str) -> object:
    """The plan of a text, or its refusal."""
    try:
        found = understand(text, DATASET)
    except SfumatoError as refused:
        # what it quotes has its own brackets
        return type(refused)
    return flat(found.raw), found.output


def flat(node: object) -> object:
    """A plan in which AND of AND is one AND, OR of OR one OR, and no value has the text it was
    written as.
    """
    if isinstance(node, tuple):
        return tuple(map(flat, node))
    if isinstance(node, And | Or):
        found = [flat(each) for each in node.operands]
        return type(node)(
            tuple(
                inner
                for each in found
                for inner in (each.operands if type(each) is type(node) else [each])
            )
        )
    if isinstance(node, Value):
        return Value, node.type, flat(node.expression)
    if is_dataclass(node) and node.__module__.startswith("sfumato.plan"):
        return type(node), tuple(flat(getattr(node, each.name)) for each in fields(node))
    return node


def same_plan(test: Pair, value: Pair, divisor: object) -> bool:
    """Whether a frame means what was built, bracket by bracket."""
    built = people().where(test[0]).agg(r=value[0].sum() / divisor)  # type: ignore[operator]
    text = f"SELECT (SUM({value[1]}) / {written(divisor)}) AS r FROM people WHERE ({test[1]})"
    return meaning(built.sql) == meaning(text)


EXAMPLE = (col("age") > 3, "(age > 3)"), (col("age"), "age"), Fraction(2, 3)


@given(st.recursive(TESTS, connected, max_leaves=4), VALUES, NUMBERS.filter(bool))
@example(*EXAMPLE)
def test_the_sql_of_an_expression_means_what_python_computed_it_to_be(test, value, divisor):
    assert same_plan(test, value, divisor)


def test_a_quotient_without_brackets_is_noticed(monkeypatch):
    assert same_plan(*EXAMPLE)
    honest = room._operand
    monkeypatch.setattr(room, "_operand", lambda value, least: honest(value, room.Binding.OR))
    assert not same_plan(*EXAMPLE)


def test_a_frame_asks_what_its_sql_says(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        built = opened.table("people").agg(r=sf.col("age").sum() / Fraction(2, 3))
        answer = built.query(epsilon=EXACTLY)
        assert answer.form["statement"] == built.sql == repr(built)
        assert opened.query(built.sql, epsilon=EXACTLY).bytes == answer.bytes
        asked = opened.query("SELECT SUM(age) * 3 / 2 AS r FROM people", epsilon=EXACTLY).rows
        assert answer.rows == asked


NAMES = [
    "date",
    "select",
    "odd name",
    'a"b',
    "next",
    "map",
    "if",
    "case",
    "interval",
    "ä",
    "x",
    "order",
    "all",
    "2x",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_form_is_a_name(name):
    columns = {name: sf.Integer(0, 9), "g": sf.Category("a", "b")}
    tables = {"t": sf.Table("t.csv", unit=sf.Unit("who of", max_rows=1), columns=columns)}
    tables["u"] = sf.Table("u.csv", unit=sf.Unit("who of", max_rows=1), columns={"h": sf.Boolean()})
    declared = Dataset("d", tables)
    built = frame("t", lambda *_: None, lambda *_: None).where(col(name) > 3)
    built = built.join("u", on="who of").group_by("g").agg(col(name).sum().alias(name))
    quoted = '"' + name.replace('"', '""') + '"'
    text = f'SELECT g, SUM({quoted}) AS {quoted} FROM t JOIN u USING ("who of") WHERE {quoted} > 3 GROUP BY g'
    one, other = understand(built.sql, declared), understand(text, declared)
    assert (one.raw, one.output) == (other.raw, other.output)


def nested(value: Expression, step: Callable[[Expression], Expression]) -> Expression:
    for _ in range(2_000):
        value = step(value)
    return value


@pytest.mark.parametrize("step", [lambda each: -each, lambda each: 1 + each, lambda each: ~each])
def test_what_is_nested_too_deeply_is_refused(
    tmp_path: Path, step: Callable[[Expression], Expression]
) -> None:
    with session(tmp_path) as opened, pytest.raises(SfumatoError):
        opened.table("people").agg(s=nested(col("age"), step).sum()).preview(epsilon=1)


def test_two_signs_are_no_comment() -> None:
    below = -col("a")
    assert repr(-below) == "-(-a)"
    assert repr(col("a") - -1) == "a - -1"
    assert repr(-(col("a") * -1)) == "-(a * -1)"
    assert repr(2 / col("a") - 1) == "2 / a - 1"


def test_a_notebook_completes_tables_and_columns(tmp_path: Path) -> None:
    """IPython asks these methods after ``session["`` and ``people["``; joins add columns."""
    with session(tmp_path) as opened:
        assert opened._ipython_key_completions_() == list(opened.dataset.tables)
        begun = opened["people"]
        assert begun._ipython_key_completions_() == list(opened.dataset.tables["people"].columns)
        older = begun.where(begun["age"] >= 60).agg(n=count())
        assert older.sql == "SELECT COUNT(*) AS n FROM people WHERE age >= 60"
        with pytest.raises(UnknownName, match="No column 'wage'"):
            begun["wage"]
        with pytest.raises(UnknownName, match="No table 'nobody'"):
            opened["nobody"]


def test_joined_columns_are_offered_once() -> None:
    declared = (("people", ("age", "city")), ("cities", ("city", "region")))
    begun = frame("people", lambda *_, **__: None, lambda *_, **__: None, declared)
    joined = begun.join("cities", on="city")
    assert joined._ipython_key_completions_() == ["age", "city", "region"]
    assert repr(joined["region"]) == "region"


def test_whole_division_rounds_down_as_it_does_in_python() -> None:
    with sf.examples.people() as census:
        asked = census.table("people").group_by(((col("AGEP") - 50) // 50).alias("k"))
        answer = asked.agg(count().alias("n")).query(epsilon=1)
    assert [row[0] for row in answer.rows] == [k // 50 for k in (-50, 0)]
